"""Checks the shares among valid answers, their labels and order, and the number of those who gave none. Read `check`."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from tests.analysis.desk import Facts, Work
from tests.analysis.making import read_table
from tests.analysis.rules import frame, label, says, well_kept


def check(work: Work, facts: Facts) -> None:
    """Count the codes of the file."""
    well_kept(work, "shares", "no_answer", figures=1)
    counts: Counter[tuple[str, str]] = Counter()
    silent = 0
    for row in read_table(work.folder / "survey.csv", sep=facts["sep"]):
        code = row[facts["satisfied"]]
        if code == "" or int(code) not in facts["answers"]:
            silent += 1
        else:
            counts[facts["ages"][int(row[facts["age"]])], facts["answers"][int(code)]] += 1
    assert work.clean["no_answer"] == silent, f"{silent} people gave no answer"
    shares = frame(work, "shares")
    percent = float(shares.select_dtypes("number").to_numpy().max()) > 1
    for age in facts["ages"].values():
        total = sum(count for (group, _), count in counts.items() if group == age)
        for answer in facts["answers"].values():
            says(
                shares,
                [age, answer],
                counts[age, answer] / total * (100 if percent else 1),
                what="share of the valid answers",
            )
    _ordered(shares, list(facts["ages"].values()))
    _ordered(shares, list(facts["answers"].values()))


def _ordered(found: pd.DataFrame, wanted: list[str]) -> None:
    """Assert that labels stand in the order of the codebook, in a column, in the index or over the columns."""
    table = found.reset_index()
    places = [[label(value) for value in table[column]] for column in table]
    places.append(
        [label(part) for column in found.columns for part in (column if isinstance(column, tuple) else (column,))]
    )
    orders = [list(dict.fromkeys(one for one in place if one in wanted)) for place in places]
    assert wanted in orders, f"the labels should be in the order {wanted}"


SABOTAGES = {
    "has silence in the shares": (r"normalize=\"index\"", "normalize=True", "share of the valid"),
    "counts silence as an answer": (r"answered = (.+)", r"answered = \1.reindex(survey.index)", "gave no answer"),
    "orders labels by the alphabet": (r", ordered=True, categories=\w+\)|pd\.Categorical\((.+), categories=\w+, ordered=True\)", r"\1", "in the order"),
    "takes empty fields only as no answer": (r"no_answer = .+", "no_answer = int(survey.isna().any(axis=1).sum())", "gave no answer"),
    "gives counts instead of shares": (r', normalize="index"', "", "share of the valid"),
}  # fmt: skip
