"""Another system's events: other names, order, kinds, row groups and mark of the unknown. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.parquet import data

LOOK = data.Look("buchungen.parquet", {"amount": "Betrag (EUR)", "kind": "Art", "moment": "Zeit", "user": "Wer"},
                 ("Kauf", "Storno", "Gutschrift", "Abo's", "Spende", "Miete"), -9999.0, 90_000, 62)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write the file and the meanings."""
    return data.make(folder, LOOK)
