# ruff: noqa: DTZ001 - the data have no zones
"""Another log: a reading each quarter of an hour, other names, times, decimal mark, dead mark and holes. Read `make`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.sensors import data

LOOK = data.Look("messwerte.csv", ["Zeit", "Nord", "Mitte", "Süd"], ";", ",", "%d.%m.%Y %H:%M", 15, -77, datetime(2024, 12, 28, 6), 1100,
                 [(40, 3), (211, 30), (420, 9), (900, 41)], (600, 50), 8)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write the log and the meanings."""
    return data.make(folder, LOOK)
