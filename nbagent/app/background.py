"""Runs that go on in the background: `%%agent --background` from the moment at which its cell returns, to its record.

All questions of the beginning are asked in the cell. Then the cell ends, and the run goes on in a task of its own; its
panel stays, and becomes the record through the page's document, since what a kernel sends for a cell that has ended does
not reach that cell any more. Where no page has the document the run stays in its cell. Read `beside`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from nbagent.app.consent import before_run
from nbagent.app.handle import Handle
from nbagent.app.notices import Notice, ended_words
from nbagent.app.underway import LiveRun, name_of
from nbagent.app.undo import new_run_id
from nbagent.app.waiting import output
from nbagent.core.errors import NotebookError
from nbagent.core.events import Noted
from nbagent.core.ports import Notebook
from nbagent.core.run import Stop
from nbagent.jupyter.front_end import running_cell

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.onerun import Outcome, Ready, Request
    from nbagent.app.place import Place
    from nbagent.view.widget import AgentView

_log = logging.getLogger("nbagent")

WIDGET = "application/vnd.jupyter.widget-view+json"
STAYS = (
    "No page with this notebook's document is there for the record of a run in the background, so this one stays in its "
    "cell: the cell ends when the run does."
)
STILL = (
    "This cell's agent still runs in the background; here is its panel again.\n"
    "To run the cell anew, stop it first: %agent agents stop {}"
)
FAILED = "nbagent itself failed in the background. %agent traceback shows where."


def new_run(extension: Extension, request: Request) -> LiveRun:
    """Return the run of the cell that runs now, as it is known from here on."""
    name = str(request.given.get("name") or name_of(request.words))
    cell = running_cell(extension.shell) or ""
    return LiveRun(new_run_id(), name, request.words, cell, Stop(), background=request.background)


def stays_in_its_cell(live: LiveRun, place: Place) -> None:
    """Have a run that was to go on in the background stay in its cell, and say so, where no page can take its record."""
    if live.background and not place.patient:
        live.background = False
        place.view.show(before_run(Noted, text=STAYS, level="info"))


def shown_again(extension: Extension) -> Handle | None:
    """Where the cell that runs now has a run in the background, show that in it again; a cell has one run at a time."""
    live = extension.underway.of_cell(running_cell(extension.shell) or "")
    if live is None or live.handle is None or live.view is None:
        return None
    live.handle.number = extension.number.keep()
    from IPython.display import display

    display(panel_of(live.view), raw=True)
    print(STILL.format(live.id))  # noqa: T201  (the cell's own words)
    return live.handle


def panel_of(view: AgentView) -> dict[str, Any]:
    """Return what shows a live view, with no words for where there are no widgets: the record has them."""
    return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": view.widget.model_id}, "text/plain": ""}


async def beside(extension: Extension, ready: Ready, closing: AsyncExitStack, number: int) -> Handle:
    """Let a run that is ready go on by itself, with all that `closing` closes; return what stands for it."""
    live, place = ready.live, ready.place
    await place.leave_cell()
    if place.bridge is not None:
        place.bridge.cell_ended()
    handle = live.handle = Handle(live, extension.main, number)
    live.stop.apart()
    extension.notices.begin(notice_of(ready))
    task = asyncio.create_task(_goes_on(extension, ready, closing.pop_all(), handle), name=f"nbagent-{live.id}")
    task.add_done_callback(seen)
    live.task = task
    return handle


async def _goes_on(extension: Extension, ready: Ready, closing: AsyncExitStack, handle: Handle) -> None:
    """Run to the end, write the record, close the place, and tell what came of it."""
    extension.main.leave()
    live, outcome = ready.live, None
    try:
        async with closing:
            from nbagent.app.onerun import go

            try:
                outcome = await go(ready)
            finally:
                ready.parts.besides.end(handle.number)
                await ready.place.finish(handle.number)
                await recorded(live, ready.place.notebook)
                extension.underway.remove(live)
                tell(extension, ready, outcome)
                handle.end(outcome.answer if outcome is not None else None, FAILED)
            await ready.parts.besides.wait()  # its place stays open for them
    finally:
        extension.underway.remove(live)
        if not handle.done:
            handle.end(None, FAILED)


async def recorded(live: LiveRun, notebook: Notebook | None) -> None:
    """Put the record of a run that is over where other cells show its panel, which is dead from now on."""
    if live.view is None or notebook is None:
        return
    from nbagent.view.record import record

    view, bundle = live.view.widget.model_id, output(record(live.view.view))
    for cell_id in live.watched:
        try:
            cell = await notebook.read(cell_id)
            outputs = [bundle if view in str((one.get("data") or {}).get(WIDGET)) else one for one in cell.outputs]
            await notebook.set_outputs(cell_id, outputs, cell.number)
        except NotebookError as error:
            _log.info("a cell that showed the panel of %s has no record: %s", live.id, error)


def notice_of(ready: Ready) -> Notice:
    """Return what is to be told of a run when it is over; until then it says that the kernel's end cut it off."""
    live, place, extension = ready.live, ready.place, ready.extension
    notebook = place.notebook.path if place.notebook is not None else ""
    return Notice(live.id, live.name, ready.prompt, place.document, notebook, live.session, extension.kernel_id)


def tell(extension: Extension, ready: Ready, outcome: Outcome | None) -> None:
    """Have the notebook's conversation hear how a run beside it has ended."""
    text = FAILED if outcome is None else ended_words(outcome.ended, extension.privacy.vault.mask)
    extension.notices.end(ready.live.id, text)


def seen(task: asyncio.Task[None]) -> None:
    """Keep a bug of ours for `%agent traceback`: nobody awaits the task."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a run in the background failed", exc_info=error)
