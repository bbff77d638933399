"""The exercises of lesson 12, a data analysis: say what is wrong with a table, and check a number that an agent told you."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbagent.teach.exercises import Exercise, NotYet

KINDS = ("twice", "code", "spelling")
"""What can be wrong: rows that are there more than once, a mass below zero, an island in more than one spelling."""


def _problems(names: Mapping[str, Any]) -> None:
    problems = names["problems"]
    raw = names["pd"].read_csv("data/field.csv", sep=";", encoding="cp1252", skiprows=2, decimal=",")
    spelled = raw.assign(island=raw["island"].str.strip().str.title())
    good = spelled[~spelled["bird"].duplicated() & (spelled["body_mass_g"] != -999)]
    twice = good.iloc[[0, *range(len(good))]]
    code = good.assign(body_mass_g=[-999, *good["body_mass_g"].iloc[1:]])
    missing = good.assign(body_mass_g=[None, *good["body_mass_g"].iloc[1:]])
    two = good[good["island"] != "Dream"]
    spelling = two.assign(island=[two["island"].iloc[0].lower() + " ", *two["island"].iloc[1:]])
    cases = [
        ("a clean table", good, set[str]()),
        ("a table in which one bird stands twice", twice, {"twice"}),
        ("a table with one mass of -999", code, {"code"}),
        ("a table in which one mass is missing (which is honest, and no problem)", missing, set[str]()),
        ("a table with one island in lower case and a space after it", spelling, {"spelling"}),
        ("the station's own file", raw, set(KINDS)),
    ]
    for what, table, right in cases:
        before = table.copy()
        found = set(problems(table))
        if found != right:
            raise NotYet(f"{what}: you found {sorted(found) or 'nothing'}, and there is {sorted(right) or 'nothing'}.")
        if not table.equals(before):
            raise NotYet("your function has changed the table. Looking must not change anything.")


def _holds(names: Mapping[str, Any]) -> None:
    holds = names["holds"]
    frame = names["pd"].DataFrame({"kind": ["a", "a", "a", "b"], "mass": [10.0, 11.0, None, 3.25]})
    cases = [
        ("a", "10.5", True, "the mean of 10 and 11; the missing one does not count"),
        ("a", "10.50", True, "the same number, told to two places"),
        ("a", "10.4", False, "it is 10.5"),
        ("b", "3.2", True, "3.25 told to one place may be 3.2 or 3.3"),
        ("b", "3.25", True, "exactly"),
        ("b", "3", True, "3.25 told to no places"),
        ("c", "3.25", False, "there is no c at all"),
    ]
    for kind, said, right, why in cases:
        if bool(holds(frame, "kind", kind, "mass", said)) is not right:
            raise NotYet(
                f"“the mean mass of {kind} is {said}”: your answer is {not right}, and {right} is right: {why}."
            )


_PROBLEMS = """
def problems(table):
    found = []
    if table["bird"].duplicated().any():
        found.append("twice")
    if (table["body_mass_g"] < 0).any():
        found.append("code")
    if table["island"].nunique() > table["island"].str.strip().str.lower().nunique():
        found.append("spelling")
    return found
"""

_HOLDS = """
def holds(table, by, value, column, said):
    values = table.loc[table[by] == value, column]
    places = len(said.partition(".")[2])
    return bool(abs(values.mean() - float(said)) <= 0.5 * 10**-places + 1e-9)
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "12.problems",
        "your function tells what is wrong with a table of birds, and changes nothing",
        (
            "Three questions: does a bird stand there twice? Is a mass below zero? Do two islands differ only by spaces or capitals?",
            "`duplicated().any()` on the bird's number; `< 0` finds codes such as -999 and passes over missing values.",
            "For the spelling: count the different islands as they are, and again after `.str.strip().str.lower()`. Fewer? Then somebody wrote one in two ways.",
        ),
        _PROBLEMS,
        _problems,
    ),
    Exercise(
        "12.holds",
        "you check a number that somebody told you, to the places that were told",
        (
            "Compute the mean yourself. How far may it be from what was said, if that was said to one place?",
            "Half of the last place: 0.05 for one place, 0.005 for two. The places are what stands behind the point of the text.",
            "`abs(mean - float(said)) <= 0.5 * 10**-places`; a group that does not exist has the mean NaN, which is near to nothing.",
        ),
        _HOLDS,
        _holds,
    ),
)  # fmt: skip
