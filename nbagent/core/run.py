"""What one run knows while it goes: its counters, its clock, its open calls, and how to make an event of them.

The only mutable thing of a run; `loop`, `think` and `dispatch` share it. It knows nothing of who watches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nbagent.core.agents import Child
from nbagent.core.endings import Ending
from nbagent.core.events import Event, Reason, RunEnded, RunStarted, State
from nbagent.core.hooks import Hooks, NoHooks
from nbagent.core.inbox import Empty, Inbox
from nbagent.core.lasting import Lasting, NothingLasts
from nbagent.core.limits import Limits
from nbagent.core.messages import Block, ReplyBuilder, Usage
from nbagent.core.payloads import CellPayload, Where
from nbagent.core.policy import Gate
from nbagent.core.ports import Approver, Model
from nbagent.core.repeat import RepeatGuard
from nbagent.core.session import Session
from nbagent.core.summary import Compaction
from nbagent.core.tools import Toolset

E = TypeVar("E", bound=Event)


class Stop:
    """How a run is stopped from outside: `ask` takes effect between two calls, `now` at once. Not thread-safe.

    `spare` interrupts only the calls that run now; the run goes on with what they had done. Runs inside the calls of this
    one have stops of their own (`below`), to which both are passed on.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self._asked = asyncio.Event()
        self._cancel: Callable[[], Any] | None = None
        self._calls: Callable[[], Any] | None = None
        self._spared = asyncio.Event()
        self._asking_why = 0
        self._apart = False
        self._below: list[Stop] = []

    @property
    def asked(self) -> bool:
        """Whether a stop was asked for, in either way."""
        return self._asked.is_set()

    def ask(self, reason: Reason = Reason.INTERRUPTED) -> None:
        """Stop before the next call or turn; what runs now runs to its end."""
        self.reason = self.reason or reason
        self._asked.set()
        for stop in self._below:
            stop.ask(reason)

    def now(self, reason: Reason = Reason.INTERRUPTED) -> None:
        """Stop at once: whatever the run awaits is cancelled."""
        self.ask(reason)
        if self._cancel is not None:
            self._cancel()

    def apart(self) -> None:
        """From now on the run is nobody's cell: an interrupt of the kernel is for the code that it hits, and the run goes on."""
        self._apart = True
        for stop in self._below:
            stop.apart()

    def bind(self, cancel: Callable[[], Any] | None) -> None:
        """Say what `now` cancels; a stop that was asked for before cancels at once."""
        self._cancel = cancel
        if cancel is not None and self.asked:
            cancel()

    def bind_calls(self, cancel: Callable[[], Any] | None) -> None:
        """Say what `spare` cancels while calls run; None when they have ended."""
        self._calls = cancel
        self._spared.clear()

    @property
    def busy(self) -> bool:
        """Whether a call runs now."""
        return self._calls is not None

    def below(self) -> Stop:
        """Return the stop of a run inside a call of this one; `leave` it when that has ended."""
        stop = Stop()
        stop._apart = self._apart
        self._below.append(stop)
        if self.reason is not None:
            stop.ask(self.reason)
        return stop

    def leave(self, stop: Stop) -> None:
        """Pass nothing on any more to a stop that `below` gave."""
        self._below.remove(stop)

    def ask_below(self, reason: Reason) -> None:
        """Stop the runs inside the calls of this one, and not this one."""
        for stop in self._below:
            stop.ask(reason)

    def spare(self) -> None:
        """Interrupt the innermost calls that run now and nothing else; does nothing where none runs."""
        if busy := [stop for stop in self._below if stop.busy]:
            for stop in busy:
                stop.spare()
            return
        if self._calls is None:
            return
        self._spared.set()
        if not self._asking_why:  # else the call was interrupted already, and asks whether it was meant alone
            self._calls()

    async def spared(self, seconds: float = 0.0) -> bool:
        """Whether the interrupt of a call was meant for this call only.

        The word for it may lie in a queue behind the code that was interrupted: wait `seconds` for it at most.
        """
        if self._apart:
            return not self.asked
        self._asking_why += 1
        try:
            async with asyncio.timeout(seconds):
                await self._spared.wait()
        except TimeoutError:
            pass
        finally:
            self._asking_why -= 1
        return self._spared.is_set()

    async def wait(self, seconds: float) -> bool:
        """Wait until a stop is asked for, `seconds` at most; return whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            return False
        return True


class Turnstile:
    """One at a time: calls of runs side by side that change something. `owner` is the run whose call goes on."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.owner: Run | None = None

    @asynccontextmanager
    async def through(self, run: Run) -> AsyncGenerator[bool]:
        """Let a call of `run` through when no other goes on; yield whether it had to wait."""
        waited = self._lock.locked()
        await self._enter(run)
        try:
            yield waited
        finally:
            self._leave(run)

    @asynccontextmanager
    async def lent(self, run: Run) -> AsyncGenerator[None]:
        """Let others through while a call of `run` only waits for a subagent."""
        held = self.owner is run
        self._leave(run)
        try:
            yield
        finally:
            if held:
                await self._enter(run)

    async def _enter(self, run: Run) -> None:
        await self._lock.acquire()
        self.owner = run

    def _leave(self, run: Run) -> None:
        if self.owner is run:
            self.owner = None
            self._lock.release()


