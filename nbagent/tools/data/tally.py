"""Counts the values of one column, stretch by stretch, within bounds: what each is, how often, what is missing, in what order.

Only plain values of Python and known libraries are counted; of any other object its type is all that is taken, so no code
of a stranger's class runs. It must not know of tables or of what is suspicious. Read `Tally.feed`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import operator
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nbagent.tools.data.kinds import class_name
from nbagent.tools.describe import has_plain_repr

_NUMBERS = frozenset({int, float, bool})
_PLAIN = frozenset({int, float, bool, str})
_DATES = frozenset({dt.date, dt.datetime})
_LONGEST = 200
"""Characters of a text that are counted; what follows is left out."""
_STEPS = 5_000  # different steps between points in time that are told apart
_GAPS = 5
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MISSING_TYPES = frozenset({"NaTType", "NAType"})


@dataclass(slots=True)
class Steps:
    """What lies between neighbours of a column of times: how often which step, the largest ones and where, and the order."""

    counts: Counter[int] = field(default_factory=Counter[int])
    largest: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs of a step and the point in time where it begins, the largest first."""
    back: int = 0
    """How often a point lies before its neighbour above."""
    equal: int = 0

    def feed(self, points: Sequence[int]) -> None:
        """Take neighbouring points."""
        steps = list(map(operator.sub, points[1:], points))
        self.back += sum(1 for step in steps if step < 0)
        self.equal += steps.count(0)
        ahead = [(step, at) for step, at in zip(steps, points, strict=False) if step > 0]
        self.largest = sorted({*self.largest, *ahead}, reverse=True)[:_GAPS] if len(ahead) < 64 else self._merged(ahead)
        if len(self.counts) < _STEPS:
            self.counts.update([step for step, _ in ahead])

    def _merged(self, ahead: list[tuple[int, int]]) -> list[tuple[int, int]]:
        import heapq  # noqa: PLC0415  (only of large tables)

        return heapq.nlargest(_GAPS, {*heapq.nlargest(_GAPS, ahead), *self.largest})


