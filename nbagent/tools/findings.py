"""Finds what looks like a secret in a text, and where: known shapes of keys, bearer headers, passwords in URLs and by name.

A net with holes, made for prose, code and outputs alike. What it finds wrongly costs little: the value comes back
wherever it is written (vault.py). It changes nothing and keeps nothing. Read `find`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nbagent.tools.secrets import SHAPES, secret_name


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text, from `start` to `end`; `what` it is in plain words; `sure`: its shape alone tells it."""

    start: int
    end: int
    what: str
    sure: bool = True


QUICK = 5
"""Characters to look for first: CPython finds up to five of them in a long text several times as fast as six."""
_SHORTEST = 6
_KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----([\s\S]*?)(?:-----END |\Z)")
_KEY_TAIL = re.compile(r"\A([^-]*)-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY")
_KEY_LINE = re.compile(r"\\[nr]|([A-Za-z0-9+/=]{4,})")
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)\s{1,3}([A-Za-z0-9._~+/-]{12,}={0,2})")
_IN_URL = re.compile(r"://[^\s/:@\"']{0,200}:([^\s/@\"']{3,500})@")
_AWS = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_NEAR = 300

# ── by name: NAME = "value", NAME=value, "name": "value", --name value ───────────────────────────────────────────────

_PARTS = ("pass", "token", "key", "secre", "cred", "auth", "beare", "jwt", "pwd", "conn")  # see QUICK
_CORE = re.compile("|".join(_PARTS), re.IGNORECASE)
_SEPARATOR = re.compile(
    r"""(?P<name>[\w-]{0,40})(?P<closed>\\{0,3}["'])?\]?(?::[ \t]{0,2}[\w.\[\]|]{1,40}(?=[ \t]{0,3}=))?"""
    r"""(?P<sign>[ \t]{0,3}(?:=>|:=|=(?!=)|:(?!:)|,)[ \t]{0,3}|[ \t]{1,3})"""
)
_QUOTED = re.compile(r"""[rRbBfFuU]{0,2}(?P<q>\\{0,3}["'])(?P<value>(?!["'])[^\n]{6,4000}?)(?<!\\)(?P=q)""")
_BARE = re.compile(r"""[^\s"'`(){}\[\],;<>&|\\⟦⟧]{6,4000}""")
_LONGEST_NAME = 60
_LINE_START = re.compile(r"""(?:\A|[\n\r\v\f])[ \t]*(?:(?:export|set|ENV|-e|-)[ \t]+)?["']?\Z""")
_WORDS_ONLY = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")
_NO_VALUE = re.compile(
    r"\A(?:\$\{|\$\(|\{\{|<|%\(|\{[^}]*\}\Z|(.)\1*\Z|your[-_ ]|change[-_ ]?me|example|os\.|bearer\Z|basic\Z)",
    re.IGNORECASE,
)
_SCHEME_AT = re.compile(r"(?i)(?:bearer|basic|token)[ \t]{1,3}")
_SCHEME = re.compile(r"(?i)\A(?:bearer|basic|token)\s+")


def find(text: str, own: Iterable[re.Pattern[str]] = ()) -> Iterator[Found]:
    """Yield what looks like a secret, in no order; findings may overlap. `own` are patterns of the person's.

    Of a pattern with a group the first group is the secret.
    """
    for mark, shape in SHAPES:
        if mark[:QUICK] in text:
            for match in shape.finditer(text):
                yield Found(*match.span(), "a key")
    if "PRIVA" in text:
        yield from _of_key_blocks(text)
    if "earer" in text or "asic" in text or "EARER" in text:
        for match in _BEARER.finditer(text):
            if any(char.isdigit() for char in match[1]):
                yield Found(*match.span(1), "a credential in a header")
    if "://" in text and "@" in text:
        for match in _IN_URL.finditer(text):
            if not _NO_VALUE.match(match[1]):
                yield Found(*match.span(1), "a password in an address", sure=False)
    if "AKIA" in text or "ASIA" in text:
        yield from _of_aws(text)
    for pattern in own:
        for match in pattern.finditer(text):
            span = match.span(1) if pattern.groups else match.span()
            if span[1] > span[0] >= 0:
                yield Found(*span, "found by a pattern of yours", sure=False)
    yield from _by_name(text)


