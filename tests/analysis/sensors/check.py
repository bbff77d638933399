# ruff: noqa: DTZ007 - the data have no zones
"""Checks each hour's means, that empty hours stay empty, the gaps, and that the chart shows them. Read `check`."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import fmean

import pandas as pd

from tests.analysis.desk import Facts, Work
from tests.analysis.making import read_table
from tests.analysis.rules import frame, well_kept

_HOUR = timedelta(hours=1)


def check(work: Work, facts: Facts) -> None:
    """Compute hours and gaps from the file's texts."""
    well_kept(work, "hourly", "gaps", figures=1)
    rows = read_table(work.folder / facts["file"], sep=facts["sep"])
    times = [datetime.strptime(row[facts["time"]], facts["timed"]) for row in rows]
    hourly = frame(work, "hourly")
    assert isinstance(hourly.index, pd.DatetimeIndex), "the index of `hourly` is not the time"
    for sensor in facts["sensors"]:
        hours: dict[datetime, list[float]] = {}
        for time, row in zip(times, rows, strict=True):
            value = float(row[sensor].replace(facts["decimal"], "."))
            if value != facts["mark"]:
                hours.setdefault(time.replace(minute=0), []).append(value)
        _hours(hourly[sensor], hours, times)
        empty = int((times[-1].replace(minute=0) - times[0].replace(minute=0)) / _HOUR) + 1 - len(hours)
        seen = [sum(height != height for height in line) for axes in work.axes for line in axes.lines]  # noqa: PLR0124
        assert any(count >= empty for count in seen), (
            f"the chart draws over the holes of {sensor}: {seen} of {empty} hours are empty in it"
        )
    _gaps(frame(work, "gaps"), [(one, other) for one, other in pairwise(times) if other - one > _HOUR])


def _hours(found: pd.Series, hours: dict[datetime, list[float]], times: list[datetime]) -> None:
    hour, last = times[0].replace(minute=0), times[-1]
    while hour <= last:
        value = found.get(hour, math.nan)
        if hour in hours:
            assert math.isclose(value, fmean(hours[hour]), rel_tol=1e-6), (
                f"{found.name} at {hour} should be {fmean(hours[hour])}, it is {value}"
            )
        else:
            assert math.isnan(value), f"{found.name} at {hour} was invented: there is no reading, it says {value}"
        hour += _HOUR


def _gaps(found: pd.DataFrame, wanted: list[tuple[datetime, datetime]]) -> None:
    assert len(found) == len(wanted), f"there are {len(wanted)} gaps longer than an hour, `gaps` has {len(found)}"
    hours = [float(value) for value in found["hours"]]
    assert all(
        math.isclose(one, (end - begin) / _HOUR, rel_tol=1e-6) for one, (begin, end) in zip(hours, wanted, strict=True)
    ), hours
    table = found.reset_index()
    moments = [list(map(pd.Timestamp, table[column])) for column in table.select_dtypes("datetime")]
    for side, name in ((0, "last reading before"), (1, "first reading after")):
        assert [pd.Timestamp(gap[side]) for gap in wanted] in moments, f"the {name} the gaps is not in the table"


SABOTAGES = {
    "fills the holes": (r"(\.resample\(\"h\"\)\.mean\(\))", r"\1.interpolate()", "was invented"),
    "takes the dead mark for a temperature": (r", na_values=\[[^\]]*\]", "", "should be"),
    "draws over the holes": (r"hourly\.plot\(", "hourly.dropna().plot(", "draws over the holes"),
    "counts short holes as gaps": (r"hours=1\b", "minutes=20", "gaps longer than an hour"),
}
