"""Two other systems: other names and separator; the one writes numbers without zeros, the other as decimals and with slashes. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.joins import data

LOOK = data.Look(
    ("Beleg", "Kunde", "Betrag"), ("Kd_Nr", "Gebiet"),
    (lambda a, n: f"{a}{n}", lambda a, n: f"{a.lower()}{n}.0", lambda a, n: f"{a}/{n}"),
    (lambda a, n: f"{a}-{n:05d}", lambda a, n: f"{a}{n:05d} "), ("Nord", "Mitte", "Süd"), ";", 20, 5, 32,
)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write both tables."""
    return data.make(folder, LOOK)
