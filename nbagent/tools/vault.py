"""Keeps secrets in the kernel: what leaves it has a placeholder in the place of each, what comes back gets the value again.

`reveal(mask(text)) == text` for every text without placeholders of its own, so a value that was masked by mistake costs
nothing but a look. Placeholders are made of a keyed hash of the value: the same value has the same one, also after a
restart, and nobody without the key learns anything from it. Values lie in memory only. Must not know who reads or writes
what. Read `Vault.mask`, then `Vault.reveal`.
"""

from __future__ import annotations

import base64
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from nbagent.core.errors import ToolError
from nbagent.tools.findings import QUICK, Found, find
from nbagent.tools.secrets import secret_name

PLACEHOLDER = re.compile(r"⟦secret:([0-9a-f]{8,32})⟧")
_LOOKS_LIKE_ONE = re.compile(r"⟦\s{0,3}secret[^⟧\n]{0,40}⟧?", re.IGNORECASE)
_MARK = "⟦"
_HIDDEN = re.compile(r"<hidden(?: secret|: looks like a secret)>")
_NOT_SHOWN = (
    "The text has “<hidden …>” in it, which was shown to you in the place of a secret that nobody can put back, so nothing "
    "was done. Leave that part as it is, or use the variable that holds it."
)

_SHORTEST = 6
_LEARNT = 8
_SURE = 12
_LONGEST = 10_000
_PIECE = 8
_SEARCHED = 200
_ROUNDS = 4
_MEMO, _MEMO_FROM = 48, 1_000
_PLAIN = re.compile(r"[A-Za-z0-9_\-+/=.:@~%,]*\Z")
_PREFIX = re.compile(r"[A-Za-z0-9]{1,10}(?:[-_][A-Za-z0-9]{1,6})?[-_.]")
_FIXED = frozenset({"id", "tool_use_id", "type", "signature", "call_id", "run_id", "session_id", "hash"})


@dataclass(frozen=True, slots=True)
class Secret:
    """One value. `plain`: it has no character that could end a string, start a command or be read as code."""

    placeholder: str
    value: str
    what: str

    @property
    def plain(self) -> bool:
        """Whether nothing in it can be read as code where it is put in."""
        return _PLAIN.match(self.value) is not None

    @property
    def described(self) -> str:
        """What a person reads of it: never the value."""
        return f"{self.placeholder} is {self.what} ({len(self.value):,} characters)"


