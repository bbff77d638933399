"""Another shop's comments: other categories, words, traps, columns and separator. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.texts import data

LOOK = data.Look(
    {"Personal": ("unfreundlich", "Kasse", "müde"), "Essen": ("kalt", "fade", "Suppe"), "Lärm": ("laut", "Musik"), "Preis": ("teuer", "zu viel")},
    ("Der Verlauf war gut", "Schokalter Kuchen", "Ein Musikantenstadl", "Laute Freude, Fadenspiel"), ("Danke", "Gerne wieder; wirklich"),
    ("Text", "nr", "Filiale"), "Text", ";", 42,
)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write comments and rules."""
    return data.make(folder, LOOK)
