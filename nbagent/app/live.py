"""The agent's cell in a notebook that a person has open: from the live view to the record that stays.

While the run goes on its file is kept up with it, so that a page that is loaded again, and the other tabs, find the view
and the cells. If no page is there at the end, the record waits for one; if the kernel goes away, the page puts the
record as it stood in the view's place; if the cell itself is deleted, the run ends. Read `LiveCell`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

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
from nbagent.core.ports import Output

if TYPE_CHECKING:
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.notebook import LiveNotebook
    from nbagent.view.fold import ViewModel
    from nbagent.view.widget import AgentView

_log = logging.getLogger("nbagent")

Later = Callable[[asyncio.Task[None]], None]
"""Keeps a task that goes on after the run."""

SAVE_EVERY = 15.0
"""Seconds after which a run that changes cells and asks nobody is saved again."""

KERNEL_GONE = "The kernel went away: this run has ended, and nothing more was executed."
CELL_GONE = "The agent's cell was deleted, so its run has ended. Nothing more was executed."


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
        asks = isinstance(innermost(event), ApprovalAsked | QuestionAsked)
        if asks or isinstance(event, RunStarted):
            self._bridge.tell(
                "fallback", cell=self._notebook.own_cell, outputs=[_output(_as_it_stands(self._view.view))]
            )
        due = isinstance(event, CallEnded) and self._loop.time() - self._saved_at > SAVE_EVERY
        if self._notebook.unsaved and (asks or due):
            self._save()

    async def finish(self, bundle: Mapping[str, str], number: int, later: Later) -> None:
        """Write the record through the document, as a page that was reloaded needs it, and save.

        Where no page is there, it waits for one: `later` is given the task, which must be kept.
        """
        self._wanted = False
        if self._saving is not None:
            await asyncio.wait({self._saving})
        if not await _written(self._notebook, self._bridge, bundle, number):
            cell = self._notebook.own_cell
            later(asyncio.create_task(_when_a_page_is_back(cell, bundle, number), name="nbagent-record"))

    def close(self) -> None:
        """Stop saving."""
        if self._saving is not None:
            self._saving.cancel()

    def _save(self) -> None:
        """Save soon; never twice at a time, since the second would find that the file has changed."""
        self._wanted, self._saved_at = True, self._loop.time()
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_while_wanted(), name="nbagent-save")

    async def _save_while_wanted(self) -> None:
        while self._wanted:
            self._wanted = False
            try:
                await self._notebook.save()
            except NotebookError as error:
                _log.info("the notebook was not saved in mid-run: %s", error)


async def _written(notebook: LiveNotebook, bridge: Bridge, bundle: Mapping[str, str], number: int) -> bool:
    """Write the record; return whether it is in the document or never can be, False where no page is there."""
    from nbagent.jupyter.channel import PageRefused

    try:
        await notebook.set_record([_output(bundle)], number)
        await notebook.save()
    except PageRefused as refused:
        if refused.code == "unknown_cell":
            bridge.tell("notice", text=CELL_GONE)
        _log.info("the record was not saved: %s", refused)
    except NotebookError as error:
        _log.info("the page was gone when the run ended, its record waits for one: %s", error)
        return False
    return True


async def _when_a_page_is_back(cell: str | None, bundle: Mapping[str, str], number: int) -> None:
    """Write the record as soon as a page that has the cell is ready; the bridge of the run itself is closed."""
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.notebook import LiveNotebook

    bridge = Bridge(cell=cell)
    try:
        while not await _written(LiveNotebook(bridge, await bridge.led(), own_cell=cell), bridge, bundle, number):
            pass
    finally:
        bridge.close()


def _output(bundle: Mapping[str, str]) -> Output:
    return {"output_type": "display_data", "data": dict(bundle), "metadata": {}}


def _as_it_stands(view: ViewModel) -> dict[str, str]:
    """Return the record of a run that the kernel's end cuts off now."""
    from nbagent.view.fold import fold
    from nbagent.view.record import record

    ended = RunEnded(
        state=State.DONE, turn=view.turn, at=view.at, reason=Reason.ERROR, sentence=KERNEL_GONE, next_step="", text="",
        turns=view.turn,
    )  # fmt: skip
    return record(fold(view, ended))
