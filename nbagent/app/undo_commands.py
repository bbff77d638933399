"""`%agent undo`, `redo` and `forget`, and the buttons that mean the same in the record of a finished run.

Finds the page that shows the notebook, has `Undo` do the work, and writes into the run's record that it was taken back.
Read `undo`, then `clicked`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from nbagent.app.undo import RUNNING, UNKNOWN, Turned, clock
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.core.ports import Output
from nbagent.extend.runs import RunStore
from nbagent.tools.cells import starts_agent

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.extend.checkpoints import Head
    from nbagent.jupyter.desk import Click, Said
    from nbagent.jupyter.notebook import LiveNotebook

_log = logging.getLogger("nbagent")

AGAIN_SOON = 15.0
"""Seconds in which the page runs the cell; a person who runs it later means what they do."""
NO_AGAIN = "Run this cell again with %%agent --again: this page has no button that would do it."


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def undo(extension: Extension, rest: str) -> str:
    """Take back the last run that is not taken back yet, or the one that is named."""
    return await _turned(extension, rest, again=False)


async def redo(extension: Extension, rest: str) -> str:
    """Do again what was taken back last, or the run that is named."""
    return await _turned(extension, rest, again=True)


async def forget(extension: Extension, rest: str) -> str:
    """Let go of all checkpoints, and say how much that was."""
    if rest:
        raise ConfigError(f"%agent forget takes nothing, not {rest!r}: it forgets every run of this notebook.")
    _not_while_running(extension)
    async with _page_of(extension) as notebook:
        return extension.undo.forget(notebook, _document(notebook))


async def _turned(extension: Extension, rest: str, *, again: bool) -> str:
    words = rest.split()
    if len(words) > 1 or (words and not words[0].startswith("run-")):
        raise ConfigError(f"%agent undo and redo take a run's id (run-…) or nothing, not {rest!r}.")
    _not_while_running(extension)
    async with _page_of(extension) as notebook:
        turned = await _turn(extension, notebook, "".join(words), again=again)
        await _write_down(notebook, turned)
    return turned.text


async def _turn(extension: Extension, notebook: LiveNotebook | None, run: str, *, again: bool) -> Turned:
    """Take a run back, or do it again; one that was taken back is no finished run of its cell any more."""
    turned = await extension.undo.turn(notebook, run, again=again, document=_document(notebook))
    if turned.did and turned.head is not None and not again:
        RunStore(extension.folder).forget(turned.head.run)
    return turned


def _document(notebook: LiveNotebook | None) -> str:
    return notebook.document if notebook is not None else ""


def _not_while_running(extension: Extension) -> None:
    if extension.stop is not None:
        raise ConfigError(RUNNING)


@asynccontextmanager
async def _page_of(extension: Extension) -> AsyncGenerator[LiveNotebook | None]:
    """Give the notebook of the page that shows the running cell, None where no page answers."""
    shell = extension.shell
    if getattr(shell, "kernel", None) is None:
        yield None
        return
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.front_end import reach, running_cell
    from nbagent.jupyter.notebook import LiveNotebook

    cell = running_cell(shell)
    bridge = Bridge(cell=cell)
    try:
        async with reach(bridge, shell, extension.silent) as hello:
            there = hello is not None and hello.document
            yield LiveNotebook(bridge, hello, own_cell=cell) if there and hello is not None else None
    finally:
        bridge.close()


# ── the buttons ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def clicked(extension: Extension, click: Click) -> Said:
    """Do what a click in the record of a run asks for; return what is said beside the button, "" where the record says it."""
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.desk import Said
    from nbagent.jupyter.notebook import LiveNotebook

    if extension.stop is not None or extension.undo.lock.locked():
        return Said(RUNNING)
    if not click.cell or not _has_run(extension, click):
        return Said(NO_AGAIN if click.op == "again" else UNKNOWN)
    if click.op != "again" and extension.undo.find(None, click.run) is None:
        return Said(UNKNOWN)
    bridge = Bridge(cell=click.cell)
    try:
        hello = await bridge.hello()
        there = hello is not None and hello.document
        notebook = LiveNotebook(bridge, hello, own_cell=click.cell) if there and hello is not None else None
        if click.op == "again":
            return await _again(extension, click, notebook)
        turned = await _turn(extension, notebook, click.run, again=click.op == "redo")
        written = await _write_down(notebook, turned)
    finally:
        bridge.close()
    return Said("" if written else turned.text)


def _has_run(extension: Extension, click: Click) -> bool:
    """Whether the run is one of this person's and was in the cell whose output has the link."""
    if extension.undo.has_run(click.run, click.cell):
        return True
    return click.op == "again" and any(run.run == click.run for run in RunStore(extension.folder).of_cell(click.cell))


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
    extension.again[click.cell] = time.monotonic() + AGAIN_SOON
    return Said(NO_AGAIN, execute=click.cell)