class Vault:
    """The secrets of one kernel. `digest` gives the keyed hash of bytes as hex digits; `own` are patterns of the person's."""

    def __init__(self, digest: Callable[[bytes], str], own: Callable[[], Sequence[re.Pattern[str]]] = tuple) -> None:
        self._digest, self._own = digest, own
        self._by_value: dict[str, Secret] = {}
        self._by_placeholder: dict[str, Secret] = {}
        self._known: OrderedDict[str, bool] = OrderedDict()
        self._memo: OrderedDict[str, str] = OrderedDict()

    # ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def mask(self, text: str) -> str:
        """Return `text` with a placeholder for each secret; what is masked already stays as it is."""
        if len(text) < _SHORTEST:
            return text
        if (kept := self._memo.get(text)) is not None:
            self._memo.move_to_end(text)
            return kept
        masked = self._masked(text)
        if len(text) >= _MEMO_FROM:
            self._memo[text] = masked
            while len(self._memo) > _MEMO:
                self._memo.popitem(last=False)
        return masked

    def masked(self, value: Any) -> Any:
        """Return a JSON value with `mask` applied to each text in it but those that name something; images stay."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list | tuple):
            made = [self.masked(item) for item in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, Mapping):
            if _is_picture(value):
                return value
            return {
                self.masked(key): item if key in _FIXED and isinstance(item, str) else self.masked(item)
                for key, item in value.items()
            }
        return value

    def _masked(self, text: str) -> str:
        """Mask until nothing new is found: a password that one line names may stand in another line without its name."""
        for _ in range(_ROUNDS):
            before, masked = len(self._known), self._once(text)
            if len(self._known) == before:
                return masked
        return self._once(text)

    def _once(self, text: str) -> str:
        found = [*find(text, self._own()), *self._known_in(text)]
        if not found:
            return text
        parts: list[str] = []
        at = 0
        for one in _without(_merged(found), text):
            parts += [text[at : one.start], self._keep(text[one.start : one.end], one.what, sure=one.sure).placeholder]
            at = one.end
        parts.append(text[at:])
        return "".join(parts)

    def _known_in(self, text: str) -> Iterator[Found]:
        """Yield where values that were met before stand, whole or, of those that are sure, cut off at one end."""
        for value in list(reversed(self._known))[:_SEARCHED]:
            if not self._known[value]:
                yield from _whole(text, value, self._by_value[value].what)
                continue
            least = _PIECE + (len(prefix[0]) if (prefix := _PREFIX.match(value)) else 0)
            yield from _pieces(text, value, least, self._by_value[value].what)

    # ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────

    def learn(self, value: str, what: str) -> None:
        """Take a value as a secret wherever it stands from now on, also quoted, in an address and in base64."""
        if len(value) < _LEARNT or _LOOKS_LIKE_ONE.search(value):
            return
        forms = {value, json.dumps(value)[1:-1], quote(value, safe=""), base64.b64encode(value.encode()).decode()}
        for form in forms:
            self._keep(form, what, sure=_is_sure(form))
            self._know(form, sure=_is_sure(form))

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Take as secrets the values of all variables whose names say so."""
        for name, value in environment.items():
            clean = value.strip()
            if secret_name(name) and not clean.startswith(("/", "~")) and not clean.isalpha():
                self.learn(clean, f"the value of {name}")

    def learn_variables(self, names: Mapping[str, Any]) -> None:
        """Take as secrets the texts that variables with a secret's name hold."""
        for name, value in names.items():
            if (
                type(value) is str
                and _LEARNT <= len(value) <= _LONGEST
                and value not in self._by_value
                and secret_name(name)
            ):
                self.learn(value, f"the value of {name}")

    def _keep(self, value: str, what: str, *, sure: bool) -> Secret:
        if (known := self._by_value.get(value)) is None:
            digest, size = self._digest(b"secret:" + value.encode("utf-8", "surrogatepass")), 8
            while (placeholder := f"⟦secret:{digest[:size]}⟧") in self._by_placeholder and size < len(digest):
                size += 4
            known = Secret(placeholder, value, what)
            self._by_value[value] = self._by_placeholder[placeholder] = known
            if len(value) >= _LEARNT and (sure or _is_sure(value) or not value.isalpha()):
                self._know(value, sure=len(value) >= _SURE and (sure or _is_sure(value)))
        return known

    def _know(self, value: str, *, sure: bool) -> None:
        if self._known.get(value) is not sure:
            self._known[value] = sure or self._known.get(value, False)
            self._memo.clear()

    # ── back ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def used(self, value: Any) -> list[Secret]:
        """Return the secrets whose placeholders are in a JSON value, each once; raise `ToolError` for one that is none."""
        found: dict[str, Secret] = {}
        for text in _texts(value):
            if _HIDDEN.search(text):
                raise ToolError(_NOT_SHOWN)
            if _MARK not in text:
                continue
            for match in _LOOKS_LIKE_ONE.finditer(text):
                if (secret := self._by_placeholder.get(match[0])) is None:
                    raise ToolError(_unknown(match[0]))
                found[secret.placeholder] = secret
        return list(found.values())

    def reveal(self, text: str) -> str:
        """Return `text` with the values in the place of their placeholders; raise `ToolError` for one that is none."""
        self.used(text)
        if _MARK not in text:
            return text
        return PLACEHOLDER.sub(lambda match: self._by_placeholder[match[0]].value, text)

    def opened(self, text: str) -> str:
        """Return `text` with the values that are known in the place of their placeholders: to compare, never to send."""
        if _MARK not in text:
            return text
        known = self._by_placeholder
        return PLACEHOLDER.sub(lambda match: known[match[0]].value if match[0] in known else match[0], text)

    def revealed(self, value: Any) -> Any:
        """Return a JSON value with `reveal` applied to each text in it."""
        if isinstance(value, str):
            return self.reveal(value)
        if isinstance(value, list | tuple):
            made = [self.revealed(item) for item in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, Mapping):
            return {self.revealed(key): self.revealed(item) for key, item in value.items()}
        return value


