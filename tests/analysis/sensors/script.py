"""A solution for the sensors that reads names, marks, the way of times and the pace of the log before it writes. Read `solve`."""

from __future__ import annotations

import re

from tests.analysis.solving import Steps, add, heading, look, meanings, meant, numbers_of, separator, table, use


def solve() -> Steps:
    """Look, load, average, find the gaps, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*")).splitlines()
    path = next(name.strip() for name in files if name.strip().endswith(".csv"))
    known = meanings((yield from use("read_file", path="columns.md")))
    time, dead = meant(known, "time"), meant(known, "dead")
    mark = int(re.findall(r"(-?\d+) when", known[dead])[0])
    head = yield from use("read_file", path=path, start_line=1, end_line=30)
    rows, sep = table(head), separator(head)
    decimal, _ = numbers_of([row[rows[0].index(dead)] for row in rows[1:]])
    timed = _timed(rows[1][rows[0].index(time)])

    yield from heading("Hourly temperatures")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(
        f"""
log = pd.read_csv({path!r}, sep={sep!r}, decimal={decimal!r}, na_values=[{str(mark)!r}])
log[{time!r}] = pd.to_datetime(log[{time!r}], format={timed!r})
log = log.set_index({time!r}).sort_index()
log.describe()
"""
    )
    paced = yield from look(
        "found = [log.index.to_series().diff().median().total_seconds() / 60, int(log.index.duplicated().sum())]"
    )
    assert paced[0] < 60 and not paced[1], f"the log is not what an hour's mean can be made of: {paced}"
    yield from add('hourly = log.resample("h").mean()\nhourly.isna().sum()')
    yield from heading("Holes of the log")
    yield from add(
        """
times = log.index.to_series()
pairs = pd.DataFrame({"last_before": times.shift(), "first_after": times})
pairs["hours"] = (pairs["first_after"] - pairs["last_before"]) / pd.Timedelta(hours=1)
gaps = pairs[pairs["first_after"] - pairs["last_before"] > pd.Timedelta(hours=1)].reset_index(drop=True)
gaps
"""
    )
    yield from add(
        """
ax = hourly.plot(figsize=(7, 4), title="Hourly temperatures, holes left open")
ax.set_xlabel("Time")
ax.set_ylabel("Temperature (°C)")
plt.show()
"""
    )
    return "The hours are in `hourly`, the holes in `gaps`; empty hours stay empty, in the chart too."


def _timed(text: str) -> str:
    """Return the format of a time such as 2025-03-01 00:10 or 01.03.2025 00:10."""
    return "%Y-%m-%d %H:%M" if re.match(r"\d{4}-", text) else "%d.%m.%Y %H:%M"
