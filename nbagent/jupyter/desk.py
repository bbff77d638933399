"""The one lasting connection to the pages of a kernel: what a person clicks in the record of a finished run.

A widget without a view, made by the first run. Its half in the page (static/desk.js) turns the record's plain links into
buttons as long as this kernel lives, and marks the cells that an agent wrote. Must not know what a click is for: `Desk`
hands it on, on the loop, when no cell runs, each once. Read `Desk`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anywidget
import traitlets

from nbagent import esm

_log = logging.getLogger("nbagent")

VERSION = 1
LOOK = 0.05
"""Seconds between two looks whether the running cell has ended."""

PATIENCE = 20.0
"""Seconds that a click waits for the running cell: the page gives up after 30, and nothing may be done after that."""
BUSY = "A cell is running: try again when it is done."
FAILED = "It did not work: %agent traceback shows why."

Op = Literal["undo", "redo", "again", "continue"]
_RUN = re.compile(r"\Arun-[0-9a-f]{1,32}\Z")


class DeskWidget(anywidget.AnyWidget):
    """The comm as a widget without a view: each page of the kernel loads static/desk.js for it.

    `tray` is the id of the model that each page shows at the bottom of the notebook, "" for none.
    """

    _esm = esm.module(Path(__file__).parent / "static", "desk.js")
    _view_name: Any = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    tray = traitlets.Unicode("").tag(sync=True)


@dataclass(frozen=True, slots=True)
class Click:
    """What was clicked: the link of which run, in the output of which cell, in which page."""

    op: Op
    run: str
    cell: str
    page: str


@dataclass(frozen=True, slots=True)
class Said:
    """What the page is told of a click: a sentence shown beside the link, and a cell that the page runs."""

    text: str = ""
    execute: str = ""


class Desk:
    """Make it on the running loop. `on_click` is awaited for each click on a link of ours, one at a time for a run.

    `kernel` is ipykernel's, to know whether a cell runs; `patience` are the seconds that a click may wait for it.
    """

    def __init__(
        self, kernel: Any, on_click: Callable[[Click], Awaitable[Said]], *, patience: float = PATIENCE
    ) -> None:
        self._patience = patience
        self._ahead: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()
        self._kernel = kernel
        self._on_click = on_click
        self._busy: dict[str, asyncio.Task[Said]] = {}
        self._closed = False
        self.widget = DeskWidget()
        self.widget.on_msg(lambda _widget, content, _buffers: self._receive(content))

    def hang(self, tray: str) -> None:
        """Have the pages show the widget with this model id at the bottom of the notebook; "": none any more."""
        self.widget.tray = tray

    def close(self) -> None:
        """Take the buttons and marks out of the pages again."""
        self._closed = True
        for task in list(self._busy.values()):
            task.cancel()
        self.widget.close()

    def _receive(self, content: Any) -> None:
        """Take a message from a page, on whatever thread it comes."""
        if not isinstance(content, dict) or content.get("v") != VERSION:
            return
        try:
            self._loop.call_soon_threadsafe(self._take, content)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    def _take(self, content: dict[str, Any]) -> None:
        op, page = content.get("op"), str(content.get("page"))
        if self._closed:
            return
        waited = self._waited(page, content.get("at"))
        if op == "ready":
            self._send(op="live", page=page)
            return
        click = _click(content)
        if click is None or click.run in self._busy:  # a double click is one click
            return
        task = self._loop.create_task(self._serve(click, self._patience - waited), name=f"nbagent-{click.op}")
        self._busy[click.run] = task
        task.add_done_callback(lambda task: self._served(click, task))

    def _waited(self, page: str, at: Any) -> float:
        """Return how many seconds ago a message was sent, by the page's clock `at` (ms).

        The clocks may differ: the message that came fastest tells by how much, at most.
        """
        if not isinstance(at, int | float):
            return 0.0
        ahead = time.time() - at / 1000
        self._ahead[page] = min(ahead, self._ahead.get(page, ahead))
        return ahead - self._ahead[page]

    async def _serve(self, click: Click, patience: float) -> Said:
        """Do what a click asks for, unless it has waited too long: the page has given it up by then."""
        if patience <= 0:
            return Said(BUSY)
        try:
            async with asyncio.timeout(patience):
                await self._idle()
        except TimeoutError:
            return Said(BUSY)
        return await self._on_click(click)

    def _served(self, click: Click, task: asyncio.Task[Said]) -> None:
        """Say how it went: the page waits for a word in any case."""
        del self._busy[click.run]
        if self._closed or task.cancelled():
            return
        if (error := task.exception()) is not None:
            _log.error("a click on the record of a run failed", exc_info=error)  # which keeps it for %agent traceback
        said = task.result() if error is None else Said(FAILED)
        self._send(op="said", page=click.page, run=click.run, text=said.text, execute=said.execute)

    async def _idle(self) -> None:
        """Wait until no cell runs; older kernels hand on nothing in the middle of a cell."""
        lock = getattr(self._kernel, "_main_asyncio_lock", None)
        while lock is not None and lock.locked():
            await asyncio.sleep(LOOK)

    def _send(self, **content: Any) -> None:
        self.widget.send({"v": VERSION, **content})


def _click(content: dict[str, Any]) -> Click | None:
    op, run = content.get("op"), content.get("run")
    if op not in ("undo", "redo", "again", "continue") or not isinstance(run, str) or not _RUN.match(run):
        return None
    return Click(op, run, str(content.get("cell") or ""), str(content.get("page") or ""))
