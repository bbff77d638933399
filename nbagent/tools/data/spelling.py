"""How texts spell numbers, dates and "nothing": what a column of texts holds, whether of a table or of a file.

Patterns only, each linear in the text; nothing of tables or files is known here. Read `reading_of`, then `date_of`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

NOTHING = frozenset(
    {"na", "n/a", "#n/a", "nan", "-nan", "null", "none", "nil", "nat", "<na>", "-", "--", "---", "?", "??", ".", "..", "missing",
     "unknown", "unbekannt", "inconnu", "k.a.", "k. a.", "keine angabe", "not available", "not applicable", "undefined", "tbd",
     "#ref!", "#div/0!", "#value!", "#name?", "#num!", "(null)", "\\n", "n.a.", "n.d.", "empty", "(blank)"}
)  # fmt: skip
"""Words (in small letters) that stand for a value that is not there."""

READ_AS_MISSING = frozenset(
    {"", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
     "NULL", "NaN", "None", "n/a", "nan", "null"}
)  # fmt: skip
"""Texts that pandas reads as missing without being told."""

Kind = Literal["empty", "integer", "number", "date", "datetime", "time", "boolean", "text"]
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}, {"ja", "nein"}, {"oui", "non"}, {"on", "off"})

_PLAIN = re.compile(r"[+-]?(?:\d{1,7}|\d{9,40})(?:\.\d{1,40})?\Z")  # eight digits may be a date
_INTEGER = re.compile(r"[+-]?\d{1,40}\Z")
_MONEY = re.compile(r"(?:[$€£¥]|USD|EUR|GBP|CHF)\s{0,3}|\s{0,3}(?:[$€£¥%]|USD|EUR|GBP|CHF)\Z")
_STYLES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (decimal, thousands, re.compile(shape))
    for decimal, thousands, shape in (
        (".", "", r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,4})?\Z"),
        (",", "", r"[+-]?\d{0,40}(?:,\d{1,40})?(?<=\d)(?:[eE][+-]?\d{1,4})?\Z"),
        (".", ",", r"[+-]?\d{1,3}(?:,\d{3}){0,12}(?:\.\d{1,40})?\Z|[+-]?\d{1,40}(?:\.\d{1,40})?\Z"),
        (",", ".", r"[+-]?\d{1,3}(?:\.\d{3}){0,12}(?:,\d{1,40})?\Z|[+-]?\d{1,40}(?:,\d{1,40})?\Z"),
        (".", "'", r"[+-]?\d{1,3}(?:['’]\d{3}){0,12}(?:\.\d{1,40})?\Z"),
        (",", " ", r"[+-]?\d{1,3}(?:[ \u00a0\u202f]\d{3}){0,12}(?:,\d{1,40})?\Z"),
        (".", " ", r"[+-]?\d{1,3}(?:[ \u00a0\u202f]\d{3}){0,12}(?:\.\d{1,40})?\Z"),
    )
)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+\Z")
_LOOKED_AT = 2_000
_MOSTLY = 0.9


@dataclass(frozen=True, slots=True)
class Date:
    """How a text spells a date: `form` is strftime's, `clock` whether a time of day follows, `value` None if there is no such day."""

    form: str
    clock: bool
    value: dt.date | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What the texts of a column are. `strays` are some that are none of it; `share` is how many of the texts are.

    For numbers: decimal and thousands signs, `money` where signs of currency or percent stand with them, `codes` where
    leading zeros would be lost. For dates: strftime's form, "" where forms are mixed; `unsure` where the sign may mean another thing.
    """

    kind: Kind
    share: float = 1.0
    decimal: str = "."
    thousands: str = ""
    form: str = ""
    money: bool = False
    codes: bool = False
    unsure: bool = False
    strays: tuple[str, ...] = ()


def is_nothing(text: str) -> bool:
    """Whether a text is a word for a missing value."""
    return len(text) <= 16 and text.strip().lower() in NOTHING


def reading_of(texts: Iterable[str], *, comma_is_decimal: bool = False) -> Reading:
    """Return what most of the texts are (nine of ten), words for nothing left out; kind text where they are nothing special.

    `comma_is_decimal`: what speaks for it outside of this column, as a file with semicolons.
    """
    said = [text.strip() for text in texts]
    said = [text for text in said if text and not is_nothing(text)][:_LOOKED_AT]
    if not said:
        return Reading("empty")
    if all(map(_PLAIN.match, said)):
        return _plain_numbers(said)
    small = {text.lower() for text in said}
    if any(small <= pair for pair in _BOOLEANS) and len(small) == 2:
        return Reading("boolean")
    dates = _as_dates(said)
    if dates is not None and (dates.share >= _MOSTLY):
        return dates
    numbers = _as_numbers(said, comma_is_decimal=comma_is_decimal)
    return numbers if numbers is not None and numbers.share >= _MOSTLY else Reading("text")


def _plain_numbers(said: Sequence[str]) -> Reading:
    """Read numbers that nothing stands in but digits and a decimal point, and that are no dates: most columns of most files."""
    whole = not any("." in text for text in said)
    codes = whole and any(len(text) > 1 and text[0] == "0" for text in said)
    return Reading("integer" if whole else "number", codes=codes)


def _as_numbers(said: Sequence[str], *, comma_is_decimal: bool) -> Reading | None:
    bare = [_MONEY.sub("", text) for text in said]
    money = any(plain != text for plain, text in zip(bare, said, strict=True))
    fits = [(sum(1 for text in bare if shape.match(text)), decimal, thousands) for decimal, thousands, shape in _STYLES]
    best = max(count for count, _, _ in fits)
    if not best:
        return None
    decimal, thousands = next((d, t) for count, d, t in fits if count == best)
    grouped = [text for text in bare if "," in text and _GROUPED.match(text)]
    unsure = False
    if (decimal, thousands) == (",", "") and grouped and len(grouped) == sum("," in text for text in bare):
        unsure = not any(text.count(",") > 1 for text in grouped)
        if not comma_is_decimal:
            decimal, thousands = ".", ","
    shape = next(shape for d, t, shape in _STYLES if (d, t) == (decimal, thousands))
    strays = tuple(text for plain, text in zip(bare, said, strict=True) if not shape.match(plain))
    whole = all(_INTEGER.match(text) for text in bare if shape.match(text))
    codes = whole and sum(len(text) > 1 and text[0] == "0" and text.isdigit() for text in bare) > 0
    return Reading(
        "integer" if whole else "number",
        best / len(said),
        decimal,
        thousands,
        money=money,
        codes=codes,
        unsure=unsure,
        strays=tuple(dict.fromkeys(strays))[:5],
    )


# ── dates ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_CLOCK = r"(?P<clock>[ T]\d{1,2}:\d{2}(?P<sec>:\d{2}(?P<frac>[.,]\d{1,9})?)?(?P<zone> ?Z|[+-]\d{2}:?\d{2})?)?\Z"
_MONTHS = {
    name: n
    for n, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1)
}
_DATES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (form, re.compile(shape + _CLOCK))
    for form, shape in (
        ("%Y-%m-%d", r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"),
        ("%Y/%m/%d", r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})"),
        ("%Y.%m.%d", r"(?P<y>\d{4})\.(?P<m>\d{1,2})\.(?P<d>\d{1,2})"),
        ("%d.%m.%Y", r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4}|\d{2})"),
        ("%d/%m/%Y", r"(?P<d>\d{1,2})/(?P<m>\d{1,2})/(?P<y>\d{4}|\d{2})"),
        ("%d-%m-%Y", r"(?P<d>\d{1,2})-(?P<m>\d{1,2})-(?P<y>\d{4}|\d{2})"),
        ("%d %b %Y", r"(?P<d>\d{1,2}) (?P<name>[A-Za-z]{3}) (?P<y>\d{4})"),
        ("%d-%b-%Y", r"(?P<d>\d{1,2})-(?P<name>[A-Za-z]{3})-(?P<y>\d{4}|\d{2})"),
        ("%b %d, %Y", r"(?P<name>[A-Za-z]{3}) (?P<d>\d{1,2}), (?P<y>\d{4})"),
        ("%Y%m%d", r"(?P<y>(?:19|20)\d{2})(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])"),
    )
)
_TIME = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?\Z")
_SLASHED = {"%d/%m/%Y": "%m/%d/%Y", "%d-%m-%Y": "%m-%d-%Y"}


def date_of(text: str, *, month_first: bool = False) -> Date | None:
    """Return how a text spells a date, None where it spells none. Without `month_first` 3/4 is the third of April."""
    if not 6 <= len(text) <= 40:
        return None
    for form, shape in _DATES:
        if (found := shape.match(text)) is not None:
            return _date(form, found, month_first=month_first)
    return None


def _date(form: str, found: re.Match[str], *, month_first: bool) -> Date | None:
    parts = found.groupdict()
    year, day = parts["y"], int(parts["d"])
    month = _MONTHS.get(parts["name"].lower(), 0) if parts.get("name") else int(parts["m"])
    if parts.get("name") and not month:
        return None
    if month_first and form in _SLASHED:
        form, day, month = _SLASHED[form], month, day
    whole = int(year) if len(year) == 4 else 2000 + int(year) if int(year) < 69 else 1900 + int(year)
    try:
        value = dt.date(whole, month, day)
    except ValueError:
        value = None
    form = form.replace("%Y", "%y") if len(year) == 2 else form
    return Date(form + _clock(parts), bool(parts["clock"]), value)


def _clock(parts: dict[str, str | None]) -> str:
    clock = parts["clock"]
    if not clock:
        return ""
    seconds = (":%S" if parts["sec"] else "") + (".%f" if parts["frac"] else "")
    return f"{clock[0]}%H:%M{seconds}" + ("%z" if parts["zone"] else "")


def month_is_first(texts: Iterable[str]) -> bool | None:
    """Whether slashed dates have the month first: True, False, or None where every one can be read both ways."""
    day = month = 0
    for text in texts:
        found = date_of(text)
        if found is None or found.form.partition(" ")[0].replace("%y", "%Y") not in _SLASHED:
            continue
        swapped = date_of(text, month_first=True)
        day += found.value is not None and (swapped is None or swapped.value is None)
        month += found.value is None and swapped is not None and swapped.value is not None
    return None if day == month == 0 else month > day


def _as_dates(said: Sequence[str]) -> Reading | None:
    clocks = sum(bool(_TIME.match(text)) for text in said)
    if clocks >= _MOSTLY * len(said):
        return Reading("time", clocks / len(said), strays=_but(said, lambda text: bool(_TIME.match(text))))
    month_first = month_is_first(said)
    dates = [date_of(text, month_first=bool(month_first)) for text in said]
    found = [date for date in dates if date is not None]
    if not found:
        return None
    forms = Counter(date.form for date in found)
    compact = forms.most_common(1)[0][0].startswith("%Y%m%d")
    if compact and len(found) < len(said):  # else they are numbers that happen to look so
        return None
    slashed = any(form[:8].replace("%y", "%Y") in {"%d/%m/%Y", "%d-%m-%Y"} for form in forms)
    return Reading(
        "datetime" if any(date.clock for date in found) else "date",
        len(found) / len(said),
        form=next(iter(forms)) if len(forms) == 1 else "",
        unsure=slashed and month_first is None,
        strays=_but(said, lambda text: date_of(text) is not None),
    )


def _but(said: Sequence[str], fits: object) -> tuple[str, ...]:
    assert callable(fits)
    return tuple(dict.fromkeys(text for text in said if not fits(text)))[:5]
