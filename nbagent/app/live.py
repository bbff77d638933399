"""The agent's cell in a notebook that a person has open: from the live view to the record that stays.

While the run goes on its file is kept up with it, so that a page that is loaded again, and the other tabs, find the view
and the cells. If no page is there at the end, the record waits for one; if the kernel goes away, the page puts the
record as it stood in the view's place; if the cell itself is deleted, the run ends. Read `LiveCell`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbagent.app.waiting import WaitingRecords, output, written
from nbagent.core.errors import NotebookError
from nbagent.core.events import (
    ApprovalAsked,
    CallEnded,
    Event,
    QuestionAsked,
    Reason,
    RunEnded,
    RunStarted,
    State,
    innermost,
)

if TYPE_CHECKING:
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.notebook import LiveNotebook
    from nbagent.view.fold import ViewModel
    from nbagent.view.widget import AgentView

_log = logging.getLogger("nbagent")

SAVE_EVERY = 15.0
"""Seconds after which a run that changes cells and asks nobody is saved again."""

_STOPPED = frozenset({Reason.INTERRUPTED, Reason.TIMEOUT, Reason.CELL_GONE})
"""Ends after which nobody should have to wait for a page that may not be there."""

KERNEL_GONE = "The kernel went away: this run has ended, and nothing more was executed."


class LiveCell:
    """See the module's docstring. It is shown every event after `view`, which is its page's live view."""

    def __init__(self, notebook: LiveNotebook, bridge: Bridge, view: AgentView) -> None:
        self._notebook = notebook
        self._bridge = bridge
        self._view = view
        self._loop = asyncio.get_running_loop()
        self._saving: asyncio.Task[None] | None = None
        self._wanted = False
        self._saved_at = self._loop.time()
        self._save()  # a page that is loaded in mid-run finds this view only if it stands in the saved file

    def show(self, event: Event) -> None:
        """Take one event: before a person is waited for, and now and then, the file is brought up to date."""
        if isinstance(event, RunEnded) and event.reason in _STOPPED:
            self._bridge.hurry()
        asks = isinstance(innermost(event), ApprovalAsked | QuestionAsked)
        if asks or isinstance(event, RunStarted):
            self._bridge.tell(
                "fallback", cell=self._notebook.own_cell, outputs=[output(_as_it_stands(self._view.view))]
            )
        due = isinstance(event, CallEnded) and self._loop.time() - self._saved_at > SAVE_EVERY
        if self._notebook.unsaved and (asks or due):
            self._save()

    async def finish(
        self,
        bundle: Mapping[str, str],
        number: int,
        waiting: WaitingRecords,
        more: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write the record, and what is shown below it, through the document, as a page that was reloaded needs it, and save.

        Where no page is there, it waits for one.
        """
        self._wanted = False
        if self._saving is not None:
            await asyncio.wait({self._saving})
        cell = self._notebook.own_cell
        if not await written(self._notebook, self._bridge, bundle, number, more) and cell is not None:
            waiting.put(cell, bundle, number, more)

    def close(self) -> None:
        """Stop saving."""
        if self._saving is not None:
            self._saving.cancel()

    def _save(self) -> None:
        """Save soon; never twice at a time, since the second would find that the file has changed."""
        self._wanted, self._saved_at = True, self._loop.time()
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_while_wanted(), name="nbagent-save")
            self._saving.add_done_callback(_saved)

    async def _save_while_wanted(self) -> None:
        while self._wanted:
            self._wanted = False
            try:
                await self._notebook.save()
            except NotebookError as error:
                _log.info("the notebook was not saved in mid-run: %s", error)


def _saved(saving: asyncio.Task[None]) -> None:
    """See a bug of ours that has ended a save: nobody else asks for it."""
    if not saving.cancelled() and (error := saving.exception()) is not None:
        _log.error("saving the notebook in mid-run failed", exc_info=error)


def _as_it_stands(view: ViewModel) -> dict[str, str]:
    """Return the record of a run that the kernel's end cuts off now."""
    from nbagent.view.fold import fold
    from nbagent.view.record import record

    ended = RunEnded(
        state=State.DONE, turn=view.turn, at=view.at, reason=Reason.ERROR, sentence=KERNEL_GONE, next_step="", text="",
        turns=view.turn,
    )  # fmt: skip
    return record(fold(view, ended))
