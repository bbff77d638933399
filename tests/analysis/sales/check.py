# ruff: noqa: DTZ007 - the data have no zones
"""Checks the revenue of each month, the order of the months, and the number of doubles. Read `check`."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise

from tests.analysis.desk import Facts, Work
from tests.analysis.making import read_table
from tests.analysis.rules import frame, well_kept


def check(work: Work, facts: Facts) -> None:
    """Compute the months from the file's texts; each order counts once."""
    well_kept(work, "monthly", "doubled", figures=1)
    rows = read_table(work.folder / facts["file"], sep=facts["sep"])
    once = {row[facts["order"]]: row for row in rows}
    assert work.clean["doubled"] == len(rows) - len(once), f"{len(rows) - len(once)} rows are doubles"
    months: dict[str, float] = {}
    for row in once.values():
        month = f"{datetime.strptime(row[facts['date']], facts['dated']):%Y-%m}"
        text = row[facts["price"]].removesuffix(facts["currency"]).strip().replace(facts["thousands"], "")
        months[month] = months.get(month, 0.0) + float(text.replace(facts["decimal"], "."))
    wanted = [months[month] for month in sorted(months)]
    monthly = frame(work, "monthly")
    columns = [list(map(float, monthly[column])) for column in monthly.select_dtypes("number")]
    assert any(_equal(sorted(column), sorted(wanted)) for column in columns), f"the revenues should be {wanted}"
    assert any(_equal(column, wanted) for column in columns), "the months are not in the order of time"
    drawn = [line for axes in work.axes for line in axes.lines if len(line) == len(wanted)]
    assert any(_equal(line, wanted) for line in drawn), "the line of the chart is not the revenue in order of time"
    assert all(one < other for one, other in pairwise(sorted(months)))


def _equal(one: list[float], other: list[float]) -> bool:
    return len(one) == len(other) and all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(one, other, strict=True))


SABOTAGES = {
    "sorts months as text": (r'\.dt\.to_period\("M"\)', '.dt.strftime("%b %Y")', "order of time"),
    "guesses the order of day and month": (r'format="[^"]+"', 'format="mixed"', "revenues should be"),
    "counts orders twice": (r"\.drop_duplicates\(.+\)", "", "are doubles"),
    "drops prices that it can't read": (r"(?s)sales\[\"paid\"\] = .*\.astype\(float\)\n\)", 'sales["paid"] = pd.to_numeric(sales.filter(regex="price|bezahlt").iloc[:, 0].str[:-2], errors="coerce")', "revenues should be"),
}  # fmt: skip