def _unheard(_call_id: str, _text: str) -> None:
    """Nobody looks while code holds the loop."""


@dataclass(frozen=True, slots=True)
class Agent:
    """All that a run needs: who thinks, what can be called, who decides, who answers, how far it may go.

    `should_continue` is asked before each turn but the first; a sentence ends the run (reason hook), None lets it go on.
    `notebook` gives the path of the run's notebook, which may get a new name while the run goes on.
    `closing` gives what the end of the run says of the notebook's cells.

    `hooks` are asked, and told of the place as `where` says; an `agent_id` in it makes the run that of a subagent.
    `begins` is how the session begins with this run (startup, resume, clear, compact, fork; "" where it only goes on).
    `deeds` gives, once, what was done to cells since it was asked last. `notify_after`: seconds until an unanswered
    question is a notification.

    `compaction`: how a conversation that gets too long is summed up (None: then the run ends).

    `spawn` runs a subagent inside a call (`subagents.spawn`; None: there are none), `start` begins one that goes on beside
    the run. `name` is that of a subagent, for the cards that ask about its calls. `inbox` is what the model is to hear of.
    `answers`: the run only answers a question, which whoever shows it may show with less around it.
    `lasting` is its code that may be under way while the model thinks. `aside` shows, called from any thread, how far a
    call is (its id, a line), while its synchronous code holds the loop.
    """

    model: Model
    tools: Toolset
    gate: Gate
    approver: Approver
    limits: Limits = field(default_factory=Limits)
    should_continue: Callable[[Run], str | None] | None = None
    notebook: Callable[[], str] = str
    closing: Callable[[], str] = str
    hooks: Hooks = field(default_factory=NoHooks)
    where: Where = field(default_factory=Where)
    begins: str = ""
    deeds: Callable[[], Sequence[CellPayload]] = tuple
    notify_after: float = 6.0
    spawn: Spawn | None = None
    start: Start | None = None
    name: str = ""
    inbox: Inbox = field(default_factory=Empty)
    compaction: Compaction | None = None
    answers: bool = False
    lasting: Lasting = field(default_factory=NothingLasts)
    aside: Callable[[str, str], None] = _unheard


Spawn = Callable[["Run", str, Child, Callable[[Event], None]], Awaitable[RunEnded]]
"""Runs a subagent in a run, for a call; what it reports goes to the last argument."""

Start = Callable[["Run", str, Child], Awaitable[None]]
"""Begins a subagent beside a run, for a call, and returns at once; raises `ToolError` where it can't be."""


