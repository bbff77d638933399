"""A survey with coded answers and its codebook, made up with a seed (no licence needed). Read `Look`, then `make`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_table

ANSWERS = ("very satisfied", "rather satisfied", "neither", "rather dissatisfied", "very dissatisfied")
AGES = ("under 30", "30 to 49", "50 to 64", "65 and over")
NONE = ("don't know", "refused")


@dataclass(frozen=True)
class Look:
    """How a survey is coded: the names of its variables, and the code of each answer, age group and kind of silence."""

    satisfied: str
    age: str
    other: str
    answers: dict[int, str]
    ages: dict[int, str]
    none: dict[int, str]
    columns: tuple[str, ...]
    sep: str
    seed: int


LOOK = Look(
    "q7",
    "d2",
    "q8",
    dict(enumerate(ANSWERS, 1)),
    dict(enumerate(AGES, 1)),
    {8: NONE[0], 9: NONE[1]},
    ("id", "d2", "q7", "q8"),
    ",",
    21,
)


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write answers and codebook; some people leave the field empty."""
    chance = random.Random(look.seed)
    rows = []
    for number in range(700):
        age = chance.choice(list(look.ages))
        lean = list(look.ages).index(age)
        answer = chance.choices(list(look.answers), weights=[5 - lean, 5, 3, 2 + lean, 1 + lean])[0]
        silent = chance.random()
        shown = "" if silent < 0.03 else chance.choice(list(look.none)) if silent < 0.15 else answer
        row = {"id": 1000 + number, look.age: age, look.satisfied: shown, look.other: chance.choice([1, 2])}
        rows.append([row[name] for name in look.columns])
    write_table(folder / "survey.csv", look.columns, rows, sep=look.sep)
    texts = {
        look.satisfied: "How satisfied are you with your work?",
        look.age: "Age group",
        look.other: "Do you work full time?",
    }
    codes = {look.satisfied: {**look.answers, **look.none}, look.age: look.ages, look.other: {1: "yes", 2: "no"}}
    book = [
        [name, texts[name], code, said, "yes" if said in NONE else "no"]
        for name in texts
        for code, said in codes[name].items()
    ]
    write_table(folder / "codebook.csv", ["variable", "question", "code", "label", "missing"], book)
    return {"sep": look.sep, "satisfied": look.satisfied, "age": look.age, "answers": look.answers, "ages": look.ages}
