"""Sales of stones, made up with a seed (no licence needed): orders with dates as text, prices as people write them, and doubles.

Read `Look`, then `make`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_meanings, write_table


@dataclass(frozen=True)
class Look:
    """How an export looks: names in the order of its columns, the ways of dates and prices, the doubles."""

    file: str
    names: dict[str, str]
    sep: str
    dated: str
    thousands: str
    decimal: str
    currency: str
    doubles: int
    begin: date
    seed: int

    def price(self, cents: int) -> str:
        """Write a price."""
        whole = f"{cents // 100:,}".replace(",", self.thousands)
        return f"{whole}{self.decimal}{cents % 100:02d} {self.currency}"


LOOK = Look(
    "sales.csv", {"order": "order_id", "date": "sold_on", "cut": "cut", "carat": "carat", "price": "price", "exported": "exported_at"}, ",",
    "%d/%m/%Y", ",", ".", "$", 23, date(2024, 11, 3), 5,
)  # fmt: skip
MEANINGS = {"order": "number of the order", "date": "day of the sale", "cut": "cut of the stone", "carat": "weight in carat",
            "price": "price that was paid", "exported": "row in the export"}  # fmt: skip


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write the export and the meanings."""
    chance = random.Random(look.seed)
    orders: list[dict[str, object]] = []
    for number in range(900):
        carat = round(chance.uniform(0.2, 3.2), 2)
        cents = int(carat**1.7 * chance.uniform(40_000, 90_000))
        day = look.begin + timedelta(days=int(chance.triangular(0, 420, 300)))
        cut = chance.choice(["Fair", "Good", "Ideal"])
        orders.append({"order": f"A{10_000 + number}", "date": day.strftime(look.dated), "cut": cut, "carat": f"{carat:.2f}",
                       "price": look.price(cents)})  # fmt: skip
    rows = orders + chance.sample(orders, look.doubles)
    chance.shuffle(rows)
    rows = [{**row, "exported": index} for index, row in enumerate(rows)]
    write_table(
        folder / look.file, list(look.names.values()), [[row[key] for key in look.names] for row in rows], sep=look.sep
    )
    write_meanings(folder / "columns.md", {name: MEANINGS[key] for key, name in look.names.items()})
    return {"file": look.file, "sep": look.sep, "dated": look.dated, "thousands": look.thousands, "decimal": look.decimal,
            "currency": look.currency, **look.names}  # fmt: skip
