# ruff: noqa: DTZ001 - the data have no zones
"""Readings of three sensors with holes and a mark for a dead one, made up with a seed (no licence needed). Read `Look`, `make`."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_meanings, write_table


@dataclass(frozen=True)
class Look:
    """How a log looks. `holes` are places in readings (first, how many); `dead` those of the second sensor."""

    file: str
    names: list[str]
    sep: str
    decimal: str
    timed: str
    minutes: int
    mark: int
    begin: datetime
    readings: int
    holes: list[tuple[int, int]]
    dead: tuple[int, int]
    seed: int


LOOK = Look("log.csv", ["time", "hall_a", "hall_b", "hall_c"], ",", ".", "%Y-%m-%d %H:%M", 10, -999, datetime(2025, 3, 1), 1400,
            [(100, 4), (300, 25), (777, 60)], (500, 40), 3)  # fmt: skip


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write the log and the meanings; a hole of a few readings is no gap."""
    chance = random.Random(look.seed)
    rows: list[list[object]] = []
    for index in range(look.readings):
        if any(first <= index < first + count for first, count in look.holes):
            continue
        time = look.begin + timedelta(minutes=look.minutes * index)
        values: list[object] = [
            round(18 + 2 * hall + 4 * math.sin(index / 23 + hall) + chance.gauss(0, 0.4), 2) for hall in range(3)
        ]
        if look.dead[0] <= index < sum(look.dead):
            values[1] = look.mark
        rows.append([time.strftime(look.timed), *values])
    write_table(folder / look.file, look.names, rows, sep=look.sep, decimal=look.decimal)
    meanings = {
        look.names[0]: "time of the reading",
        **dict.fromkeys(look.names[1:], f"temperature in °C; {look.mark} when the sensor is dead"),
    }
    write_meanings(folder / "columns.md", meanings)
    return {"file": look.file, "sep": look.sep, "decimal": look.decimal, "timed": look.timed, "mark": look.mark, "time": look.names[0],
            "sensors": look.names[1:]}  # fmt: skip
