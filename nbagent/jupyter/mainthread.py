"""The queue for the kernel's main thread: a person's cells and the code of agents in the background take turns.

First come, first served. A cell of the person's has its turn from its first line to its last, an agent one call long: so
no code ever runs in the middle of other code, and between two calls of an agent the person gets in. A cell is what a
front end asks for (ipykernel's `do_execute`): the wrapper works on all versions, since each handles one such request
after the other. Clicks (comm messages), completions, inspections and what runs on a subshell's thread take no turn:
they run no code of cells, or not on this thread. Nor do the commands that `passes` tells (`%agent stop`): they must get
through while code runs that awaits, and count as no cell then.

An interrupt hits what runs. Synchronous code of an agent gets it itself (`interrupts.Gate`). Where that code awaits, or
between two turns, it frees the cell that waits, which ends as interrupted and has not run; the agent goes on.

This module must not know of agents, tools or pages. Read `MainThread.turn`, then `MainThread._request`.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from nbagent.jupyter.interrupts import Gate
from nbagent.jupyter.pump import delivering, own_parent
from nbagent.jupyter.waitline import WaitLine

YOUR_CELL = "your cell"  # what people read of one that waits: its number is known only when it begins
A_REQUEST = "a request of the page"  # and of code that a front end runs for itself: it has no number


class Freed(Exception):
    """The person interrupted a cell that waited for its turn."""


@dataclass(eq=False, slots=True)
class _Ticket:
    """A place in the queue. `told` gets what it waits for; `go` is done when its turn begins."""

    who: str
    told: Callable[[str], object]
    go: asyncio.Future[None]
    cell: bool = False
    said: str = ""
    began: float = 0.0
    freed: bool = False
    loans: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def lends(self, who: str) -> bool:
        """Whether it lets `who` run in its turn."""
        return any(not names or who in names for names in self.loans)

    def free(self) -> None:
        """Give up waiting, or the turn that has come but not begun."""
        self.freed = True
        if not self.go.done():
            self.go.set_result(None)

    def say(self, text: str) -> None:
        """Tell what it waits for, if that is new; in a turn of the loop of its own, so that no listener breaks the queue."""
        if text != self.said:
            self.said = text
            self.go.get_loop().call_soon(self.told, text)


def _nobody(_: str) -> None:
    """Where nobody wants to know what is waited for."""


class MainThread:
    """The queue of one shell. `install` has the person's cells take turns, too; a terminal has none that could.

    All of it is used on the kernel's own loop. `gate` returns the gate of the agent's code that runs now; `passes` tells
    of a cell's code whether it takes no turn.
    """

    def __init__(
        self,
        shell: Any,
        gate: Callable[[], Gate | None] = lambda: None,
        passes: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._shell, self._gate, self._passes = shell, gate, passes
        self._kernel: Any = getattr(shell, "kernel", None)
        self._queue: list[_Ticket] = []
        self._holder: _Ticket | None = None
        self._guest: _Ticket | None = None  # who runs in the holder's turn, lent to it
        self._before_code: list[_Ticket] = []  # cells that were asked for and have not begun
        self._early = False  # an interrupt came before the request that is taken up now was in line
        self._turn: ContextVar[_Ticket | None] = ContextVar("nbagent_turn", default=None)
        self._before: Any = None
        self._wrapper: Any = None

    @property
    def holder(self) -> str:
        """Who has the turn now, as people read it ("In[7]"); "" where nobody has."""
        now = self._guest or self._holder
        return now.who if now is not None else ""

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who waits for a turn, in order."""
        return tuple(ticket.who for ticket in self._queue)

    @asynccontextmanager
    async def turn(self, who: str, waiting: Callable[[str], object] = _nobody) -> AsyncGenerator[None]:
        """Wait for a turn and have it while entered. Cancelling ends the wait, and leaves no trace in the queue.

        Inside a turn of an agent's it is no second one. Never hold one while a person is asked.

        Args:
            who: what people read of whose code it is, "Explore (find dates)".
            waiting: called on the loop with what it waits for ("waits for In[7]"), each time that changes, and with ""
                when it goes on or gives up; not called where it does not wait.
        """
        around = self._turn.get()
        if around is not None and not around.cell and self._has(around):
            yield
            return
        ticket = _Ticket(who, waiting, asyncio.get_running_loop().create_future())
        await self._take(ticket)
        token = self._turn.set(ticket)
        try:
            yield
        finally:
            self._turn.reset(token)
            self._end(ticket)

    @asynccontextmanager
    async def lend(self, *to: str) -> AsyncGenerator[None]:
        """While entered, let code of `to` (as in `turn`'s `who`; none named: of all agents) run in the caller's turn.

        For who has the turn and waits for that code; one after the other, no cells. Leaving waits until the last has
        ended. Without a turn there is nothing to lend: nothing happens.
        """
        ticket = self._turn.get()
        if ticket is None or ticket is not self._holder:
            yield
            return
        ticket.loans.append(to)
        self._advance()
        try:
            yield
        finally:
            ticket.loans.remove(to)
            if (guest := self._guest) is not None:
                await guest.over.wait()

    def leave(self) -> None:
        """Call first in a task that goes on beside the cell that starts it: it has no part in that cell's turn."""
        self._turn.set(None)

    def install(self) -> None:
        """Wrap `do_execute`; a second call does nothing."""
        if self._kernel is None or self._wrapper is not None:
            return
        self._before = self._kernel.__dict__.get("do_execute")
        original = self._kernel.do_execute

        @functools.wraps(original)  # ipykernel looks at its signature
        async def do_execute(*args: Any, **kwargs: Any) -> Any:
            if self._wrapper is None or threading.current_thread() is not threading.main_thread():
                return await original(*args, **kwargs)
            return await self._request(original, args, kwargs)

        self._wrapper = do_execute
        self._kernel.do_execute = do_execute
        self._kernel.pre_handler_hook = self._hook

    def remove(self) -> None:
        """Take the wrapper off; where somebody wrapped it again, it stays and changes nothing any more."""
        if self._wrapper is not None and self._kernel.__dict__.get("do_execute") is self._wrapper:
            if self._before is None:
                del self._kernel.do_execute
            else:
                self._kernel.do_execute = self._before
            if self._kernel.__dict__.get("pre_handler_hook") == self._hook:
                del self._kernel.pre_handler_hook
        self._wrapper = self._before = None

    # ── the queue ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _has(self, ticket: _Ticket) -> bool:
        return ticket is self._holder or ticket is self._guest

    async def _take(self, ticket: _Ticket) -> None:
        self._queue.append(ticket)
        self._advance()
        if ticket.go.done():
            return
        try:
            await ticket.go
        except BaseException:
            self._give_up(ticket)
            raise
        finally:
            ticket.say("")
        if ticket.freed:
            self._give_up(ticket)
            raise Freed

    def _give_up(self, ticket: _Ticket) -> None:
        if self._has(ticket):  # its turn came at the same moment
            self._end(ticket)
        elif ticket in self._queue:
            self._queue.remove(ticket)

    def _end(self, ticket: _Ticket) -> None:
        if ticket is self._guest:
            self._guest = None
        else:  # a guest whose host has gone has the turn alone
            self._holder, self._guest = self._guest, None
        ticket.over.set()
        self._advance()

    def _advance(self) -> None:
        """Give the turn to the next in line, if it is free or lent; tell all others what they wait for."""
        self._queue = [ticket for ticket in self._queue if not ticket.go.done()]
        holder = self._holder
        if holder is None:
            if self._queue:
                self._holder = self._begin(self._queue[0])
        elif self._guest is None:
            lent = (ticket for ticket in self._queue if not ticket.cell and holder.lends(ticket.who))
            if (guest := next(lent, None)) is not None:
                self._guest = self._begin(guest)
        for ticket in self._queue:
            ticket.say(f"waits for {self.holder}")

    def _begin(self, ticket: _Ticket) -> _Ticket:
        self._queue.remove(ticket)
        ticket.began = time.monotonic()
        if ticket.cell and ticket.who == YOUR_CELL:
            ticket.who = f"In[{self._shell.execution_count}]"
        ticket.go.set_result(None)
        return ticket

    # ── cells ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _request(self, original: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Handle one execute request: at its turn, or at once where it takes none."""
        asked = _Asked.of(args, given)
        around = self._turn.get()
        if around is not None and self._has(around):  # a cell that runs a cell
            return await original(*args, **given)
        if self._passes(asked.code):
            return await self._pass(original, args, given)
        who = A_REQUEST if asked.apart else YOUR_CELL
        ticket = _Ticket(who, _nobody, asyncio.get_running_loop().create_future(), cell=True)
        number = self._kernel.execution_count
        publish = functools.partial(self._publish, self._kernel.get_parent("shell"))
        token = self._turn.set(ticket)
        try:
            with self._hearing(ticket) as begin:
                await self._wait(ticket, WaitLine(publish, None if asked.apart else self._text))
                if not asked.silent and self._kernel.execution_count != number:
                    number = self._kernel.execution_count
                    publish("execute_input", {"code": asked.code, "execution_count": number})
                begin()
                return await original(*args, **given)
        except Freed:
            behind = f"while it waited for “{self.holder}”" if self.holder else "before it began"
            said = f"You interrupted this cell {behind}. It did not run."
        except KeyboardInterrupt:  # it hit what is around the code: without a reply the cell would run for ever
            said = "You interrupted this cell."
        finally:
            self._turn.reset(token)
        error = {"ename": "KeyboardInterrupt", "evalue": said, "traceback": [f"KeyboardInterrupt: {said}"]}
        if not asked.silent:
            publish("error", error)
        return {"status": "error", **error, "execution_count": number, "user_expressions": {}, "payload": []}

    async def _wait(self, ticket: _Ticket, line: WaitLine) -> None:
        """Wait for the turn of a cell, with `line` in it; raises `Freed` where the person interrupts it."""
        if self._holder is None and not self._queue:
            await self._take(ticket)
            return
        with own_parent(self._kernel), line:
            async with delivering(self._kernel):
                await self._take(ticket)

    async def _pass(self, original: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Carry out a command, although code may be under way that awaits: that keeps its number and the interrupts."""
        if self.holder and len(args) < 3:  # store_history is not among them
            given = {**given, "store_history": False}
        gate = self._gate()
        idle = self._idle(gate)
        signal.signal(signal.SIGINT, self._taken())
        if gate is not None:  # IPython takes SIGINT for the command, right when that begins
            asyncio.get_running_loop().call_soon(self._retake)
        try:
            return await original(*args, **given)
        finally:
            self._leave(self._free, idle)

    def _text(self) -> str:
        running = self._guest or self._holder
        seconds = 0 if running is None else int(time.monotonic() - running.began)
        return f"Waits for the code of “{self.holder}” (started {seconds} s ago) …"

    def _publish(self, parent: Any, kind: str, content: dict[str, Any]) -> None:
        kernel = self._kernel
        kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, ident=kind.encode())

    # ── interrupts ──────────────────────────────────────────────────────────────────────────────────────────────────
    # ipykernel has SIGINT raise KeyboardInterrupt from before it handles a request until it has replied, and gives it
    # back then (`saved_sigint_handler`), as if nothing ran besides. That would end the kernel while a cell waits, lose
    # the reply right after its code, and take SIGINT from the agent's code that is under way at one end or at both.

    @contextmanager
    def _hearing(self, ticket: _Ticket) -> Generator[Callable[[], None]]:
        """Around one cell: an interrupt frees it while it waits, and does nothing when it has ended; then its turn is over.

        Yields what is called when its code begins, which raises `Freed`.
        """
        taken, idle = self._taken(), self._idle(gate := self._gate())
        ticket.freed, self._early = self._early, False
        self._before_code.append(ticket)
        if gate is None:
            signal.signal(signal.SIGINT, self._free)
        else:
            gate.retake(self._free)

        def begin() -> None:
            self._leave(taken, idle)
            if ticket.freed:
                raise Freed
            self._before_code.remove(ticket)

        try:
            try:
                yield begin
            finally:
                self._leave(self._free, idle)
        finally:  # in any case, even if it was interrupted in there
            if ticket in self._before_code:
                self._before_code.remove(ticket)
            if self._has(ticket):
                self._end(ticket)

    def _hook(self) -> None:
        """In place of ipykernel's: an interrupt that comes before a request to run code is in line is kept until it is."""
        parent = self._kernel.get_parent("shell") or {}
        runs_code = (parent.get("header") or {}).get("msg_type") == "execute_request"
        self._early = self._early and not runs_code
        handler = self._free if runs_code else signal.default_int_handler
        self._kernel.saved_sigint_handler = signal.signal(signal.SIGINT, handler)

    def _taken(self) -> Any:
        """Return who has SIGINT while a cell runs."""
        now = signal.getsignal(signal.SIGINT)
        return signal.default_int_handler if now == self._free else now

    def _idle(self, gate: Gate | None) -> Any:
        """Return who has SIGINT while nothing runs."""
        return self._kernel.saved_sigint_handler if gate is None else gate.old

    def _retake(self) -> None:
        if (gate := self._gate()) is not None:
            gate.retake(signal.getsignal(signal.SIGINT))

    def _leave(self, taken: Any, idle: Any) -> None:
        """Leave SIGINT with the agent's code, if that is under way, else with `taken`; and say whose it is afterwards."""
        if (gate := self._gate()) is not None:
            gate.retake(idle)
            self._kernel.saved_sigint_handler = signal.getsignal(signal.SIGINT)
        else:
            self._kernel.saved_sigint_handler = idle
            signal.signal(signal.SIGINT, taken)

    def _free(self, _signum: int, _frame: FrameType | None) -> bool:
        self._early = not self._before_code
        for ticket in self._before_code:  # the loop may sleep, and hears only this way
            ticket.freed = True
            ticket.go.get_loop().call_soon_threadsafe(ticket.free)
        return True


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a front end asks for. `silent`: nothing of it is shown; `apart`: it is no cell of the person's."""

    code: str
    silent: bool
    apart: bool

    @classmethod
    def of(cls, args: tuple[Any, ...], given: dict[str, Any]) -> _Asked:
        """Read the arguments of `do_execute`."""
        names = ("code", "silent", "store_history")
        all_given = {**dict(zip(names, args, strict=False)), **given}
        silent = bool(all_given.get("silent", False))
        return cls(str(all_given.get("code", "")), silent, silent or not all_given.get("store_history", True))
