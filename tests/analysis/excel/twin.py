"""Another department's workbook: other sheets, more titles, other words, years, quarters, total, notes and marks. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.excel import data

LOOK = data.Look("Umsatz.xlsx", "Zahlen (final)", ("Deckblatt", "Zahlen (alt)"), ("Umsatz in TEUR", "Stand: 3. März", "vertraulich"), "Gebiet", True,
                 (2020, 2021, 2022), ("1. Quartal", "2. Quartal", "3. Quartal", "4. Quartal"), ("Nord", "Ost", "Süd", "Summenberg"), "Insgesamt", "-",
                 ("ohne Ausland",), 72)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write the workbook."""
    return data.make(folder, LOOK)
