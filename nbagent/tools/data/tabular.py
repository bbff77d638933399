"""What describers of tables share: the words for rows and columns, and a sample that says that it is one.

Knows no library: cells and labels are given. Read `sample_lines`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from nbagent.tools.data.kinds import class_name, library
from nbagent.tools.data.ours import OURS
from nbagent.tools.describe import brief_of, label_of, short

COLUMNS = 60
"""Columns of which a table's description says the type; the others are counted."""
SAMPLE_FOR_COUNTS = 10_000
"""Rows in which missing values are counted."""

_NAMED = 6
_LIBRARIES = frozenset(key.partition(":")[0] for key in OURS)
_SAMPLE_COLUMNS = 12
_SAMPLE_ROWS = 3


class Unread:
    """Stands for a value that is left where it is: it could be huge, or is somebody else's. `line` is told of it."""

    def __init__(self, line: str) -> None:
        self.line = line


def kind_of(value: object, base: str = "") -> str:
    """Return library and class of a value: `pandas DataFrame`; of somebody's subclass, what it is made from too."""
    cls = type(value)
    if base and library(cls) not in _LIBRARIES:
        return f"{class_name(cls)} (a {base})"
    return f"{library(cls)} {type.__getattribute__(cls, '__name__')}"


def head_line(kind: str, rows: int, columns: int, labels: Iterable[Any]) -> str:
    """Return the short description of a table: kind, size, the first labels."""
    names = ", ".join(short(label_of(label), 60) for label in itertools.islice(labels, _NAMED))
    return (
        f"{kind} {rows:,} rows x {columns:,} columns{': ' if names else ''}{names}{', …' if columns > _NAMED else ''}"
    )


def of_rows(shown: int, rows: int) -> str:
    """Say which rows a count was taken from."""
    return f"all {rows:,} rows" if shown >= rows else f"the first {shown:,} of {rows:,} rows"


def more_columns(columns: int, shown: int = COLUMNS) -> list[str]:
    """Say how many columns are left out, if any."""
    return [f"  … and {columns - shown:,} more columns"] if columns > shown else []


def sample_lines(labels: Iterable[Any], rows: int, columns: int, cell: Callable[[int, int], Any]) -> Iterator[str]:
    """Yield the first rows as a table that says that it is a part. `cell` gets row and column by number."""
    shown_rows, shown_columns = min(rows, _SAMPLE_ROWS), min(columns, _SAMPLE_COLUMNS)
    if not shown_rows or not shown_columns:
        yield "no rows"
        return
    named = list(itertools.islice(labels, shown_columns))
    of_columns = "all columns" if shown_columns == columns else f"{shown_columns} of {columns:,} columns"
    yield f"sample, {shown_rows} of {rows:,} rows, {of_columns}:"
    yield "  " + " | ".join(short(label_of(label), 30) for label in named)
    for row in range(shown_rows):
        yield "  " + " | ".join(short(brief_of(label, cell(row, place), 1), 40) for place, label in enumerate(named))


def first_line(name: object, values: Sequence[Any], size: int) -> str:
    """Return the first values of a column, and of how many they are."""
    return f"first {len(values)} of {size:,}: {', '.join(brief_of(name, v, 1) for v in values)}"


def size_of(count: float) -> str:
    """Return a number of bytes in the unit that fits: `8.0 MB`."""
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    return ""
