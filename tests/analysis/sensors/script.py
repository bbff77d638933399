"""A solution for the sensors that reads names, marks, the way of times and the pace of the log before it writes. Read `solve`."""

from __future__ import annotations

import re

from tests.analysis.solving import Steps, add, heading, look, meanings, meant, reading, use


def solve() -> Steps:
    """Look, load, average, find the gaps, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*")).splitlines()
    path = next(name.strip() for name in files if name.strip().endswith(".csv"))
    known = meanings((yield from use("read_file", path="columns.md")))
    time, dead = meant(known, "time"), meant(known, "dead")
    mark = int(re.findall(r"(-?\d+) when", known[dead])[0])
    read = reading((yield from use("read_data_head", path=path)), f"na_values=[{str(mark)!r}]")

    yield from heading("Hourly temperatures")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(
        f"""
log = {read}
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
