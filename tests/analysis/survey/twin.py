"""Another institute's survey: other variables, columns, codes in another order, other marks of silence. Read `make`."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.survey import data

LOOK = data.Look(
    "v113", "v004", "v114", dict(zip((50, 40, 30, 20, 10), reversed(data.ANSWERS), strict=True)), dict(zip((4, 1, 3, 2), data.AGES, strict=True)),
    {-1: data.NONE[1], 99: data.NONE[0]}, ("v114", "v113", "id", "v004"), ";", 22,
)  # fmt: skip


def make(folder: Path) -> Facts:
    """Write answers and codebook."""
    return data.make(folder, LOOK)
