"""A solution for the workbook that finds sheet, header rows, total and marks in the cells. Read `solve`."""

from __future__ import annotations

import re
from typing import Any

from tests.analysis.solving import Steps, add, heading, look, use


def solve() -> Steps:
    """Look at the cells, load, make it long, sum, draw."""
    files = (yield from use("glob", "I look at what is here.", pattern="*.xlsx")).splitlines()
    path = next(name.strip() for name in files if name.strip().endswith(".xlsx"))
    sheets = yield from look(
        f"""
import openpyxl
book = openpyxl.load_workbook({path!r}, read_only=True, data_only=True)
found = {{sheet.title: [list(row) for row in sheet.iter_rows(max_row=40, values_only=True)] for sheet in book}}
"""
    )
    sheet, cells = max(sheets.items(), key=lambda item: sum(_is_number(cell) for row in item[1] for cell in row))
    below = next(
        place for place, row in enumerate(cells) if sum(isinstance(cell, str) for cell in row[1:]) >= len(row) / 2
    )
    years = cells[below - 1]
    assert all(cell is None or re.search(r"\d{4}", str(cell)) for cell in years[1:]), years
    body = [row for row in cells[below + 1 :] if any(_is_number(cell) for cell in row[1:])]
    totals = [row[0] for row in body if _adds_up(row, body)]
    marks = sorted({cell for row in body for cell in row[1:] if isinstance(cell, str)})

    yield from heading("Revenue by year")
    yield from add("import matplotlib.pyplot as plt\nimport pandas as pd")
    yield from add(
        f"sheet = pd.read_excel({path!r}, sheet_name={sheet!r}, header=None, na_values={marks!r})\nsheet.head(8)"
    )
    yield from add(
        f"""
regions = sheet.iloc[{below + 1} : {below + 1 + len(body)}].set_index(0).rename_axis("region").drop(index={totals!r})
years = sheet.loc[{below - 1}, 1:].ffill().astype(int)
regions.columns = pd.MultiIndex.from_arrays([years, sheet.loc[{below}, 1:]], names=["year", "quarter"])
tidy = regions.melt(ignore_index=False, value_name="amount").reset_index()
tidy["amount"] = pd.to_numeric(tidy["amount"])
tidy.head()
"""
    )
    yield from add('missing = int(tidy["amount"].isna().sum())\nmissing')
    yield from add('by_year = tidy.groupby("year")["amount"].sum().to_frame()\nby_year')
    yield from add(
        """
ax = by_year["amount"].plot.bar(rot=0, figsize=(7, 4), title="Revenue by year")
ax.set_xlabel("Year")
ax.set_ylabel("Revenue (thousand EUR)")
plt.show()
"""
    )
    return "The table is `tidy`, the years are in `by_year`."


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _adds_up(row: list[Any], body: list[list[Any]]) -> bool:
    """Whether a row is the sum of the others, column by column."""
    others = [other for other in body if other is not row]
    sums = [sum(other[place] for other in others if _is_number(other[place])) for place in range(1, len(row))]
    return all(_is_number(cell) and abs(cell - added) < 0.06 for cell, added in zip(row[1:], sums, strict=True))
