"""The penguins from another hand: German names, other order, separator, decimal mark, encoding, missing mark and masses in kg."""

from __future__ import annotations

import random
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import read_table, write_meanings, write_table
from tests.analysis.penguins.data import SOURCE

_WORDS = {
    "Adelie": "Adélie",
    "Gentoo": "Eselspinguin",
    "Chinstrap": "Zügelpinguin",
    "male": "Männchen",
    "female": "Weibchen",
}


def make(folder: Path) -> Facts:
    """Write the table and the meanings."""
    chance = random.Random(11)
    rows = read_table(SOURCE)
    chance.shuffle(rows)
    names = {
        "sex": "Geschlecht",
        "year": "Jahr",
        "body_mass_g": "Masse",
        "island": "Insel",
        "species": "Art",
        "flipper_length_mm": "Flügel",
    }
    meanings = (
        "sex of the bird",
        "year",
        "body mass in kg",
        "where it was met",
        "species of the bird",
        "length of the flipper in mm",
    )

    def changed(column: str, text: str) -> object:
        if text == "NA" or chance.random() < 0.02:
            return "k. A."
        return round(int(text) / 1000 * 1.03, 3) if column == "body_mass_g" else _WORDS.get(text, text)

    table = [[changed(column, row[column]) for column in names] for row in rows[:300]]
    table = [row for row in table if row[4] != "k. A."]
    write_table(folder / "pinguine.csv", list(names.values()), table, sep=";", decimal=",", encoding="cp1252")
    write_meanings(folder / "columns.md", dict(zip(names.values(), meanings, strict=True)))
    return {"file": "pinguine.csv", "sep": ";", "decimal": ",", "encoding": "cp1252", "missing": "k. A.", "species": "Art",
            "sex": "Geschlecht", "mass": "Masse", "unit": 1}  # fmt: skip
