"""Another colleague's notebook: a deleted list, a function that stands too low, another misspelt column, other names. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.broken import data
from tests.analysis.desk import Facts

LOOK = data.Look(
    "auftraege.csv", ("Gebiet", "Monat", "Betrag"), ("Nord", "Süd", "West", "Ost"), "wanted", ["Nord", "Ost"], 'orders[orders["Gebiet"].isin(wanted)]',
    "def after_tax(amount):\n    return amount / 1.19", 'after_tax(large["Betrag"])', "monat ", (1, 2, 6, 3, 4, 7, 5), 82,
)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write table and notebook."""
    return data.make(folder, LOOK)
