"""What a profile says of texts: what they spell, and what is wrong with them: blanks, codes for nothing, spellings, letters.

Read `of_texts`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from nbagent.tools.data.moments import Findings
from nbagent.tools.data.spelling import date_of, is_nothing, month_is_first, reading_of
from nbagent.tools.secrets import mask

_LOOKED_AT = 20_000  # different texts
_UNSEEN = re.compile("[\u00a0\u00ad\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\u3000]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_GARBLED = re.compile(
    "Ã[\u0080-\u00bf\u0192\u02c6\u0152-\u0178\u2013-\u203a\u20ac\u2122]|â€|Â[\u00a0-\u00bf]|ï¿½|\ufffd|Ð[\u00b0-\u00bf]Ñ"
)
_MARKUP = re.compile(r"&(?:amp|lt|gt|quot|nbsp|#\d{1,6});|</?(?:p|br|b|i|div|span|a)\b[^<>]{0,60}>")


def quoted(text: str) -> str:
    """Return a text as code would write it, in short, without what looks like a key in it."""
    shown = mask(text)
    return repr(shown) if len(shown) <= 40 else repr(shown[:40]) + "…"


def of_texts(counts: Counter[str]) -> tuple[str, Findings, int]:
    """Return what the texts spell, the findings, and how many are blank or a word for nothing."""
    found = Findings()
    blank = {text: n for text, n in counts.items() if not text.strip()}
    nothing = {text: n for text, n in counts.items() if text not in blank and is_nothing(text)}
    if blank:
        found.append((6, f"{sum(blank.values()):,} empty or blank"))
    rest = {text: n for text, n in counts.items() if text not in blank and text not in nothing}
    if nothing and len(rest) > 1:
        named = ", ".join(f"{quoted(text)} ({n:,})" for text, n in sorted(nothing.items(), key=_often)[:4])
        found.append((7, f"stands for missing? {named}"))
    sample = dict(list(rest.items())[:_LOOKED_AT])
    said, spelled = _spelled(sample)
    found += spelled
    found += _where(sample, lambda text: text != text.strip(), 6, "with blanks before or after")
    found += _where(
        sample, lambda text: _GARBLED.search(text) is not None, 8, "look garbled (read in a wrong encoding)"
    )
    found += _where(
        sample, lambda text: _UNSEEN.search(text) is not None, 6, "with unseen characters (no-break or zero-width)"
    )
    found += _where(sample, lambda text: _CONTROL.search(text) is not None, 6, "with control characters")
    found += _where(sample, lambda text: _MARKUP.search(text) is not None, 3, "with HTML in them")
    found += _where(
        sample,
        lambda text: not text.isascii() and unicodedata.normalize("NFC", text) != text,
        4,
        "with accents as characters of their own",
    )
    found += _variants(sample) if not said else []
    return said, found, sum(blank.values()) + (sum(nothing.values()) if len(rest) > 1 else 0)


def _often(item: tuple[str, int]) -> int:
    return -item[1]


def _where(texts: dict[str, int], odd: Callable[[str], bool], weight: int, words: str) -> Findings:
    hits = [text for text in texts if odd(text)]
    if not hits:
        return []
    many = sum(texts[text] for text in hits)
    return [
        (weight, f"{many:,} {words}: {', '.join(quoted(text) for text in hits[:3])}{', …' if len(hits) > 3 else ''}")
    ]


def _spelled(texts: dict[str, int]) -> tuple[str, Findings]:
    """Return what the texts are besides texts, and that as a finding."""
    read = reading_of(texts)
    stray = (
        f"; all but {', '.join(map(quoted, read.strays[:3]))}{', …' if len(read.strays) > 3 else ''}"
        if read.strays
        else ""
    )
    match read.kind:
        case "integer" | "number" if read.codes:
            return "digits with leading zeros: codes, keep them as text", []
        case "integer" | "number":
            signs = [f"decimal sign {read.decimal!r}"] if read.decimal != "." else []
            signs += [f"thousands {read.thousands!r}"] if read.thousands else []
            signs += ["with signs of currency or percent"] if read.money else []
            how = f" ({', '.join(signs)})" if signs else ""
            return "numbers as text", [(8, f"numbers stored as text{how}{stray}")]
        case "date" | "datetime":
            return "dates as text", _dates(texts, read.form, unsure=read.unsure, stray=stray)
        case "time":
            return "times of day as text", []
        case "boolean":
            return "yes/no as text", []
        case _:
            return "", []


def _dates(texts: dict[str, int], form: str, *, unsure: bool, stray: str) -> Findings:
    how = f" ({form})" if form else " (in more than one form)"
    found: Findings = [(7 if form else 8, f"dates stored as text{how}{stray}")]
    month_first = bool(month_is_first(text.strip() for text in texts))
    if unsure:
        found.append((7, "day and month can't be told apart: no day is above 12"))
    read = ((text, n, date_of(text.strip(), month_first=month_first)) for text, n in texts.items())
    impossible = {text: n for text, n, date in read if date is not None and date.value is None}
    if impossible:
        named = ", ".join(quoted(text) for text in list(impossible)[:3])
        found.append((9, f"{sum(impossible.values()):,} on days that do not exist: {named}"))
    return found


def _variants(texts: dict[str, int]) -> Findings:
    """Find texts that differ by case, blanks or accents only: they are often meant to be the same."""
    if len(texts) > 5_000 or all(n == 1 for n in texts.values()):
        return []
    groups: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        groups[plain_form(text)].append(text)
    same = sorted((group for group in groups.values() if len(group) > 1), key=len, reverse=True)
    if not same:
        return []
    named = "; ".join(" / ".join(quoted(text) for text in _most(group, texts)) for group in same[:3])
    return [(7, f"{len(same):,} spelled in more than one way: {named}{'; …' if len(same) > 3 else ''}")]


def _most(group: Iterable[str], texts: dict[str, int]) -> list[str]:
    return sorted(group, key=lambda text: -texts[text])[:4]


def plain_form(text: str) -> str:
    """Return a text without what people write in more than one way: case, blanks, signs, accents."""
    apart = unicodedata.normalize("NFKD", text).casefold()
    return "".join(c for c in apart if c.isalnum()) or apart.strip()