class Tally:
    """The counts of one column. `most` bounds how many different values are kept; `times` that they are points in time."""

    def __init__(self, most: int, *, times: bool = False, rows: bool = True) -> None:
        self.most, self.times = most, times
        self.rows = 0
        self.counts: Counter[Any] = Counter()
        self.missing: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        """How many values are of which type; those of which only the type is known are in `strange`, too."""
        self.strange: Counter[str] = Counter()
        self.overflow = False
        """There are more different values than were kept."""
        self.cut = False
        """Some texts were longer than is compared."""
        self.low: Any = None
        self.high: Any = None
        self.total = 0.0
        self.steps = Steps()
        self.even: list[Any] = []
        """Numbers taken evenly from first to last, where not all different ones can be kept (`rows` False)."""
        self._every, self._at = (0 if rows else 1), 0
        self.rising = True
        """Whether each number was larger than the one before: they are all different, however many there are."""
        self._codes: array[int] | None = array("i") if rows else None
        self._numbered: dict[Any, int] = {}
        self._last: Any = None

    @property
    def present(self) -> int:
        """How many values there are that are not missing."""
        return self.rows - self.missing.total()

    @property
    def codes(self) -> array[int] | None:
        """The values row by row as numbers, equal ones with equal numbers; None where they can't be compared, or are not kept."""
        if (
            self._codes is not None and len(self._codes) < self.rows
        ):  # all different so far: each is a number of its own
            self._codes.extend(range(len(self._codes), self.rows))
        return self._codes

    @property
    def distinct(self) -> int:
        """How many different values were counted."""
        return len(self.counts)

    def feed(self, values: list[Any], *, goes_on: bool) -> None:
        """Take the values of the next rows; `goes_on` says that they follow the ones before without a gap."""
        self.rows += len(values)
        types = Counter(map(type, values))
        here = values
        if not types.keys() <= {int, str, bool}:
            for cls, count in types.items():
                if self._way(cls) != "missing":
                    self.kinds[class_name(cls)] += count
            values = self._plain(values, types)
            types = Counter(map(type, values))
            here = [value for value in values if value is not None] if types.pop(type(None), 0) else values
        else:
            self.kinds.update({class_name(cls): count for cls, count in types.items()})
        if str in types:
            values, here = self._shortened(values, here)
        self._order(here, types, goes_on=goes_on)
        self._count(here)
        if self._codes is not None and (self._numbered or len(self.counts) < self.rows):
            self._number(values)

    def _plain(self, values: list[Any], types: Counter[type]) -> list[Any]:
        """Return the values with what is missing as None, scalars of numpy as Python's, strangers out of the way."""
        named = {cls: self._way(cls) for cls in types}
        if "date" in named.values() and not set(named.values()) <= {"date", "missing"}:
            named = {cls: "text" if way == "date" else way for cls, way in named.items()}
        for cls, way in named.items():
            if way == "missing":
                self.missing[{"NoneType": "None", "NAType": "NA", "NaTType": "NaT"}.get(cls.__name__, "None")] += types[
                    cls
                ]
            elif way == "strange":
                self.strange[class_name(cls)] += types[cls]
                self._codes = None
        if set(named.values()) == {"plain"} and float not in types:
            return values
        made = [_value(value, named[type(value)]) for value in values] if _needs(named) else values
        if float in types or not {"item", "decimal"}.isdisjoint(named.values()):
            none = made.count(None)
            made = [None if value.__class__ is float and value != value else value for value in made]  # noqa: PLR0124
            lost = made.count(None) - none
            self.missing["NaN"] += lost
            self.kinds["float"] -= min(lost, self.kinds["float"])
        if set(named.values()) <= {"date", "missing"} and "date" in named.values():
            self.times = True
        return made

    def _way(self, cls: type) -> str:
        if cls is type(None) or cls.__name__ in _MISSING_TYPES:
            return "missing"
        if cls in _PLAIN:
            return "plain"
        if cls is decimal.Decimal:
            return "decimal"
        if cls in _DATES or (cls.__name__ == "Timestamp" and has_plain_repr(cls)):
            return "date"
        if cls.__module__ == "numpy" and any(
            base.__name__ in {"number", "str_", "bool_", "bool"} for base in cls.__mro__
        ):
            return "item"
        return "text" if has_plain_repr(cls) else "strange"

    def _shortened(self, values: list[Any], here: list[Any]) -> tuple[list[Any], list[Any]]:
        if not any(len(value) > _LONGEST for value in here if type(value) is str):
            return values, here
        self.cut = True
        values = [value[:_LONGEST] if type(value) is str else value for value in values]
        return values, [value for value in values if value is not None]

    def _order(self, here: list[Any], types: Counter[type], *, goes_on: bool) -> None:
        if not here or not types.keys() <= _NUMBERS:
            self.rising = self.rising and not here
            return
        low, high = min(here), max(here)
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        self.total += float(sum(here)) if abs(high) < 1e300 and abs(low) < 1e300 else 0.0
        if self._every:
            self._take_evenly(here)
        if self.rising:
            after = self._last is None or self._last < here[0]
            self.rising = after and all(map(operator.lt, here, here[1:]))
        if self.times:
            self.steps.feed([self._last, *here] if goes_on and self._last is not None else here)
            if not goes_on and self._last is not None and here[0] < self._last:
                self.steps.back += 1
        self._last = here[-1]

    def _take_evenly(self, here: list[Any]) -> None:
        self.even += here[-self._at % self._every :: self._every]
        self._at += len(here)
        while len(self.even) > self.most:
            self.even = self.even[::2]
            self._every *= 2

    def _count(self, here: list[Any]) -> None:
        if self.overflow:
            self.counts.update([value for value in here if value in self.counts])
            return
        self.counts.update(here)
        if len(self.counts) > self.most:
            self.overflow = True
            for value in list(self.counts)[self.most :]:
                del self.counts[value]

    def _number(self, values: list[Any]) -> None:
        known, before = self._numbered, self.rows - len(values)
        codes = self._codes
        assert codes is not None
        if len(codes) < before:
            codes.extend(range(len(codes), before))
            known.update(zip(itertools.islice(self.counts, before), range(before), strict=True))
        codes.extend([known.setdefault(value, len(known)) for value in values])


def _needs(ways: dict[type, str]) -> bool:
    return not set(ways.values()) <= {"plain", "missing"} or any(
        way == "missing" and cls is not type(None) for cls, way in ways.items()
    )


def _value(value: Any, way: str) -> Any:
    """Return one value as a plain one; None where it is missing or a stranger's."""
    match way:
        case "plain":
            return value
        case "decimal":
            return math.nan if value.is_snan() else float(value)
        case "item":
            return value.item()
        case "date":
            return _ticks(value)
        case "text":
            return repr(value)
        case _:
            return None


def _ticks(value: dt.date) -> int:
    """Return a date as nanoseconds since 1970."""
    if not isinstance(value, dt.datetime):
        return (value.toordinal() - 719_163) * 86_400 * 10**9
    known = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    since = known - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
