"""The Palmer penguins as they were published (CC0, see data/README.md), and what their columns mean. Read `make`."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_meanings

SOURCE = Path(__file__).parent / "data" / "penguins.csv"


def make(folder: Path) -> Facts:
    """Write the table and the meanings."""
    shutil.copy(SOURCE, folder / "penguins.csv")
    write_meanings(
        folder / "columns.md",
        {"species": "species of the bird", "island": "where it was met", "bill_length_mm": "length of the bill in mm", "bill_depth_mm": "depth of the bill in mm",
         "flipper_length_mm": "length of the flipper in mm", "body_mass_g": "body mass in g", "sex": "sex of the bird", "year": "year"},
    )  # fmt: skip
    return {"file": "penguins.csv", "sep": ",", "decimal": ".", "encoding": "utf-8", "missing": "NA", "species": "species",
            "sex": "sex", "mass": "body_mass_g", "unit": 1000}  # fmt: skip