def has_placeholder(value: Any) -> bool:
    """Whether a JSON value has a placeholder in it."""
    return any(_MARK in text and PLACEHOLDER.search(text) for text in _texts(value))


def _is_picture(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is the bytes of an image or a document; a schema may have any `type`, also a list."""
    return value.get("type") == "base64" and isinstance(value.get("data"), str)


def pattern_of(text: str) -> re.Pattern[str]:
    """Return a person's pattern: plain text with `*` for anything but blanks and quotes, or a regular expression after `re:`.

    Raises `re.error` for an expression that is none.
    """
    if text.startswith("re:"):
        return re.compile(text[3:])
    return re.compile(r"[^\s\"']*".join(map(re.escape, text.split("*"))))


def _unknown(placeholder: str) -> str:
    return (
        f"{placeholder} stands for no secret that is known in this kernel, so nothing was done. Copy a placeholder exactly as it "
        "was shown to you, never make one up; after a restart of the kernel, read first where the secret stands."
    )


def _is_sure(value: str) -> bool:
    """Whether a value looks random enough to be known wherever it stands, and by a piece of it."""
    kinds = (any(c.isdigit() for c in value), any(c.islower() for c in value), any(c.isupper() for c in value))
    return len(value) >= _SURE and (sum(kinds) >= 2 or len(value) >= 24) and " " not in value


def _whole(text: str, value: str, what: str) -> Iterator[Found]:
    at = text.find(value) if value[:QUICK] in text and value[-QUICK:] in text else -1
    while at >= 0:
        end = at + len(value)
        around = text[max(0, at - 1) : at], text[end : end + 1]
        if not any(char.isalnum() for char in around):
            yield Found(at, end, what, sure=False)
        at = text.find(value, end)


def _pieces(text: str, value: str, least: int, what: str) -> Iterator[Found]:
    size = len(value)
    for head in (True, False):
        piece = value[:QUICK] if head else value[-QUICK:]
        at = text.find(piece)
        while at >= 0:
            start, end = at, at + len(piece)
            if head:
                while end - start < size and end < len(text) and text[end] == value[end - start]:
                    end += 1
            else:
                while end - start < size and start > 0 and text[start - 1] == value[size - 1 - (end - start)]:
                    start -= 1
            if end - start >= min(size, least if head else _PIECE):
                whole = end - start == size
                yield Found(start, end, what if whole else f"a piece of {what}", sure=whole)
            at = text.find(piece, end if head else at + len(piece))


def _merged(found: Iterable[Found]) -> Iterator[Found]:
    """Yield findings in order, those that overlap as one."""
    last: Found | None = None
    for one in sorted(found, key=lambda f: (f.start, -f.end)):
        if last is None or one.start >= last.end:
            if last is not None:
                yield last
            last = one
        elif one.end > last.end:
            last = Found(last.start, one.end, last.what, last.sure and one.sure)
    if last is not None:
        yield last


def _without(found: Iterable[Found], text: str) -> Iterator[Found]:
    """Yield findings without the placeholders that are in the text already; pieces beside one count if they are long."""
    if _MARK not in text:
        yield from found
        return
    taken = [match.span() for match in _LOOKS_LIKE_ONE.finditer(text)]
    for one in found:
        start, cut = one.start, False
        for a, b in taken:
            if b <= start or a >= one.end:
                continue
            cut = True
            if a - start >= _SHORTEST:
                yield Found(start, a, one.what, sure=False)
            start = max(start, b)
        if not cut or one.end - start >= _SHORTEST:
            yield Found(start, one.end, one.what, one.sure and not cut)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
