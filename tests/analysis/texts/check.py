"""Checks the counts of the categories by the rules, word by word, and their order. Read `check`."""

from __future__ import annotations

import re
from collections import Counter

from tests.analysis.desk import Facts, Work
from tests.analysis.making import read_table
from tests.analysis.rules import frame, says, sums_to, well_kept


def check(work: Work, facts: Facts) -> None:
    """Sort each comment by its words."""
    well_kept(work, "counts", figures=1)
    wanted: Counter[str] = Counter()
    for row in read_table(work.folder / "comments.csv", sep=facts["sep"]):
        words = re.findall(r"[^\W_]+", row[facts["text"]].casefold())
        spaced = f" {' '.join(words)} "
        fitting = (
            name
            for name, words in facts["categories"].items()
            if any(f" {word.casefold()} " in spaced for word in words)
        )
        wanted[next(fitting, "other") if row[facts["text"]].strip() else "empty"] += 1
    counts = frame(work, "counts")
    for name, count in wanted.items():
        says(counts, [name], count, what="comments")
    sums_to(counts, wanted.total(), "the comments")
    numbers = [list(counts[column]) for column in counts.select_dtypes("number")]
    assert any(column == sorted(wanted.values(), reverse=True) for column in numbers), (
        "the most frequent is not the first"
    )


SABOTAGES = {
    "finds words inside of others": (r"\\b", "", "comments"),
    "minds capitals": (r"flags=re\.IGNORECASE|re\.IGNORECASE", "0", "comments"),
    "loses empty comments": (r"(pd\.read_csv\(.+\))", r"\1.dropna()", "nothing for|comments"),
    "lets the last category count": (r"in rules\.items\(\)", "in reversed(rules.items())", "comments"),
}
