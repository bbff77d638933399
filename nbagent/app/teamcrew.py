"""The teammates of a team while it works: a job for each on an executor, and the hub where they report and ask.

A teammate's process that dies is seen here at once (and by its lease anywhere else): its task is free, the lead is told.
Must not know what the lead does with them. Read `Crew`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from nbagent.app.executors import Places
from nbagent.app.jobs import Job, Outcome
from nbagent.app.worker import perform
from nbagent.core.board import LEAD, Board
from nbagent.core.errors import ConfigError, NbagentError, ToolError
from nbagent.core.limits import Limits
from nbagent.core.messages import Json
from nbagent.core.ports import Answered
from nbagent.core.seat import Seat
from nbagent.headless.hub import Hub, OnLoop

GRACE = 10.0
"""Seconds that teammates have to go after they were asked to, until they are stopped; as long again until they are given up."""

Ask = Callable[[str, Json], Awaitable[Answered]]
Question = Callable[[str, Json], Awaitable[str]]


class Crew:
    """See the module's docstring. `make` gives a teammate's job; `ask` and `question` put to the person what one asks."""

    def __init__(
        self,
        make: Callable[[str, int], Job],
        seat: Seat,
        *,
        limits: Limits,
        ask: Ask,
        question: Question,
        executor: Executor | None = None,
        workers: int = 3,
        host: str = "127.0.0.1",
    ) -> None:
        self._make, self._seat, self._ask, self._question = make, seat, ask, question
        self._places = Places(executor, workers)
        self._names: dict[str, str] = {}
        self._working: dict[str, asyncio.Future[Json]] = {}
        self._starts = 0
        self._closing = False
        self._limits, self._host = limits, host
        self._hub: Hub | None = None
        self.outcomes: dict[str, Outcome] = {}
        """By teammate: how its last job ended."""

    def open(self) -> None:
        """Have the hub listen; raises `OSError` where it can't."""
        self._hub = Hub(OnLoop(self, asyncio.get_running_loop()), limits=self._limits, host=self._host).start()

    @property
    def hub(self) -> Hub:
        """Where all report and ask; there once the crew is open."""
        assert self._hub is not None
        return self._hub

    @property
    def there(self) -> tuple[str, ...]:
        """The teammates whose jobs go on."""
        return tuple(self._working)

    def start(self, name: str) -> None:
        """Give a teammate's job out; raises `ToolError` where it works already, or the team ends."""
        if name in self._working:
            raise ToolError(f"{name} is there already")
        if self._closing:
            raise ToolError("the team ends: nobody is started any more")
        self._starts += 1
        job = self._make(name, self._starts)
        self._names[job.id] = name
        try:
            future = asyncio.wrap_future(self._places.give(perform, job.to_json(), self.hub.link()))
        except ConfigError as error:
            raise ToolError(f"{name} can't be started. {error}") from error
        self._working[name] = future
        future.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, future: asyncio.Future[Json]) -> None:
        self._working.pop(name, None)
        outcome = _outcome(name, future)
        self.outcomes[name] = outcome
        if not self._closing:
            self._telling = asyncio.ensure_future(self._told(name, outcome))

    async def _told(self, name: str, outcome: Outcome) -> None:
        """Say on the board that a teammate's process has ended, if it has not said so itself."""

        def step(board: Board) -> Board:
            known = next((one for one in board.members if one.name == name), None)
            if known is None or known.state == "gone":
                return board
            text = f"My process ended: {outcome.problem or outcome.status}. What I had in hand is free again."
            return board.now_is(name, "gone", self._seat.now()).post(name, LEAD, text, self._seat.now(), kind="notice")

        with contextlib.suppress(NbagentError):  # else its lease tells
            await self._seat.boards.change(step)

    async def close(self) -> None:
        """Ask all to go, stop those that don't, and end the hub. A second time nothing happens."""
        if self._closing:
            return
        self._closing = True
        if self._hub is None:
            return
        try:
            if self._working:
                board = await self._seat.boards.change(self._asked_to_go)
                for job, name in self._names.items():
                    if board.held(name):
                        self.hub.stop(job, "The lead has ended.")
                await self._gone()
            self.hub.stop("", "The lead has ended.")
            await self._gone()
        finally:
            self.hub.close()
            await self._places.close(at_once=bool(self._working))

    def _asked_to_go(self, board: Board) -> Board:
        """Return the board with a request to go for those who have none yet."""
        asked = {name for one in board.letters if one.kind == "shutdown_request" for name in one.waiting}
        for one in board.members:
            if one.state != "gone" and one.name in self._working and one.name not in asked:
                board = board.post(LEAD, one.name, "The team ends.", self._seat.now(), kind="shutdown_request")
        return board

    async def _gone(self) -> None:
        if self._working:
            await asyncio.wait(list(self._working.values()), timeout=GRACE)

    # ── what they report (hub.Listener) ──────────────────────────────────────────────────────────────────────────────

    def event(self, job: str, event: Json) -> None:
        """Pass over what a teammate's run reports: its session has it."""

    async def ask(self, job: str, approval: Json) -> Answered:
        """Have the person asked."""
        return await self._ask(self._names.get(job, job), approval)

    async def question(self, job: str, question: Json) -> str:
        """Have the person asked."""
        return await self._question(self._names.get(job, job), question)

    def came(self, job: str) -> None:
        """Pass it over: the board tells."""

    def left(self, job: str) -> None:
        """Pass it over: the job's end tells."""


def _outcome(name: str, future: asyncio.Future[Json]) -> Outcome:
    if future.cancelled():
        return Outcome(name, "stopped", problem="it was cancelled")
    error: Any = future.exception()
    return (
        Outcome(name, "failed", problem=str(error) or type(error).__name__)
        if error
        else Outcome.from_json(future.result())
    )
