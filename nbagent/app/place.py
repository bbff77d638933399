"""Finds out where a `%%agent` cell runs, and gives the run what that place has: a view, a notebook, somebody to ask.

Decided by what answers the hello, never by names or versions of environments (kernel-facts). A page with the notebook's
document: live notebook and buttons. A page without it: buttons, and cells are proposed. A headless page: live notebook,
the policy answers. Nothing: text, and typed answers where the front end takes input, else the policy's; cells are
proposed (app/elsewhere.py). A terminal: typed answers, text. Read `find_place`.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from nbagent.core.events import ApprovalAsked, Event, QuestionAsked, innermost
from nbagent.core.ports import Answered, Approver, Notebook
from nbagent.jupyter.interrupts import stopping

if TYPE_CHECKING:
    from nbagent.app.waiting import WaitingRecords
    from nbagent.jupyter.approval import PersonApprover
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.notebook import LiveNotebook
    from nbagent.jupyter.refusals import Refusals
    from nbagent.models.human import Ask
    from nbagent.view.widget import AgentView


class View(Protocol):
    """Shows a run's events."""

    def show(self, event: Event) -> None:
        """Take one event."""
        ...


async def _no_pump() -> None:
    """Nothing has to end with the cell."""


@dataclass(slots=True)
class Place:
    """Where a run takes place. `finish` replaces the live view by the record; it takes the cell's execution count.

    `bridge` is there where a page has the notebook's document. `patient`: a person sees what runs and is asked when it
    takes long, so no time limit needs to end it. `live` is the live view with its cards, where there is one.
    `human` asks the person who is the model (-m human), None where nobody can be.
    `leave_cell` ends what must end with the cell, where the run goes on without it. `more` gives what the cell shows below
    the record: panels of subagents that go on, and their records.
    """

    view: View
    approver: Approver
    notebook: Notebook | None
    finish: Callable[[int], Awaitable[None]]
    bridge: Bridge | None = None
    patient: bool = False
    live: AgentView | None = None
    leave_cell: Callable[[], Awaitable[None]] = _no_pump
    human: Ask | None = None
    more: list[Callable[[], Mapping[str, Any]]] = field(default_factory=list[Callable[[], Mapping[str, Any]]])

    @property
    def document(self) -> str:
        """What the notebook is known by while the kernel lives, also under a new name; "" where there is none."""
        if self.bridge is not None:
            return self.bridge.document
        return self.notebook.path if self.notebook is not None else ""


@dataclass(frozen=True, slots=True)
class Reins:
    """What a place can do to the run that it shows; all are called on the loop.

    `stop`: the person pressed Stop. `spare`: they interrupted what a call runs, and not the run. `gone`: the agent's cell
    was deleted. `waiting` takes the record where no page is there at the end. `limit`: seconds after which a page asks
    whether to go on waiting for a call (None: never).
    """

    stop: Callable[[], None]
    spare: Callable[[], None]
    gone: Callable[[], None]
    waiting: WaitingRecords
    limit: float | None = None


Host = Callable[[Reins], AbstractAsyncContextManager[Place]]
"""Makes the place of a run where none has to be looked for: in a worker."""


@asynccontextmanager
async def find_place(
    shell: Any, reins: Reins, refusals: Refusals, silent: set[str] | None = None, host: Host | None = None
) -> AsyncGenerator[Place]:
    """Show the view at once, ask who is there, and yield the place; everything is closed again at the end.

    `refusals` gets what is denied because nobody can be asked while the cell runs, though somebody may read of it later.
    `silent`: see `front_end.reach`. `host` makes the place instead, where there is one.
    """
    if host is not None:
        async with host(reins) as place:
            yield place
        return
    if getattr(shell, "kernel", None) is None:
        with stopping(reins.stop):
            yield _terminal()
        return
    async with AsyncExitStack() as closing:
        in_cell = AsyncExitStack()
        place = await _page(shell, reins, closing, in_cell, refusals, silent)
        place.leave_cell = in_cell.aclose
        if place.bridge is not None:
            place.bridge.on_cell_gone(reins.gone)
        yield place


def _terminal() -> Place:
    from rich.console import Console

    from nbagent.jupyter.approval import PolicyApprover, TypedApprover
    from nbagent.jupyter.human import TypedHuman
    from nbagent.view.terminal import TerminalView

    view = TerminalView(Console())
    if not sys.stdin.isatty():
        return Place(view, PolicyApprover(), None, _nothing)
    return Place(WithoutCards(view), TypedApprover(), None, _nothing, human=TypedHuman())


async def _nothing(_: int) -> None:
    """On a terminal what was written stays."""


STARTING = "Looking for the page that shows this notebook …"
"""What a front end without widgets shows for as long as the hello takes."""


