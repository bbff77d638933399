"""What a profile says of numbers: range, quantiles, and the values that can hardly be meant as they stand.

Read `of_numbers`.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from typing import Any

from nbagent.tools.data.moments import Findings
from nbagent.tools.data.tally import Tally

_STANDS_FOR_NOTHING = frozenset(
    {-1, -9, -99, -999, -9999, -99999, -999999, 99, 999, 9999, 99999, 999999, 9999999, 99999999, 999999999, -8, -88, -888, 888, 8888,
     -2147483648, 2147483647, 32767, -32768, 1e20, -1e20, 1e30, -1e30}
)  # fmt: skip
_YEARS = frozenset({1900, 1970, 2099, 9999, 1899, 2999})
_FENCE = 3.0  # times the distance of the quartiles: what lies further out is named
_FEW = 0.05
_BITS = 1_000  # of whole numbers that are reckoned with: a float holds about as many


def number(value: Any) -> str:
    """Return a number in short; whole ones as they are."""
    if type(value) is float:
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    if type(value) is int and value.bit_length() > _BITS:
        return f"an int of {value.bit_length():,} bits"
    return str(value)


def of_numbers(tally: Tally, scale: int = 0) -> tuple[str, Findings]:
    """Return the line and the findings of a column of numbers; `scale`: they are spans of so many nanoseconds."""
    counts, found = tally.counts, Findings()
    if any(type(end) is int and end.bit_length() > _BITS for end in (tally.low, tally.high)):
        return "", [(3, f"whole numbers of more than {_BITS:,} bits, which were not looked into")]
    part = ""
    if tally.overflow and tally.even:  # the different ones that were kept are the first ones, and stand for no others
        counts = Counter(tally.even)
        part = f" (among {len(tally.even):,} values, taken evenly)"
    values = sorted(value for value in counts if type(value) is not str)
    if values and not (math.isfinite(values[0]) and math.isfinite(values[-1])):
        finite = [value for value in values if math.isfinite(value)]
        found.append((7, f"{sum(counts[value] for value in values if not math.isfinite(value)):,} infinite{part}"))
        values = finite
    if not values:
        return "", found
    spread = _Spread(values, counts)
    low, high = values[0], values[-1]
    if tally.overflow and tally.low is not None and math.isfinite(tally.low) and math.isfinite(tally.high):
        low, high = tally.low, tally.high
    mean = tally.total / tally.present if tally.overflow and tally.present else spread.mean
    names = [number(q / 1e9 * scale) if scale else number(q) for q in (low, *spread.quartiles, high, float(mean))]
    about = "about " if part else ""
    named = ("min", "25%", "median", "75%", "max", "mean")
    said = " · ".join(f"{n} {about * (n in named[1:4])}{v}" for n, v in zip(named, names, strict=True))
    said += " (seconds)" if scale else ""
    found += [(weight, f"{text}{part}") for weight, text in _odd(spread)]
    if (
        tally.missing.total()
        and not scale
        and tally.kinds.keys() == {"float"}
        and all(v.is_integer() for v in values[:1000])
    ):
        said += ", all whole"
    return said, found


class _Spread:
    """Finite values in order, how often each comes, and what follows from that."""

    def __init__(self, values: list[Any], counts: Counter[Any]) -> None:
        self.values, self.counts = values, counts
        single = len(counts) == counts.total()
        self.total = len(values) if single else sum(map(counts.__getitem__, values))
        self.mean = math.fsum(values) / len(values) if single else math.fsum(v * counts[v] for v in values) / self.total
        sums = None if single else list(itertools.accumulate(map(counts.__getitem__, values)))
        self.quartiles = [self._at(share * (self.total - 1), sums) for share in (0.25, 0.5, 0.75)]
        first, third = (self._at(math.floor(share * (self.total - 1)), sums) for share in (0.25, 0.75))
        fence = (third - first) * _FENCE
        below, above = bisect.bisect_left(values, first - fence), bisect.bisect_right(values, third + fence)
        self.far = [*values[:below], *values[above:]] if fence else []

    def _at(self, place: float, sums: list[int] | None) -> Any:
        """Return the value at a place (from 0) in the order of all values, between two of them as much of each as pandas takes."""
        low, high = (
            self.values[n if sums is None else bisect.bisect_right(sums, n)]
            for n in (math.floor(place), math.ceil(place))
        )
        part = place - math.floor(place)
        return low if low == high else low * (1 - part) + high * part

    def many(self, values: list[Any]) -> int:
        """Return how often these come in all."""
        return sum(map(self.counts.__getitem__, values))


def _odd(spread: _Spread) -> Findings:
    found, values, total = Findings(), spread.values, spread.total
    if len(values) < 3:
        return found
    placeholders = sorted(v for v in _STANDS_FOR_NOTHING if v in spread.counts and _stands_out(v, spread))
    if placeholders:
        named = ", ".join(f"{number(v)} ({spread.counts[v]:,})" for v in placeholders[:4])
        found.append((9, f"stands for missing? {named}"))
    found += _years(spread)
    below = [v for v in values[: bisect.bisect_left(values, 0)] if v not in placeholders]
    negative = spread.many(below)
    few = 0 < negative < total * _FEW and spread.quartiles[0] >= 0
    if few:
        found.append((6, f"{negative:,} negative among positive: {_some(below)}"))
    rest = [v for v in spread.far if v not in placeholders and not (v < 0 and few)]
    if rest and (many := spread.many(rest)) <= total * _FEW:
        found.append((4, f"{many:,} far outside the quartiles: {_some(rest)}"))
    return found


def _stands_out(value: Any, spread: _Spread) -> bool:
    """Whether a value that often stands for missing does so here: it lies apart from all others, or comes strangely often."""
    values, count = spread.values, spread.counts[value]
    if value == -1:
        return values[0] == -1 and values[1] >= 0 and len(values) > 5
    if value not in {values[0], values[-1]} and value not in spread.far:
        return False
    near = values[1] if value == values[0] else values[-2] if value == values[-1] else value
    apart = abs(near - value) > max(1, (values[-2] - values[1]) * 0.5)
    often = count >= 3 and count > 5 * spread.total / len(values)
    return (apart or often) if value in spread.far else (apart and often)


def _years(spread: _Spread) -> Findings:
    values = spread.values
    if len(values) < 5 or not 1850 <= values[1] <= values[-2] <= 2100 or any(v != int(v) for v in values):
        return []
    middle = spread.quartiles[1]
    odd = [v for v in (values[0], values[-1]) if v in _YEARS and abs(v - middle) > 20]
    named = ", ".join(f"{number(v)} ({spread.counts[v]:,})" for v in odd)
    return [(7, f"years that stand for nothing? {named}")] if odd else []


def _some(values: list[Any]) -> str:
    ends = [values[0], *values[1:2], *values[-2:]] if len(values) > 3 else values
    return ", ".join(dict.fromkeys(number(v) for v in ends)) + (", …" if len(values) > len(ends) else "")
