"""A workbook with titles, two header rows with merged cells, a total and notes, made up with a seed (no licence needed). Read `Look`, `make`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from openpyxl import Workbook

from tests.analysis.desk import Facts


@dataclass(frozen=True)
class Look:
    """How a workbook looks; `named_below`: the word for the regions stands in the second header row."""

    file: str
    sheet: str
    others: tuple[str, ...]
    titles: tuple[str, ...]
    word: str
    named_below: bool
    years: tuple[object, ...]
    quarters: tuple[str, ...]
    regions: tuple[str, ...]
    total: str
    missing: str
    notes: tuple[str, ...]
    seed: int


LOOK = Look("sales.xlsx", "Revenue", ("Cover",), ("Revenue by region, kEUR", ""), "Region", False, (2023, 2024), ("Q1", "Q2", "Q3", "Q4"),
            ("North", "South", "East", "West", "Islands"), "Total", "n/a", ("Source: ledger", "Islands since 2023"), 71)  # fmt: skip


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write the workbook; the cells' values are the facts."""
    chance = random.Random(look.seed)
    book = Workbook()
    first = book.active
    first.title = look.others[0]
    first.append(["Made by controlling", 2024])
    for name in look.others[1:]:
        book.create_sheet(name).append(["nothing here"])
    sheet = book.create_sheet(look.sheet)
    for title in look.titles:
        sheet.append([title])
    count = len(look.quarters)
    years = [cell for year in look.years for cell in [year, *[None] * (count - 1)]]
    sheet.append([None if look.named_below else look.word, *years])
    row = sheet.max_row
    for place in range(len(look.years)):
        sheet.merge_cells(
            start_row=row, end_row=row, start_column=2 + place * count, end_column=1 + (place + 1) * count
        )
    sheet.append([look.word if look.named_below else None, *look.quarters * len(look.years)])
    values = {region: [round(chance.uniform(20, 900), 1) for _ in years] for region in look.regions}
    for region in look.regions[:3]:
        values[region][chance.randrange(len(years))] = None  # pyright: ignore[reportArgumentType]
    for region, numbers in values.items():
        sheet.append([region, *(look.missing if number is None else number for number in numbers)])
    sheet.append(
        [
            look.total,
            *(round(sum(numbers[place] or 0 for numbers in values.values()), 1) for place in range(len(years))),
        ]
    )
    for note in look.notes:
        sheet.append([note])
    book.save(folder / look.file)
    return {"values": values, "years": look.years, "quarters": look.quarters}
