"""Events in a Parquet file, made row group by row group with a seed (no licence needed): 400,000 rows, or NBAGENT_ROWS of them.

At no time is more than one row group in memory. Read `Look`, then `make`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.analysis.desk import Facts
from tests.analysis.making import write_meanings

ROWS = int(os.environ.get("NBAGENT_ROWS", "400000"))


@dataclass(frozen=True)
class Look:
    """Names of the columns (kind, amount, user, moment) in their order, the kinds, and the mark of an unknown amount."""

    file: str
    names: dict[str, str]
    kinds: tuple[str, ...]
    mark: float
    group: int
    seed: int


LOOK = Look("events.parquet", {"moment": "at", "user": "user_id", "kind": "kind", "amount": "amount"},
            ("view", "cart", "order", "refund", "gift"), -1.0, 250_000, 61)  # fmt: skip
_TYPES = {"moment": pa.timestamp("s"), "user": pa.int32(), "kind": pa.string(), "amount": pa.float64()}


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write the file and the meanings; what the checker needs is added up on the way."""
    chance = np.random.default_rng(look.seed)
    schema = pa.schema([(name, _TYPES[key]) for key, name in look.names.items()])
    weights = np.arange(1, len(look.kinds) + 1) / sum(range(1, len(look.kinds) + 1))
    found = {kind: [0, 0, 0.0, 0.0] for kind in look.kinds}
    memory, left = 0, ROWS
    with pq.ParquetWriter(folder / look.file, schema) as writer:
        while left:
            size = min(look.group, left)
            left -= size
            kind = chance.choice(len(look.kinds), size, p=weights)
            amount = np.round(chance.gamma(2.0, 12.0, size) * (kind + 1), 2)
            amount[chance.random(size) < 0.07] = look.mark
            for number, name in enumerate(look.kinds):
                some = amount[kind == number]
                valid = some[some != look.mark]
                total, known, added, largest = found[name]
                found[name] = [
                    total + len(some),
                    known + len(valid),
                    added + valid.sum(),
                    max(largest, valid.max(initial=0.0)),
                ]
            values = {"kind": pa.array(look.kinds).take(pa.array(kind)), "amount": amount, "user": chance.integers(0, 90_000, size, dtype=np.int32),
                      "moment": (1_700_000_000 + np.sort(chance.integers(0, 30_000_000, size))).astype("datetime64[s]")}  # fmt: skip
            table = pa.table([pa.array(values[key], type=_TYPES[key]) for key in look.names], schema=schema)
            memory += table.nbytes
            writer.write_table(table, row_group_size=look.group)
    meanings = {
        "moment": "moment of the event",
        "user": "who it was",
        "kind": "kind of the event",
        "amount": f"amount in EUR; {look.mark:g} when unknown",
    }
    write_meanings(folder / "about.md", {name: meanings[key] for key, name in look.names.items()})
    return {"kinds": found, "rows": ROWS, "memory": memory}
