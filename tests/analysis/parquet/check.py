"""Checks number, mean and largest amount of each kind, and that the table was never in memory as a whole. Read `check`."""

from __future__ import annotations

import re

from tests.analysis.desk import Facts, Work
from tests.analysis.rules import frame, says, well_kept

_BIG = 500_000_000
"""Bytes of data from which on the memory of the kernel says something: imports alone take a few hundred MB."""


def check(work: Work, facts: Facts) -> None:
    """Look up what was added up while the file was made."""
    for name, value in {**work.live, **work.clean}.items():
        rows = value.shape[0] if getattr(value, "shape", ()) else 0
        assert rows < facts["rows"] / 10, f"the whole table is in memory, as {name!r}"
    if facts["memory"] > _BIG and work.peak:
        assert work.peak < 1.5 * facts["memory"], (
            f"the kernel had {work.peak:,} bytes, the data have {facts['memory']:,}"
        )
        looks = re.findall(r"done: ((?:look|query|read|list|inspect).*?) · <?([\d.]+) s", work.record)
        assert all(float(seconds) < 2 for _, seconds in looks), f"a look took longer than 2 s: {looks}"
    well_kept(work, "per_kind", figures=1)
    found = frame(work, "per_kind")
    assert len(found) == len(facts["kinds"]), f"there are {len(facts['kinds'])} kinds"
    for kind, (total, known, added, largest) in facts["kinds"].items():
        says(found, [kind], total, within=1e-9, what="events")
        says(found, [kind], added / known, within=1e-6, what="mean of the known amounts")
        says(found, [kind], largest, within=1e-9, what="largest amount")
    wanted = sorted((total for total, *_ in facts["kinds"].values()), reverse=True)
    assert any(list(found[column]) == wanted for column in found.select_dtypes("number")), (
        "the most frequent is not the first"
    )


SABOTAGES = {
    "takes the mark of the unknown for an amount": (r"nullif\((\"[^\"]+\"), [^)]+\)", r"\1", "mean of the known"),
    "counts a sample": (r"FROM ('[^']+')", r"FROM (FROM \1 LIMIT 50000)", "events"),
    "loads it as a whole": (r"per_kind = ", "everything = duckdb.sql(\"FROM '*.parquet'\").df()\nper_kind = ", "whole table is in memory"),
    "drops what has no amount": (r"(FROM '[^']+')", r"\1 WHERE amount >= 0", "events"),
}  # fmt: skip
