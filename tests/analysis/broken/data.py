"""A colleague's notebook: a cell that was run and deleted, one that stands too low, one that fails; made up with a seed (no licence needed).

Read `Look`, then `make`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.analysis.desk import START, Facts
from tests.analysis.making import write_table


@dataclass(frozen=True)
class Look:
    """Names of the columns (region, period, amount) and what is wrong: the deleted cell, the one below, the misspelt column."""

    file: str
    columns: tuple[str, str, str]
    regions: tuple[str, ...]
    name: str
    value: object
    use: str
    low: str
    net: str
    wrong: str
    order: tuple[int, ...]
    seed: int


LOOK = Look(
    "orders.csv", ("region", "month", "amount"), ("North", "South", "West"), "limit", 250, 'orders[orders["amount"] > limit]',
    "discount = 0.15", 'large["amount"] * (1 - discount)', "mounth", (1, 2, 6, 3, 4, 5, 7), 81,
)  # fmt: skip


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write table and notebook. In cells: 0 title, 1 imports, 2 load, 3 the deleted name is used, 4 the low one is used, 5 fails, 6 low, 7 result."""
    chance = random.Random(look.seed)
    rows = [
        [chance.choice(look.regions), f"2025-{chance.randint(1, 6):02d}", round(chance.uniform(10, 900), 2)]
        for _ in range(300)
    ]
    write_table(folder / look.file, look.columns, rows)
    region, period, _ = look.columns
    wrong = {"region": region, "period": period, look.wrong: look.wrong}
    group = look.wrong if look.wrong not in look.columns else wrong["period"]
    cells = [
        new_markdown_cell("# Orders"),
        new_code_cell("import pandas as pd"),
        new_code_cell(f'orders = pd.read_csv("{look.file}")\norders.head()'),
        new_code_cell(f"large = {look.use}.copy()\nlen(large)"),
        new_code_cell(f'large["net"] = {look.net}\nlarge.head()'),
        new_code_cell(f'by_period = large.groupby("{group}")["net"].sum()\nby_period'),
        new_code_cell(look.low),
        new_code_cell(f'result = large.groupby("{region}")["net"].sum().round(2)\nresult'),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata["ran"] = list(look.order)
    notebook.metadata["deleted"] = f"{look.name} = {look.value!r}"
    nbformat.write(notebook, folder / START)
    return {"rows": rows, "name": look.name, "value": look.value, "low": look.low, "failing": 5}
