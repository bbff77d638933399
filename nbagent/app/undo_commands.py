"""`%agent undo`, `redo` and `forget`, and the buttons that mean the same in the record of a finished run.

Finds the page that shows the notebook, has `Undo` do the work, and the run's record say so. Read `undo`, then `clicked`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Literal

from nbagent.app.continuing import ONLY_LAST
from nbagent.app.document import find_document
from nbagent.app.undo import RUNNING, UNKNOWN
from nbagent.app.undo_record import write_down
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.tools.cells import starts_agent

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.jupyter.desk import Click, Said
    from nbagent.jupyter.notebook import LiveNotebook

AGAIN_SOON = 15.0
"""Seconds in which the page runs the cell; a person who runs it later means what they do."""
NO_AGAIN = "Run this cell again with %%agent --again: this page has no button that would do it."

NO_CONTINUE = "Write %agent continue in a cell: this page has no button that would do it."

# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def undo(extension: Extension, rest: str) -> str:
    """Take back the last run that is not taken back yet, or the one that is named."""
    text, _ = await _carry_out(extension, "undo", _named(rest))
    return text


async def redo(extension: Extension, rest: str) -> str:
    """Do again what was taken back last, or the run that is named."""
    text, _ = await _carry_out(extension, "redo", _named(rest))
    return text


async def forget(extension: Extension, rest: str) -> str:
    """Let go of all checkpoints, and say how much that was."""
    if rest:
        raise ConfigError(f"%agent forget takes nothing, not {rest!r}: it forgets every run of this notebook.")
    async with find_document(extension.shell) as notebook:
        return await extension.undo.forget(notebook, document=_document(notebook))


def _named(rest: str) -> str:
    """Return the run that is named, "" where none is."""
    words = rest.split()
    if len(words) > 1 or (words and not words[0].startswith("run-")):
        raise ConfigError(f"%agent undo and redo take a run's id (run-…) or nothing, not {rest!r}.")
    return "".join(words)


async def _carry_out(
    extension: Extension, op: Literal["undo", "redo"], run: str, cell: str | None = None
) -> tuple[str, bool]:
    """Return what is said of it, and whether the run's record says it; `cell` is that of the link that was clicked."""
    async with find_document(extension.shell, cell) as notebook:
        act = extension.undo.take_back if op == "undo" else extension.undo.do_again
        outcome = await act(notebook, run, document=_document(notebook))
        if op == "undo" and outcome.did and outcome.head is not None:  # it is no finished run of its cell any more
            extension.runs.forget(outcome.head.run)
        return outcome.text, await write_down(notebook, outcome)


def _document(notebook: LiveNotebook | None) -> str:
    return notebook.document if notebook is not None else ""


# ── the buttons ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def clicked(extension: Extension, click: Click) -> Said:
    """Do what a click in the record of a run asks for; return what is said beside the button, "" where the record says it."""
    from nbagent.jupyter.desk import Said

    if click.op == "continue" and (extension.unfinished is None or extension.unfinished.run != click.run):
        return Said(ONLY_LAST)
    if not click.cell or not await asyncio.to_thread(_has_run, extension, click):
        return Said(NO_AGAIN if click.op == "again" else UNKNOWN)
    op = click.op
    if op == "undo" or op == "redo":  # noqa: PLR1714  (the type checker follows this)
        text, written = await _carry_out(extension, op, click.run, click.cell)
        return Said("" if written else text)
    async with find_document(extension.shell, click.cell) as notebook:
        return await _again(extension, click, notebook)


def _has_run(extension: Extension, click: Click) -> bool:
    """Whether the run is one of this person's and was in the cell whose output has the link."""
    last = extension.unfinished
    if click.op == "continue":
        return last is not None and (last.run, last.cell) == (click.run, click.cell)
    if extension.undo.has_run(click.run, click.cell):
        return True
    return click.op == "again" and any(run.run == click.run for run in extension.runs.of_cell(click.cell))


async def _again(extension: Extension, click: Click, notebook: LiveNotebook | None) -> Said:
    """Have the page run the cell, if that starts an agent: the text of any other cell was never meant by this link."""
    from nbagent.jupyter.desk import Said

    try:
        cell = await notebook.read(click.cell) if notebook is not None else None
    except NotebookError:
        cell = None
    if cell is None or not starts_agent(cell.source):
        return Said(NO_AGAIN)
    if extension.stop is not None:
        return Said(RUNNING)
    asked = extension.continued if click.op == "continue" else extension.again
    asked[click.cell] = time.monotonic() + AGAIN_SOON
    return Said(NO_CONTINUE if click.op == "continue" else NO_AGAIN, execute=click.cell)


def show_desk(extension: Extension) -> None:
    """Have the pages of this kernel listen to the buttons of finished runs, from the first run on."""
    from nbagent.jupyter.desk import Desk

    if extension.desk is None:
        extension.desk = Desk(extension.shell.kernel, lambda click: clicked(extension, click))
