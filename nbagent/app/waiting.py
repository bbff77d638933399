"""The records of runs whose page was gone when they ended: each is written when a page that has its cell is back.

None waits without end: a record is given up when its cell runs again, when a newer one of the same cell comes, when
nbagent is unloaded, and the oldest ones when they are too many or too large. What is given up can still be shown: its
run is on disk, and the cell can be run again for nothing. Must not know of runs. Read `WaitingRecords.put`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Output

if TYPE_CHECKING:
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.notebook import LiveNotebook

_log = logging.getLogger("nbagent")

MOST = 20
"""Records that wait at a time; each listens on a comm of its own."""
AGAIN_AFTER, AT_MOST = 2.0, 60.0
"""Seconds after which a page that is there and could not take a record is asked again, at first and at last."""
MOST_CHARACTERS = 64 * 1024 * 1024
"""Characters of all of them together: figures are in them."""

_FINAL = frozenset({"unknown_cell", "not_code", "not_saved"})
"""Refusals that no other try will change; all else may pass."""

CELL_GONE = "The agent's cell was deleted, so its run has ended. Nothing more was executed."


@dataclass(frozen=True, slots=True)
class _Waiting:
    task: asyncio.Task[None]
    size: int


class WaitingRecords:
    """What waits in one shell, by the id of its cell, the oldest first. Off the loop only `install` hears anything."""

    def __init__(
        self,
        shell: Any,
        connect: Callable[[str], Bridge] | None = None,
        *,
        most: int = MOST,
        most_characters: int = MOST_CHARACTERS,
        again_after: float = AGAIN_AFTER,
    ) -> None:
        self._shell = shell
        self._connect = connect or _connect
        self._most, self._most_characters = most, most_characters
        self._again_after = again_after
        self._waiting: dict[str, _Waiting] = {}

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells whose records wait."""
        return tuple(self._waiting)

    def install(self) -> None:
        """Hear which cells run again."""
        self._shell.events.register("pre_run_cell", self._cell_runs)

    def remove(self) -> None:
        """Give up all that waits, and hear nothing any more."""
        self._shell.events.unregister("pre_run_cell", self._cell_runs)
        for cell in self.cells:
            self.give_up(cell)

    def put(self, cell: str, bundle: Mapping[str, str], number: int, more: Sequence[Mapping[str, Any]] = ()) -> None:
        """Have the record `bundle`, with `more` below it, written into `cell`, with its execution count, as soon as a page is there."""
        self.give_up(cell)
        size = sum(len(str(text)) for one in (bundle, *more) for text in one.values())
        if size > self._most_characters:
            _log.info("the record of cell %s is too large to wait for a page", cell)
            return
        task = asyncio.create_task(self._write(cell, bundle, number, more), name=f"nbagent-record-{cell}")
        self._waiting[cell] = _Waiting(task, size)
        task.add_done_callback(lambda done: self._ended(cell, done))
        while len(self._waiting) > self._most or sum(w.size for w in self._waiting.values()) > self._most_characters:
            self.give_up(next(iter(self._waiting)))

    def give_up(self, cell: str) -> None:
        """Wait no longer for a page with `cell`, if its record does."""
        if (waiting := self._waiting.pop(cell, None)) is not None:
            waiting.task.cancel()
            _log.info("the record of cell %s waits for a page no longer", cell)

    def _cell_runs(self, info: Any) -> None:
        """Hear, on whatever thread it runs on, that a cell runs: what it shows is its own again."""
        cell = getattr(info, "cell_id", None)
        if cell and (waiting := self._waiting.get(cell)) is not None:
            waiting.task.get_loop().call_soon_threadsafe(self.give_up, cell)

    def _ended(self, cell: str, done: asyncio.Task[None]) -> None:
        if (waiting := self._waiting.get(cell)) is not None and waiting.task is done:
            del self._waiting[cell]
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.error("a record that waited for a page was not written", exc_info=error)

    async def _write(
        self, cell: str, bundle: Mapping[str, str], number: int, more: Sequence[Mapping[str, Any]]
    ) -> None:
        """Write the record when a page that has the cell is ready; the bridge of the run itself is closed."""
        from nbagent.jupyter.notebook import LiveNotebook

        bridge, pause = self._connect(cell), self._again_after
        try:
            while True:
                notebook = LiveNotebook(bridge, await bridge.led(), own_cell=cell)
                if await written(notebook, bridge, bundle, number, more):
                    return
                if bridge.lease is not None:  # it refuses for now: asked without a pause, it would do nothing else
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, AT_MOST)
        finally:
            bridge.close()


def _connect(cell: str) -> Bridge:
    from nbagent.jupyter.bridge import Bridge

    return Bridge(cell=cell)


async def written(
    notebook: LiveNotebook,
    bridge: Bridge,
    bundle: Mapping[str, str],
    number: int,
    more: Sequence[Mapping[str, Any]] = (),
) -> bool:
    """Write a record, with `more` below it; return whether it is in the document or never can be, False where it should be tried again.

    A file that changed on disk is the person's to decide about: the record is in the document, and goes with what they keep.
    """
    from nbagent.jupyter.channel import PageRefused

    try:
        await notebook.set_record([output(one) for one in (bundle, *more)], number)
        await notebook.save()
    except PageRefused as refused:
        _log.info("the record was not saved: %s", refused)
        if refused.code == "unknown_cell":
            bridge.tell("notice", text=CELL_GONE)
        return refused.code in _FINAL
    except NotebookError as error:
        _log.info("no page took the record: %s", error)
        return False
    return True


def output(bundle: Mapping[str, Any]) -> Output:
    """Return the output that shows a record."""
    return {"output_type": "display_data", "data": dict(bundle), "metadata": {}}
