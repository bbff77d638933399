"""Signs of life for a teammate's claims while its kernel computes: code that never awaits holds up the loop that gives them.

Beats on a thread of its own, as the link to the hub lives on one. That a task was taken is not heard here but by
`Seat.alive`, as soon as the kernel's loop turns again. Must not know what the teammate does. Read `Pulse`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Self

from nbagent.core.board import Board
from nbagent.core.errors import BoardError, NbagentError
from nbagent.core.seat import Seat, Shared


class Pulse:
    """While entered, renews what `seat` has claimed, three times in a lease; `opens` opens the board on the loop of a beat."""

    def __init__(self, opens: Callable[[], Awaitable[Shared]], seat: Seat) -> None:
        self._opens, self._seat = opens, seat
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="nbagent-pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _live(self) -> None:
        while not self._over.wait(self._seat.lease / 3):
            if self._seat.claims:
                with contextlib.suppress(NbagentError):  # a board that can't be reached now is tried at the next beat
                    asyncio.run(self._beat())

    async def _beat(self) -> None:
        await (await self._opens()).change(self._renewed)

    def _renewed(self, board: Board) -> Board:
        for task_id, claim in dict(self._seat.claims).items():
            with contextlib.suppress(BoardError):  # it was taken, or is completed in this moment
                board = board.renew(task_id, self._seat.name, claim)
        return board
