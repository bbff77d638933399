"""Checks every cell of the tidy table, the sums of the years and the number of empty cells. Read `check`."""

from __future__ import annotations

import math

from tests.analysis.desk import Facts, Work
from tests.analysis.rules import frame, label, says, well_kept


def check(work: Work, facts: Facts) -> None:
    """Look up what was written into the workbook."""
    well_kept(work, "tidy", "by_year", "missing", figures=1)
    tidy = frame(work, "tidy").reset_index()
    places = [(year, quarter) for year in facts["years"] for quarter in facts["quarters"]]
    wanted = {
        (region, label(year), label(quarter)): number
        for region, numbers in facts["values"].items()
        for (year, quarter), number in zip(places, numbers, strict=True)
    }
    columns = ["region", "year", "quarter", "amount"]
    assert set(columns) <= set(tidy.columns), f"the columns are {list(tidy.columns)}"
    rows = {tuple(map(label, row[:3])): float(row[3]) for row in tidy[columns].itertuples(index=False, name=None)}
    assert rows.keys() == wanted.keys(), (
        f"rows that should not be there, or are not: {sorted(rows.keys() ^ wanted.keys())[:6]}"
    )
    for key, number in wanted.items():
        right = math.isnan(rows[key]) if number is None else math.isclose(rows[key], number, rel_tol=1e-9)
        assert right, f"{key} should be {number}, it is {rows[key]}"
    empty = sum(number is None for number in wanted.values())
    assert work.clean["missing"] == empty, f"{empty} numbers are not there"
    for year in facts["years"]:
        amount = sum(number or 0 for (_, of, _), number in wanted.items() if of == label(year))
        says(frame(work, "by_year"), [year], amount, within=1e-9, what="amount of the year")


SABOTAGES = {
    "takes the total for a region": (r"\.drop\(index=\[.+?\]\)", "", "should not be there"),
    "puts numbers under the wrong year": (r"\.ffill\(\)", ".ffill().iloc[::-1]", "should be"),
    "takes empty cells for zero": (r"(tidy\[\"amount\"\] = .+)", r"\1.fillna(0)", "should be None"),
}
