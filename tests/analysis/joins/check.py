"""Checks the revenue of each region, that nothing is lost or counted twice, and the number of unmatched orders. Read `check`."""

from __future__ import annotations

from tests.analysis.desk import Facts, Work
from tests.analysis.rules import frame, says, sums_to, well_kept


def check(work: Work, facts: Facts) -> None:
    """Look up what the maker of the data summed, order by order, before it soiled the keys."""
    well_kept(work, "by_region", "unmatched")
    found = frame(work, "by_region")
    sums_to(found, sum(facts["truth"].values()), "the revenue")
    for region, amount in facts["truth"].items():
        says(found, [region], amount, within=1e-6, what="revenue")
    assert work.clean["unmatched"] == facts["unmatched"], f"{facts['unmatched']} orders are of unknown customers"


SABOTAGES = {
    "loses orders of unknown customers": (r'how="left"', 'how="inner"', "the revenue"),
    "counts orders of customers who are listed twice": (r"\.drop_duplicates\([^\n]*\)", "", "the revenue"),
    "joins the keys as they were typed": (r"return .+", "return keys", "revenue"),
    "throws the letters away": (r"return (.+)", r'return \1.str.replace(r"[A-Z]", "", regex=True)', "revenue"),
}
