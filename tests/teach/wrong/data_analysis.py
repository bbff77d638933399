"""Wrong answers to lesson 12: missing values taken for codes, whole rows compared, a table that is repaired; numbers compared by eye."""

from __future__ import annotations

from nbagent.teach.lessons.data_analysis import EXERCISES

_PROBLEMS, _HOLDS = (each.answer for each in EXERCISES)

WRONG: dict[str, tuple[str, str, str]] = {
    "12.problems": (
        _PROBLEMS.replace('(table["body_mass_g"] < 0).any()', '(~(table["body_mass_g"] > 0)).any()'),
        _PROBLEMS.replace('table["island"].nunique() > table["island"].str.strip().str.lower().nunique()', 'table["island"].nunique() > 3'),
        _PROBLEMS.replace("    found = []\n", '    found = []\n    table["island"] = table["island"].str.strip()\n'),
    ),
    "12.holds": (
        _HOLDS.replace("bool(abs(values.mean() - float(said)) <= 0.5 * 10**-places + 1e-9)", "values.mean() == float(said)"),
        _HOLDS.replace("values.mean()", "values.fillna(0).mean()"),
        _HOLDS.replace("0.5 * 10**-places + 1e-9", "0.5"),
    ),
}  # fmt: skip