@dataclass(slots=True)
class Run:
    """The state of one run."""

    agent: Agent
    session: Session
    stop: Stop
    id: str
    state: State = State.THINK
    turn: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    reply: ReplyBuilder = field(default_factory=ReplyBuilder)
    results: dict[str, Block] = field(default_factory=dict[str, Block])
    outcomes: dict[str, tuple[tuple[Block, ...], tuple[str, ...]]] = field(default_factory=dict[str, Any])
    cells: dict[str, None] = field(default_factory=dict[str, None])
    text: str = ""
    calls_made: list[str] = field(default_factory=list[str])
    cut_replies: int = 0
    cut_text: str = ""
    """The words of a reply that was cut off at its output limit, while the model goes on with it."""
    window_full: bool = False
    room_refused: bool = False
    """Summing up was tried in vain: not again before the window is full."""
    summed_at: list[int] = field(default_factory=list[int])
    told_of_budget: bool = False
    nudged: bool = False
    ending: Ending | None = None
    guard: RepeatGuard = field(default_factory=RepeatGuard)
    told: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By call: what hooks say of it to the model, after the results."""
    stops_blocked: int = 0
    title: str = ""
    """What a hook wants the session to be called."""
    loose: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    """Notifications that nobody waits for."""
    served: dict[str, float] = field(default_factory=dict[str, float])
    """By call of the model's server that is under way: when it began."""
    above: Run | None = None
    """The run in whose call this one goes on."""
    changing: Turnstile = field(default_factory=Turnstile)
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Share with the run above what is of all runs together."""
        if self.above is not None:
            self.changing = self.above.changing

    @property
    def top(self) -> Run:
        """The run that the person asked for."""
        return self if self.above is None else self.above.top

    def event(self, kind: type[E], /, **fields: Any) -> E:
        """Make an event that says where the run is now."""
        return kind(state=self.state, turn=self.turn, at=round(time.monotonic() - self._began, 4), **fields)

    def started(self, prompt: str) -> RunStarted:
        """The first event."""
        limits = self.agent.limits
        return self.event(
            RunStarted,
            run_id=self.id,
            session_id=self.session.id,
            model=self.agent.model.name,
            mode=str(self.agent.gate.mode),
            prompt=prompt,
            max_turns=limits.max_turns,
            budget=limits.describe(),
            notebook=self.agent.notebook(),
            answers=self.agent.answers,
        )

    def ended(self, ending: Ending | None = None) -> RunEnded:
        """The last event; without an ending the run was stopped from outside."""
        ending = ending or self.ending or Ending(self.stop.reason or Reason.INTERRUPTED)
        self.state = State.DONE
        return self.event(
            RunEnded,
            reason=ending.reason,
            sentence=ending.sentence,
            next_step=ending.next_step,
            text=self.text,
            turns=self.turn,
            usage=self.usage,
            cost=self.cost,
            cells=tuple(self.cells),
            checked=self.agent.closing(),
        )

    def let_go(self) -> None:
        """End the notifications that still go on: nobody waits for an answer any more."""
        for task in self.loose:
            task.cancel()

    def over(self, ending: Ending | None) -> bool:
        """Take an ending if there is one and none was before; return whether the run is over."""
        self.ending = self.ending or ending
        return self.ending is not None

    def limit_reached(self) -> Ending | None:
        """Whether the run may not begin another turn, and why."""
        if self.stop.asked:
            return Ending(self.stop.reason or Reason.INTERRUPTED)
        if self.turn >= self.agent.limits.max_turns:
            done = f" So far: {self.done_so_far()}" if self.calls_made else ""
            return Ending(
                Reason.MAX_TURNS,
                f"Stopped at the limit of {self.turn} turn{'s' * (self.turn != 1)} before the model was done.{done}",
            )
        if spent := self.spent_up():
            return Ending(Reason.BUDGET, spent)
        if self.turn and self.agent.should_continue and (why := self.agent.should_continue(self)):
            return Ending(Reason.HOOK, why)
        return None

    def spent_up(self) -> str:
        """Which budget is used up, this run's or that of one above it; "" where none is."""
        return self.agent.limits.spent(self.usage, self.cost) or (self.above.spent_up() if self.above else "")

    def spend(self, usage: Usage) -> float | None:
        """Count one reply's usage, here, in the session and in the runs above; return its cost in US dollars where known."""
        cost = self.agent.model.cost(usage)
        self.count(usage, cost)
        return cost

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add to what this run, its session and the runs above it have used."""
        self.usage += usage
        self.cost = None if self.cost is None or cost is None else self.cost + cost
        self.session.spend(usage, cost)
        if self.above is not None:
            self.above.count(usage, cost)

    def done_so_far(self) -> str:
        """A plain summary of the calls that ran."""
        shown = self.calls_made[-8:]
        more = f"{len(self.calls_made) - len(shown)} earlier calls, " if len(self.calls_made) > len(shown) else ""
        return more + ", ".join(shown) + "."