class Slot:
    """The one output in the agent's cell that is ours: the live view first, then what `show` puts in its place."""

    def __init__(self, shell: Any, view: AgentView) -> None:
        from IPython.display import display

        self._id = f"nbagent-{secrets.token_hex(8)}"
        self.bundle: dict[str, str] = {"text/plain": ""}  # no view may stay that never became a record: it is dead
        alive, _ = shell.display_formatter.format(view.widget)
        display({**alive, "text/plain": STARTING}, raw=True, display_id=self._id)

    def show(self, bundle: Mapping[str, str]) -> None:
        """Show `bundle` from now on."""
        self.bundle = dict(bundle)
        self.close()

    def close(self) -> None:
        """Take the live view away, if it is still there."""
        from IPython.display import update_display

        update_display(self.bundle, display_id=self._id, raw=True)


def asking(
    stop: Callable[[], None], spare: Callable[[], None], limit: float | None
) -> tuple[AgentView, PersonApprover]:
    """Return a live view and the approver that its buttons answer; the arguments are as in `Reins`."""
    from nbagent.jupyter.approval import PersonApprover
    from nbagent.view.widget import AgentView

    person = PersonApprover()

    def answer(call_id: str, shown: str, answered: Answered) -> None:
        person.answer(call_id, shown, answered)

    def reply(question_id: str, text: str) -> None:
        person.answer_question(question_id, text)

    return AgentView(on_answer=answer, on_reply=reply, on_stop=stop, on_spare=spare, limit=limit), person


async def _page(
    shell: Any,
    reins: Reins,
    closing: AsyncExitStack,
    in_cell: AsyncExitStack,
    refusals: Refusals,
    silent: set[str] | None,
) -> Place:
    from nbagent.app import elsewhere
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.front_end import reach, running_cell, takes_input
    from nbagent.jupyter.notebook import LiveNotebook
    from nbagent.jupyter.proposal import ProposalNotebook
    from nbagent.jupyter.whereabouts import notebook_path

    view, person = asking(reins.stop, reins.spare, reins.limit)
    closing.callback(person.close)
    closing.callback(view.close)
    slot = Slot(shell, view)
    closing.callback(slot.close)
    cell = running_cell(shell)
    bridge = Bridge(cell=cell)
    closing.callback(bridge.close)
    closing.push_async_exit(in_cell)
    hello = await in_cell.enter_async_context(reach(bridge, shell, silent))
    if hello is not None and hello.document:
        notebook = LiveNotebook(bridge, hello, own_cell=cell)
        if not hello.interactive:
            return _headless(notebook, bridge, slot, view)
        return _live(notebook, bridge, slot, view, person, closing, reins.waiting)
    path = (hello.path if hello is not None else "") or notebook_path(shell.user_ns, os.environ)
    proposals = ProposalNotebook(shell, path=path)
    if hello is not None and hello.interactive:
        return elsewhere.clicked(proposals, slot.show, view, person)
    view.close()
    person.close()
    if takes_input(shell):
        return elsewhere.typed(proposals, slot.show, shell)
    return elsewhere.unattended(proposals, slot.show, refusals)


def _live(
    notebook: LiveNotebook,
    bridge: Bridge,
    slot: Slot,
    view: AgentView,
    person: PersonApprover,
    closing: AsyncExitStack,
    waiting: WaitingRecords,
) -> Place:
    """A page with the document, in which somebody can click."""
    from nbagent.app.live import LiveCell
    from nbagent.view.record import record

    live = LiveCell(notebook, bridge, view)
    closing.callback(live.close)
    more: list[Callable[[], Mapping[str, Any]]] = []

    async def finish(number: int) -> None:
        view.flush()
        if view.view.started:
            slot.bundle = record(view.view)
            await live.finish(slot.bundle, number, waiting, [shown() for shown in more])

    return Place(
        _Both(view, live), person, notebook, finish, bridge, patient=True, live=view, human=view.compose, more=more
    )


def _headless(notebook: LiveNotebook, bridge: Bridge, slot: Slot, view: AgentView) -> Place:
    """A page that runs the notebook, with nobody before it: the policy answers."""
    from nbagent.jupyter.approval import PolicyApprover
    from nbagent.view.record import record

    async def finish(_: int) -> None:
        view.flush()
        if view.view.started:
            slot.bundle = record(view.view)

    return Place(_Both(view, _said_to(bridge)), PolicyApprover(), notebook, finish, bridge)


class WithoutCards:
    """A view beside which the approver shows what it asks."""

    def __init__(self, view: View) -> None:
        self._view = view

    def show(self, event: Event) -> None:
        """Take one event."""
        if not isinstance(innermost(event), ApprovalAsked | QuestionAsked):
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
