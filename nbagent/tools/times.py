"""How long cells took: remembered from their runs in this kernel, or read from what the front end wrote down.

Must not know who ran a cell or why. Read `RunTimes.last`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nbagent.core.ports import Cell
from nbagent.tools.marks import last_timing

LONG = 30.0
"""Seconds from which on a run counts as long: a person is asked before it is made again."""


TOLD = 5.0
"""Seconds from which on a listing of cells tells how long the last run was."""


class RunTimes:
    """The last run of each cell of this kernel's notebooks, by the cell's id. Lives as long as the kernel."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._last: dict[str, tuple[float, float]] = {}

    def took(self, cell_id: str, seconds: float) -> None:
        """Remember that a run of the cell ended now and took `seconds`."""
        self._last[cell_id] = (self._clock(), seconds)

    def last(self, cell: Cell) -> float | None:
        """Return how many seconds the cell's last run took, None where that is not known."""
        known = [found for found in (self._last.get(cell.id), last_timing(cell)) if found is not None]
        return max(known)[1] if known else None

    def run_of(self, cell: Cell) -> tuple[float, float] | None:
        """Return when the cell's last run ended (seconds since 1970) and how many seconds it took; None where not known."""
        known = [found for found in (self._last.get(cell.id), last_timing(cell)) if found is not None]
        return max(known) if known else None

    def told(self, cell: Cell) -> str:
        """Return what is told of the cell's last run in a listing, "" where it was short or is not known."""
        seconds = self.last(cell) or 0.0
        return f"last took {duration(seconds)}" if seconds >= TOLD else ""

    def is_long(self, cell: Cell) -> bool:
        """Whether the cell's last run took long."""
        return (self.last(cell) or 0.0) >= LONG


def duration(seconds: float) -> str:
    """Return a duration as people say it: "0.3 s", "42 s", "2 min 5 s", "1 h 40 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
