"""Which rows of a table a profile reads: all of a small one, stretches spread evenly over a large one, or all when asked.

Stretches keep neighbours together, so that steps in time can be seen; their number is bounded by cells and by bytes, so
that a profile costs the same whatever the size of the table. Read `planned`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nbagent.tools.data.reading import Table

ROWS = 100_000
"""Rows of a sample."""
CELLS = 400_000
"""Cells of a sample: of a table with more columns fewer rows are read."""
_BYTES = 100_000_000
_LEAST = 60
_STRETCHES = 20
_AT_ONCE = 40_000  # cells that are taken at a time: the kernel goes on between


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows to read, as stretches in order: pairs of the first row and the one after the last."""

    stretches: tuple[tuple[int, int], ...]
    rows: int
    of: int

    @property
    def whole(self) -> bool:
        """Whether these are all rows of the table."""
        return self.rows == self.of

    def said(self) -> str:
        """Return in words which rows are read."""
        if self.whole:
            return f"Of all {self.of:,} rows."
        parts = len(self.stretches)
        how = f"{parts} stretches of {self.stretches[0][1] - self.stretches[0][0]:,} rows, spread evenly from first to last"
        return f"Of {self.rows:,} of {self.of:,} rows ({how}); full=true reads all."

    def pieces(self, columns: int) -> Iterator[tuple[int, int, bool]]:
        """Yield what to take at a time: from which row up to which, and whether it goes on where the last one ended."""
        step = max(50, _AT_ONCE // max(1, min(columns, 40)))
        before = 0
        for start, stop in self.stretches:
            for at in range(start, stop, step):
                end = min(at + step, stop)
                yield at, end, at == before
                before = end


def planned(table: Table, *, full: bool = False) -> Plan:
    """Return which rows of a table to read."""
    if full:
        return Plan(((0, table.rows),), table.rows, table.rows)
    columns = max(1, len(table.columns))
    width = sum(column.width for column in table.columns if column.take is not None)
    most = min(ROWS, max(_LEAST, CELLS // columns), max(_LEAST, int(_BYTES / max(width, 1.0))))
    if table.rows <= most:
        return Plan(((0, table.rows),), table.rows, table.rows)
    parts = min(_STRETCHES, max(3, most // 500))
    size = most // parts
    starts = [round(place * (table.rows - size) / (parts - 1)) for place in range(parts)]
    return Plan(tuple((start, start + size) for start in starts), size * parts, table.rows)


def batches(columns: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield from which column up to which a piece of so many rows is taken at a time."""
    step = max(1, _AT_ONCE // max(1, rows))
    for start in range(0, columns, step):
        yield start, min(start + step, columns)
