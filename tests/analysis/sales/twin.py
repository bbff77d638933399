"""The sales of another shop: other names, order, separator, way of dates and prices, other doubles, other months. Read `make`."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.sales import data

LOOK = data.Look(
    "export 2023.txt", {"exported": "Zeile", "price": "bezahlt", "carat": "ct", "date": "Tag", "order": "Nr", "cut": "Schliff"}, "\t",
    "%m/%d/%Y", ".", ",", "EUR", 41, date(2022, 9, 20), 6,
)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write the export and the meanings."""
    return data.make(folder, LOOK)
