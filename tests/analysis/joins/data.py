"""Orders and customers with keys that were typed by hand, made up with a seed (no licence needed). Read `Look`, then `make`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_meanings, write_table

Dirt = Callable[[str, int], str]
"""Writes the key of a letter and a number in one of several ways."""


@dataclass(frozen=True)
class Look:
    """How the two tables look: names, and the dirt of each one's keys."""

    orders: tuple[str, str, str]
    customers: tuple[str, str]
    in_orders: tuple[Dirt, ...]
    in_customers: tuple[Dirt, ...]
    regions: tuple[str, ...]
    sep: str
    doubles: int
    strangers: int
    seed: int


LOOK = Look(
    ("order", "customer", "amount"), ("customer_no", "region"),
    (lambda a, n: f"{a}-{n:04d}", lambda a, n: f" {a.lower()}-{n:04d}", lambda a, n: f"{a}{n:04d}", lambda a, n: f"{a} {n:04d} "),
    (lambda a, n: f"{a}-{n:04d}",), ("North", "South", "East", "West"), ",", 12, 9, 31,
)  # fmt: skip


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write both tables; A-17 and B-17 are two customers, some are listed twice, some orders are of strangers."""
    chance = random.Random(look.seed)
    known = [(letter, number) for number in chance.sample(range(1, 400), 60) for letter in "AB"]
    regions = {key: chance.choice(look.regions) for key in known}
    listed = known + chance.sample(known, look.doubles)
    rows = [[chance.choice(look.in_customers)(*key), regions[key]] for key in listed]
    strangers = [("A", number) for number in range(700, 700 + look.strangers)]
    bought = [chance.choice(known) for _ in range(500)] + [chance.choice(strangers) for _ in range(3 * look.strangers)]
    chance.shuffle(bought)
    truth: dict[str, float] = {}
    orders: list[list[object]] = []
    for number, key in enumerate(bought):
        amount = round(chance.uniform(5, 900), 2)
        region = regions.get(key, "unknown")
        truth[region] = truth.get(region, 0.0) + amount
        orders.append([number, chance.choice(look.in_orders)(*key), amount])
    write_table(folder / "orders.csv", look.orders, orders, sep=look.sep)
    write_table(folder / "customers.csv", look.customers, rows, sep=look.sep)
    meanings = dict(
        zip(look.orders, ("number of the order", "who bought: customer of the order", "amount in EUR"), strict=True)
    )
    write_meanings(
        folder / "columns.md",
        {
            **meanings,
            **dict(zip(look.customers, ("number in the customers' list", "region of the customer"), strict=True)),
        },
    )
    return {"truth": truth, "unmatched": sum(key not in regions for key in bought)}
