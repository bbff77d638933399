"""Points in the north, stations in metres of another projection, other names and order. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.geo import data

LOOK = data.Look(
    ("Ort", "Länge", "Breite"), ("Messpunkt", "Ost", "Nord"), (17.0, 68.5), 1.9, metres=True, north_first=False, seed=52
)


def make(folder: Path) -> Facts:
    """Write both files and what they say of themselves."""
    return data.make(folder, LOOK)
