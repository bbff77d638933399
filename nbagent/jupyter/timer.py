"""Remembers how long the cells that a person runs take, by the ids that the front end sends with them.

JupyterLab writes that into a notebook only where it was told to ("Record timing"); this knows it for the cells of this
kernel's life. Must not know of agents. Read `CellTimer.install`.
"""

from __future__ import annotations

import time
from typing import Any

from nbagent.tools.times import RunTimes


class CellTimer:
    """Listens to one shell's cells; `times` is what it knows."""

    def __init__(self, shell: Any) -> None:
        self.times = RunTimes()
        self._shell = shell
        self._began: dict[str, float] = {}

    def install(self) -> None:
        """Begin to listen."""
        self._shell.events.register("pre_run_cell", self._begin)
        self._shell.events.register("post_run_cell", self._end)

    def remove(self) -> None:
        """Stop listening."""
        for name, listener in (("pre_run_cell", self._begin), ("post_run_cell", self._end)):
            if listener in self._shell.events.callbacks[name]:
                self._shell.events.unregister(name, listener)

    def _begin(self, info: Any) -> None:
        if (cell_id := _id(info)) is not None:
            self._began[cell_id] = time.monotonic()

    def _end(self, result: Any) -> None:
        cell_id = _id(getattr(result, "info", None))
        if cell_id is not None and (began := self._began.pop(cell_id, None)) is not None:
            self.times.took(cell_id, time.monotonic() - began)


def _id(info: Any) -> str | None:
    """Return the id of the cell; code that was run by other code has none."""
    found = getattr(info, "cell_id", None)
    return found if isinstance(found, str) and found else None