def _of_key_blocks(text: str) -> Iterator[Found]:
    """Yield the lines of private keys one by one, so that a listing with line numbers keeps them."""
    blocks = [match.span(1) for match in _KEY_BLOCK.finditer(text)]
    if (tail := _KEY_TAIL.match(text)) is not None:
        blocks.append(tail.span(1))
    for start, end in blocks:
        for line in _KEY_LINE.finditer(text, start, end):
            if line[1]:
                yield Found(*line.span(1), "a line of a private key")


def _of_aws(text: str) -> Iterator[Found]:
    """Yield what has the shape of the secret half, near the half that names it."""
    near: Sequence[int] = [match.start() for match in re.finditer("A[KS]IA", text)]
    for at in near:
        for match in _AWS.finditer(text, max(0, at - _AWS_NEAR), at + _AWS_NEAR):
            yield Found(*match.span(), "an AWS key")


def _by_name(text: str) -> Iterator[Found]:
    """Yield values that stand behind a name of a secret's."""
    known: dict[str, bool] = {}
    last = -1
    for core, end in _cores(text):
        if end <= last or (sign := _SEPARATOR.match(text, end)) is None:
            continue
        begin = core
        while begin > 0 and core - begin < _LONGEST_NAME and ((char := text[begin - 1]).isalnum() or char in "_.-"):
            begin -= 1
        named = text[begin : sign.end("name")]
        if named not in known:
            known[named] = secret_name(named.lstrip("-").rpartition(".")[2])
        in_connection = named.lower() == "pwd" and text[begin - 1 : begin] == ";"
        if (known[named] or in_connection) and (span := _value(text, begin, sign)) is not None:
            last = span[1]
            yield Found(*span, f"the value of {named.lstrip('-')[:40]}", sure=False)


def _cores(text: str) -> list[tuple[int, int]]:
    """Return where words stand that names of secrets have in them; `str.find` is ten times as quick as an expression."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters become two
        return [match.span() for match in _CORE.finditer(text)]
    found: list[tuple[int, int]] = []
    for part in _PARTS:
        at = lower.find(part)
        while at >= 0:
            found.append((at, at + len(part)))
            at = lower.find(part, at + len(part))
    return sorted(found)


def _value(text: str, begin: int, sign: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value lies that belongs to the name at `begin`, None where there is none."""
    how, at = sign["sign"].strip(), sign.end()
    option = text.startswith("--", begin)
    if (not how and not option) or (
        how == "," and not (sign["closed"] and "env" in text[max(0, begin - 40) : begin].lower())
    ):
        return None
    if (quoted := _QUOTED.match(text, at)) is not None:
        start, end = quoted.span("value")
    elif (
        how != "," and (bare := _BARE.match(text, _after_scheme(text, at))) and _may_be_bare(text, begin, sign, bare[0])
    ):
        start, end = bare.span()
    else:
        return None
    if (scheme := _SCHEME.match(text[start:end])) is not None:
        start += scheme.end()
    value = text[start:end]
    return None if len(value) < _SHORTEST or _NO_VALUE.match(value) else (start, end)


def _after_scheme(text: str, at: int) -> int:
    return found.end() if (found := _SCHEME_AT.match(text, at)) is not None else at


def _may_be_bare(text: str, begin: int, sign: re.Match[str], value: str) -> bool:
    """Whether a value without quotes is one: in code it is an expression."""
    if text[begin - 1 : begin] in {"?", "&", ";"} or text.startswith("--", begin):
        return True
    if not _LINE_START.search(text[max(0, begin - 80) : begin]):
        return False
    name, spaced = text[begin : sign.start("sign")], sign["sign"] != "="
    return not _WORDS_ONLY.match(value) or (name.isupper() and not spaced)
