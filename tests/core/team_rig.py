"""A board in memory for tests of who works at it: the port `Shared`, with nothing below."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

from nbagent.core.board import Board, Member
from nbagent.core.leases import Watch


class MemoryBoards:
    """A board of one process. `clock` is what leases are watched by; `changes` counts what was written."""

    def __init__(self, *names: str) -> None:
        self.board = Board(members=tuple(Member(name) for name in names))
        self.clock = 0.0
        self.watch = Watch()
        self._turned = asyncio.Event()

    async def read(self) -> Board:
        self.watch = self.watch.look(self.board, self.clock)
        return self.board

    async def change(self, step: Callable[[Board], Board]) -> Board:
        await self.read()
        new = step(self.board)
        if new != self.board:
            self.board = replace(new, version=self.board.version + 1)
            self._turned.set()
            self._turned = asyncio.Event()
        return self.board

    async def changed(self, since: int, timeout: float) -> Board:
        if self.board.version == since:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._turned.wait()
        return self.board

    def free(self, board: Board) -> Board:
        return board.free(self.watch.overdue(board))
