"""A member's place at the team's board: it claims, keeps, completes and gives back tasks, and reads and writes letters.

It remembers the numbers of the claims that it made (`claims`), so that a task that was taken from it is never completed by
it. Must not know where the board is kept (`Shared`). Read `Seat.claim`, then `Seat.complete`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from nbagent.core.board import Board
from nbagent.core.board_values import Kind, Letter, MemberState, Task
from nbagent.core.errors import BoardError, NbagentError

LEASE = 60.0
"""Seconds that a claim holds without a sign of life, if nothing else is said."""

Step = Callable[[Board], Board]


class Shared(Protocol):
    """The board as many processes share it (`extend/boards.Boards`)."""

    async def read(self) -> Board:
        """Return the board as it is now."""
        ...

    async def change(self, step: Step) -> Board:
        """Put `step(board)` in its place, whole or not at all; `step` may be called again. What it raises is raised."""
        ...

    async def changed(self, since: int, timeout: float) -> Board:
        """Return the board as soon as its version is other than `since`, or after `timeout` seconds."""
        ...

    def free(self, board: Board) -> Board:
        """Return `board` without the claims whose lease has ended before this watcher's eyes: a step."""
        ...


class Seat:
    """The place of `name` at a board. `clock` gives wall-clock seconds, which people are shown."""

    def __init__(
        self, boards: Shared, name: str, *, lease: float = LEASE, clock: Callable[[], float] = time.time
    ) -> None:
        self.boards, self.name, self.lease = boards, name, lease
        self.claims: dict[str, int] = {}
        self.now = clock
        self._one = asyncio.Lock()  # a sign of life in the middle of `complete` would find the claim gone

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def claim(self, task_id: str = "") -> Task | None:
        """Claim the next task, or `task_id`; None where there is nothing to do. Raises `BoardError`.

        What a dead owner had is freed in the same change, as far as this process has watched its lease end; and so is
        what stands under this name without this seat having got it (a claim that was cut off, a process before this one).
        """

        def step(board: Board) -> Board:
            board = self.boards.free(board)
            for task in board.held(self.name):
                if task.claims != self.claims.get(task.id):
                    board = board.release(task.id, self.name, task.claims, self.now())
            return board.claim(self.name, self.now(), self.lease, task_id)

        async with self._one:
            board = await self.boards.change(step)
            task = next(iter(board.held(self.name)), None)
            self.claims = {task.id: task.claims} if task is not None else {}
            return task

    def has(self, task: Task) -> bool:
        """Whether the claim of `task` that is in force is this seat's."""
        mine = ("in_progress", self.name, self.claims.get(task.id))
        return (task.state, task.owner, task.claims) == mine

    def claim_of(self, task_id: str) -> int:
        """Return the number of this seat's claim of a task; raises `BoardError` where it has made none."""
        if task_id not in self.claims:
            raise BoardError(f"{self.name} has not claimed task {task_id}: claim it first (status in_progress)")
        return self.claims[task_id]

    async def complete(self, task_id: str, result: str = "") -> Board:
        """Mark a claimed task as completed; raises `BoardError`."""
        async with self._one:
            claim = self.claim_of(task_id)
            board = await self.boards.change(lambda old: old.complete(task_id, self.name, claim, result, self.now()))
            del self.claims[task_id]
            return board

    async def release(self, task_id: str) -> Board:
        """Give a claimed task back; raises `BoardError`."""
        async with self._one:
            claim = self.claim_of(task_id)
            board = await self.boards.change(lambda old: old.release(task_id, self.name, claim, self.now()))
            del self.claims[task_id]
            return board

    async def propose(self, task_id: str, plan: str, lead: str) -> Board:
        """Put a plan for a claimed task up for the lead's answer, with a letter; raises `BoardError`."""
        claim = self.claim_of(task_id)

        def step(old: Board) -> Board:
            board = old.propose(task_id, self.name, claim, plan)
            return board.post(self.name, lead, plan, self.now(), kind="plan", about=task_id)

        return await self.boards.change(step)

    async def renew(self) -> tuple[str, ...]:
        """Give a sign of life for all claims; return the ids of those that were lost, which this seat forgets."""
        lost: list[str] = []

        def step(board: Board) -> Board:
            lost.clear()
            for task_id, claim in self.claims.items():
                try:
                    board = board.renew(task_id, self.name, claim)
                except BoardError:
                    lost.append(task_id)
            return board

        async with self._one:
            if self.claims:
                await self.boards.change(step)
                self.claims = {task_id: claim for task_id, claim in self.claims.items() if task_id not in lost}
        return tuple(lost)

    @asynccontextmanager
    async def alive(self, lost: Callable[[str], None]) -> AsyncGenerator[None]:
        """Give signs of life while what is inside goes on, three in a lease; `lost` is called with a task that was taken.

        A board that can't be reached for a moment is tried again at the next sign.
        """

        async def beat() -> None:
            while True:
                await asyncio.sleep(self.lease / 3)
                try:
                    gone = await self.renew()
                except NbagentError:
                    continue
                for task_id in gone:
                    lost(task_id)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    # ── the others ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def post(self, to: str, text: str, *, kind: Kind = "message", about: str = "") -> Board:
        """Send a letter to a member, or to all others ("*"); raises `BoardError`."""
        return await self.boards.change(lambda old: old.post(self.name, to, text, self.now(), kind=kind, about=about))

    async def letters(self) -> tuple[Letter, ...]:
        """Return the letters that have not reached this member yet; `delivered` says that they have."""
        return (await self.boards.read()).letters_for(self.name)

    async def delivered(self, letters: tuple[Letter, ...]) -> None:
        """Say that `letters` stand in this member's conversation now: they are not given again."""
        if letters:
            ids = [one.id for one in letters]
            await self.boards.change(lambda old: old.delivered(self.name, ids))

    async def now_is(self, state: MemberState) -> Board:
        """Say what this member does."""
        return await self.boards.change(lambda old: old.now_is(self.name, state, self.now()))
