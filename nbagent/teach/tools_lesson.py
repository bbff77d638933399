"""What lesson 04 stands on: penguins as rows, three tools of different kinds, and a model that makes typical mistakes.

Everything is small enough to be shown in the notebook. Must not know of cells. Read `penguins`, then `runtime_script`.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbagent.core.messages import Message
from nbagent.core.tools import Kind, Tool, tool
from nbagent.models.scripted import Scripted, Value, call, last_results, say

NUMBERS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
"""The columns of the penguins that hold numbers."""


def penguins(data: Path) -> list[dict[str, Any]]:
    """Return the penguins of `data`/penguins.csv, those with all four measures, with numbers as numbers."""
    with (data / "penguins.csv").open(encoding="utf-8", newline="") as opened:
        rows = [row for row in csv.DictReader(opened) if "NA" not in [row[name] for name in NUMBERS]]
    return [{name: float(value) if name in NUMBERS else value for name, value in row.items()} for row in rows]


def runtime_tools() -> list[Tool]:
    """Return three tools of three kinds: one that only looks, one that runs scratch code, one that writes a file."""

    @tool
    async def look(_: object, column: str, limit: int = 3) -> str:
        """Show the first values of a column of the penguins."""
        return f"the first {limit} of {column}"

    @tool(kind=Kind.SCRATCH)
    async def compute(_: object, expression: str) -> str:
        """Compute an expression that leaves nothing behind."""
        return f"computed {expression}"

    @tool(kind=Kind.WRITE_FILE)
    async def save(_: object, path: str, text: str) -> str:
        """Write a text file."""
        return f"saved {len(text)} characters to {path}"

    return [look, compute, save]


def runtime_script() -> list[Scripted]:
    """Return a model that makes five calls in two replies, two of them wrong, and then answers."""
    return [
        [say("I look first."), call("look", column="island"), call("look", column="island", limit="a few")],
        [
            call("mean", column="body_mass_g"),
            call("compute", expression="6 * 7"),
            call("save", path="out.txt", text="42"),
        ],
        say("It is done."),
    ]


def as_model() -> list[Scripted]:
    """Return what stands in for a person who is the model: it leaves the species out, reads the error, and calls again."""
    return [
        call("count_rows", min_mass=5500),
        [say("The species is required."), call("count_rows", species="Gentoo", min_mass=5500)],
        _counted,
    ]


def _counted(transcript: Sequence[Message]) -> Value:
    return f"{last_results(transcript)[0]} Gentoo penguins weigh 5500 g or more."
