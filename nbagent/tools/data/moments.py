"""What a profile says of points in time: range, order, frequency, gaps, twins, days that can hardly be meant.

Points are integers, so many nanoseconds each. Read `of_times`.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections import Counter

from nbagent.tools.data.tally import Steps, Tally

Findings = list[tuple[int, str]]
"""What is suspicious: how much (10 is the worst), and in words."""

_SECOND = 10**9
_DAY = 86_400 * _SECOND
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (points have no zone here)
_EARLY = (dt.date(1850, 1, 1) - _EPOCH.date()).days
_SENTINELS = frozenset(
    (dt.date.fromisoformat(day) - _EPOCH.date()).days
    for day in ("1900-01-01", "1899-12-30", "1899-12-31", "1970-01-01", "1753-01-01", "0001-01-01", "1601-01-01", "2099-12-31",
                "2999-12-31", "9999-12-31")
)  # fmt: skip
"""Days, counted from 1970, that programs write where there is no date."""
_UNITS = (
    (365 * _DAY, "y"),
    (_DAY, "d"),
    (3_600 * _SECOND, "h"),
    (60 * _SECOND, "min"),
    (_SECOND, "s"),
    (10**6, "ms"),
    (10**3, "µs"),
)


def share(part: int, whole: int) -> str:
    """Return a part in percent, never 0 % or 100 % of what is only nearly so."""
    percent = 100 * part / max(1, whole)
    if 0 < percent < 0.1:
        return "<0.1%"
    return ">99.9%" if 99.9 < percent < 100 else f"{percent:.1f}%".replace(".0%", "%")


def moment(ticks: int, unit: int, zone: str = "") -> str:
    """Return a point in time as text, as the clocks of its zone show it: the day alone at midnight."""
    try:
        at = _EPOCH + dt.timedelta(microseconds=ticks * unit // 1000)
        if zone and zone != "UTC":
            at = at.replace(tzinfo=dt.UTC).astimezone(_zone(zone)).replace(tzinfo=None)
    except OverflowError:
        return f"year {1970 + ticks * unit // (_DAY * 365)}"
    return at.date().isoformat() if at.time() == dt.time() else at.isoformat(sep=" ", timespec="auto")


def _zone(name: str) -> dt.tzinfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (
        ValueError,
        OSError,
        zoneinfo.ZoneInfoNotFoundError,
    ):  # "UTC+02:00": libraries name zones in ways of their own
        return dt.UTC


def span(nanoseconds: int) -> str:
    """Return a span of time in its largest fitting unit: `1 h`, `36.5 d`."""
    for size, name in _UNITS:
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {name}"
    return f"{nanoseconds} ns"


def of_times(tally: Tally, unit: int, zone: str, *, whole: bool, today: dt.date) -> tuple[str, Findings]:
    """Return the line and the findings of a column of times; `whole`: all rows of the table were counted."""
    if not tally.counts:
        return "", []
    low, high = min(tally.counts), max(tally.counts)
    if tally.overflow and tally.low is not None:
        low, high = tally.low, tally.high
    found: Findings = []
    days = Counter[int]()
    for ticks, count in tally.counts.items():
        days[ticks * unit // _DAY] += count
    odd = [(day, count) for day, count in days.items() if day in _SENTINELS]
    if odd and len(days) > len(odd):
        named = ", ".join(f"{moment(day, _DAY)} ({count:,})" for day, count in odd[:4])
        found.append((8, f"days that stand for nothing? {named}"))
    least = "at least " if tally.overflow else ""
    now = (today - _EPOCH.date()).days
    later = sum(count for day, count in days.items() if day > now and day not in _SENTINELS)
    if later and later < tally.present / 2:
        found.append((5, f"{least}{later:,} later than today ({today})"))
    early = sum(count for day, count in days.items() if day < _EARLY and day not in _SENTINELS)
    if early and early < tally.present / 2:
        found.append((6, f"{least}{early:,} before 1850, the first {moment(low, unit, zone)}"))
    said = [f"{moment(low, unit, zone)} … {moment(high, unit, zone)}"]
    if zone:
        said.append(f"time zone {zone}")
    rhythm, gaps = _rhythm(tally, unit, zone, whole=whole)
    return ", ".join([*said, *rhythm]), [*found, *gaps]


def _rhythm(tally: Tally, unit: int, zone: str, *, whole: bool) -> tuple[list[str], Findings]:
    """Return order and frequency, and the gaps where there is a frequency."""
    if tally.present < 3 or tally.distinct < 3:
        return [], []
    steps, found = tally.steps, Findings()
    ordered = not steps.back
    said = ["in order" if ordered else f"not in order ({steps.back:,} {_times(steps.back)} back)"]
    twins = tally.present - tally.distinct
    if ordered and 0 < twins < tally.present * 0.05 and not tally.overflow:
        found.append((5, f"{twins:,} {_times(twins)} the same time twice"))
    if not ordered:
        if not whole or tally.overflow:
            return [*said, "so gaps were not looked for"], found
        steps = Steps()
        steps.feed(sorted(tally.counts))
    every, shape = _frequency(steps.counts, unit)
    if not every:
        return [
            *said,
            *([f"no regular step (the median is {span(_median(steps.counts) * unit)})"] if steps.counts else []),
        ], found
    said.append(shape)
    limit = every * _slack(every * unit, shape)
    wide = sum(count for step, count in steps.counts.items() if step > limit)
    if wide:
        longest = ", ".join(
            f"{span(step * unit)} after {moment(at, unit, zone)}" for step, at in steps.largest[:3] if step > limit
        )
        found.append((7, f"{wide:,} {'gap' if wide == 1 else 'gaps'} longer than the usual step: {longest}"))
    return said, found


def _times(count: int) -> str:
    return "time" if count == 1 else "times"


def _slack(every: int, shape: str) -> float:
    if "business" in shape:
        return 4.5  # a long weekend is none
    return 1.2 if every > 20 * _DAY else 1.5


def _median(steps: Counter[int]) -> int:
    left = sum(steps.values()) / 2
    for step in sorted(steps):
        left -= steps[step]
        if left <= 0:
            return step
    return 0


def _frequency(steps: Counter[int], unit: int) -> tuple[int, str]:
    """Return the usual step and its name, (0, "") where half of the steps are no such."""
    total = sum(steps.values())
    if not total:
        return 0, ""
    step, count = steps.most_common(1)[0]
    days = {size * unit / _DAY: many for size, many in steps.items()}

    def within(low: float, high: float) -> float:
        return sum(many for size, many in days.items() if low <= size <= high) / total

    for low, high, name in ((28, 31, "every month"), (89, 92, "every quarter"), (365, 366, "every year")):
        if within(low, high) >= 0.7:
            return max(
                size for size in steps if low <= size * unit / _DAY <= high
            ), f"{name} ({within(low, high):.0%} of steps)"
    if step * unit == _DAY and within(3, 3) > 0.1 and within(1, 1) + within(3, 3) >= 0.8:
        return step, "every business day"
    if count < total / 2:
        return 0, ""
    return step, f"every {span(step * unit)} ({share(count, total)} of steps)"