def show_desk(extension: Extension) -> None:
    """Have the pages of this kernel listen to the buttons of finished runs, from the first run on."""
    from nbagent.jupyter.desk import Desk

    if extension.desk is None:
        extension.desk = Desk(extension.shell.kernel, lambda click: clicked(extension, click))


# ── the record ───────────────────────────────────────────────────────────────────────────────────────────────────────

_BANNER = re.compile(r"<!--taken back-->.*?<!--/taken back-->", re.DOTALL)
_FIRST_TAG = re.compile(r"\A\s*<div[^>]*>")
_PLAIN = re.compile(r"\A(?:\*\*)?Taken back at [^\n]*\n\n")
_UNDO, _REDO = "%agent undo</a> takes this run back", "%agent redo</a> does it again"


async def _write_down(notebook: LiveNotebook | None, turned: Turned) -> bool:
    """Write into the run's record whether it is taken back, and save; return whether the record says it now."""
    if notebook is None or not turned.did or turned.head is None:
        return False
    try:
        written = await _stamp(notebook, turned.head, turned.text)
        await notebook.save()
    except NotebookError as error:  # its cell is gone, or the page: what was done is done
        _log.info("the record could not be changed: %s", error)
        return False
    return written


async def _stamp(notebook: LiveNotebook, head: Head, text: str) -> bool:
    if head.own_cell is None:
        return False
    cell = await notebook.read(head.own_cell)
    outputs = [stamped(output, head, text) for output in cell.outputs]
    if list(cell.outputs) == outputs:
        return False
    await _set(notebook, head.own_cell, outputs, cell.number)
    return True


async def _set(notebook: LiveNotebook, cell: str, outputs: Sequence[Output], number: int | None) -> None:
    if cell == notebook.own_cell:
        await notebook.set_record(outputs, number)
    else:
        await notebook.set_outputs(cell, outputs, number)


def stamped(output: Output, head: Head, text: str) -> Output:
    """Return an output of the run's cell as it must be now: its record says whether the run is taken back."""
    data = output.get("data")
    html = _joined(data.get("text/html")) if isinstance(data, dict) else ""
    if not isinstance(data, dict) or not re.search(rf'"#nbagent-(?:undo|redo)-{re.escape(head.run)}"', html):
        return output
    back = bool(head.undone)
    html = _BANNER.sub("", html)
    old, new = ("undo", "redo") if back else ("redo", "undo")
    html = html.replace(f'"#nbagent-{old}-{head.run}"', f'"#nbagent-{new}-{head.run}"')
    html = html.replace(*((_UNDO, _REDO) if back else (_REDO, _UNDO)))
    changed: dict[str, Any] = {**data, "text/html": html}
    when = f"Taken back at {clock(head.undone_at)}."
    if back:
        first = _FIRST_TAG.match(html)
        place = first.end() if first else 0
        changed["text/html"] = f"{html[:place]}{_banner(when, text)}{html[place:]}"
    for mime, line in (("text/markdown", f"**{when}**"), ("text/plain", when)):
        if mime in data:
            rest = _PLAIN.sub("", _joined(data[mime]))
            changed[mime] = f"{line}\n\n{rest}" if back else rest
    return {**output, "data": changed}


def _banner(when: str, text: str) -> str:
    lines = "<br>".join(escape(line).replace("  ", "&nbsp; ") for line in text.split("\n")[1:])
    return f"<!--taken back--><p><b>{escape(when)}</b><br>{lines}</p><!--/taken back-->"


def _joined(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
