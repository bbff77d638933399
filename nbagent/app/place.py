"""Finds out where a `%%agent` cell runs, and gives the run what that place has: a view, a notebook, somebody to ask.

Decided by what answers the hello, never by names or versions of environments (kernel-facts). A page with the notebook's
document: live notebook and buttons. A page without it: buttons only. A headless page: live notebook, the policy
answers. Nothing: the policy answers. A terminal: typed answers, text.
"""

from __future__ import annotations

import asyncio
import io
import logging
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from nbagent.core.errors import NotebookError
from nbagent.core.events import ApprovalAsked, Event, QuestionAsked
from nbagent.core.ports import Answered, Approver, Notebook, Output
from nbagent.jupyter.interrupts import stopping

if TYPE_CHECKING:
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.notebook import LiveNotebook

_log = logging.getLogger("nbagent")


class View(Protocol):
    """Shows a run's events."""

    def show(self, event: Event) -> None:
        """Take one event."""
        ...


@dataclass(slots=True)
class Place:
    """Where a run takes place. `finish` replaces the live view by the record; it takes the cell's execution count."""

    view: View
    approver: Approver
    notebook: Notebook | None
    finish: Callable[[int], Awaitable[None]]


@asynccontextmanager
async def find_place(shell: Any, stop: Callable[[], None]) -> AsyncGenerator[Place]:
    """Show the view at once, ask who is there, and yield the place; everything is closed again at the end.

    `stop` is called, on the loop, when the person presses Stop.
    """
    if getattr(shell, "kernel", None) is None:
        with stopping(stop):
            yield _terminal()
        return
    async with AsyncExitStack() as closing:
        yield await _page(shell, stop, closing)


def _terminal() -> Place:
    from rich.console import Console

    from nbagent.jupyter.approval import PolicyApprover, TypedApprover
    from nbagent.view.terminal import TerminalView

    view = TerminalView(Console())
    if not sys.stdin.isatty():
        return Place(view, PolicyApprover(), None, _nothing)
    return Place(_WithoutCards(view), TypedApprover(), None, _nothing)


async def _nothing(_: int) -> None:
    """On a terminal what was written stays."""


async def _keep_record(notebook: LiveNotebook, bundle: dict[str, str], number: int) -> None:
    """Write the record through the document, as a page that was reloaded needs it, and save; without a page it is lost."""
    output: Output = {"output_type": "display_data", "data": dict(bundle), "metadata": {}}
    try:
        await notebook.set_record([output], number)
        await notebook.save()
    except NotebookError:
        _log.info("the page was gone when the run ended: its record could only be sent, not saved")


async def _saved(notebook: LiveNotebook) -> None:
    try:
        await notebook.save()
    except NotebookError:
        _log.info("the notebook could not be saved at the start of the run")


async def _page(shell: Any, stop: Callable[[], None], closing: AsyncExitStack) -> Place:
    from IPython.display import display, update_display

    from nbagent.jupyter.approval import PersonApprover, PolicyApprover
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.front_end import reach, running_cell
    from nbagent.jupyter.notebook import LiveNotebook
    from nbagent.view.record import record
    from nbagent.view.widget import AgentView

    person = PersonApprover()
    closing.callback(person.close)

    def answer(call_id: str, shown: str, answered: Answered) -> None:
        person.answer(call_id, shown, answered)

    def reply(question_id: str, text: str) -> None:
        person.answer_question(question_id, text)

    view = AgentView(on_answer=answer, on_reply=reply, on_stop=stop)
    closing.callback(view.close)
    display_id = f"nbagent-{secrets.token_hex(8)}"
    display(view.widget, display_id=display_id)
    shown: dict[str, str] = {"text/plain": ""}  # a view that never became a record must not stay as a dead widget
    closing.callback(lambda: update_display(shown, display_id=display_id, raw=True))
    cell = running_cell(shell)
    bridge = Bridge(cell=cell)
    closing.callback(bridge.close)
    hello = await closing.enter_async_context(reach(bridge, shell))
    notebook = LiveNotebook(bridge, hello, own_cell=cell) if hello is not None and hello.document else None

    if notebook is not None and hello is not None and hello.interactive:
        # a page that is reloaded in mid-run finds this view again only if it stands in the saved file
        saving = asyncio.create_task(_saved(notebook))
        closing.callback(saving.cancel)

    async def finish(number: int) -> None:
        view.flush()
        if not view.view.started:
            return
        shown.update(record(view.view))
        if notebook is not None and hello is not None and hello.interactive:
            await _keep_record(notebook, shown, number)

    if hello is not None and hello.interactive:
        return Place(view, person, notebook, finish)
    said = _Both(view, _said_to(bridge)) if hello is not None else view
    return Place(said, PolicyApprover(), notebook, finish)


class _WithoutCards:
    """A view beside which the approver shows what it asks."""

    def __init__(self, view: View) -> None:
        self._view = view

    def show(self, event: Event) -> None:
        if not isinstance(event, ApprovalAsked | QuestionAsked):
            self._view.show(event)


class _Both:
    """Shows events in two views."""

    def __init__(self, first: View, second: View) -> None:
        self._views = (first, second)

    def show(self, event: Event) -> None:
        for view in self._views:
            view.show(event)


class _Saying(io.TextIOBase):
    """A text file that says what is written to it to the page, a line at a time."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._part = ""

    def write(self, text: str) -> int:
        lines, newline, rest = (self._part + text).rpartition("\n")
        self._part = rest
        if newline:
            self._bridge.tell("say", text=lines + newline)
        return len(text)


def _said_to(bridge: Bridge) -> View:
    """A view for the terminal from which a headless page runs the notebook."""
    from rich.console import Console

    from nbagent.view.terminal import TerminalView

    said = cast("IO[str]", _Saying(bridge))
    return TerminalView(Console(file=said, width=100, color_system=None, force_terminal=False, force_jupyter=False))
