"""Free texts with the traps of words, made up with a seed (no licence needed), and the rules that sort them. Read `Look`, then `make`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_table


@dataclass(frozen=True)
class Look:
    """The categories with their words (the first that fits counts), texts that only look as if they fit, and the columns."""

    categories: dict[str, tuple[str, ...]]
    traps: tuple[str, ...]
    plain: tuple[str, ...]
    columns: tuple[str, ...]
    text: str
    sep: str
    seed: int


LOOK = Look(
    {"delivery": ("late", "courier", "parcel"), "price": ("expensive", "price", "refund"), "quality": ("broken", "scratch", "faulty")},
    ("I love chocolate plates", "The lately opened shop is nice", "Priceless service", "An unbroken row of good days"),
    ("Thank you", "All fine, would buy again", "Nothing to say; really"), ("nr", "stars", "comment"), "comment", ",", 41,
)  # fmt: skip


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write comments and rules."""
    chance = random.Random(look.seed)
    words = [word for some in look.categories.values() for word in some]

    def comment() -> str:
        drawn = chance.random()
        if drawn < 0.06:
            return chance.choice(["", " ", "\t"])
        if drawn < 0.4:
            return chance.choice(look.traps + look.plain)
        some = [
            chance.choice([str.lower, str.upper, str.title])(word)
            for word in chance.sample(words, chance.choice([1, 1, 2]))
        ]
        return chance.choice(["It was {}!", "({}) again?", "{}", 'So "{}", really.']).format(
            chance.choice([", ", " and ", "/"]).join(some)
        )

    rows = []
    for number in range(600):
        row = {"nr": number, "stars": chance.randint(1, 5), look.text: comment()}
        rows.append([row.get(name, number % 7) for name in look.columns])
    write_table(folder / "comments.csv", look.columns, rows, sep=look.sep)
    rules = "\n".join(
        f"{place}. {name}: {', '.join(some)}" for place, (name, some) in enumerate(look.categories.items(), 1)
    )
    (folder / "rules.md").write_text(
        "# How comments are sorted\n\nA comment is in the first category of which it has a word, as a whole word; capitals don't matter.\n\n"
        f"{rules}\n\nNone of the words: other. Nothing written: empty. The column with the text is `{look.text}`.\n", encoding="utf-8"
    )  # fmt: skip
    return {"categories": look.categories, "text": look.text, "sep": look.sep}
