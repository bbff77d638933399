"""A teammate whose kernel computes for long keeps its task, although its loop gives no sign of life."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from nbagent.app.teampulse import Pulse
from nbagent.core.board import Board
from nbagent.core.seat import Seat
from nbagent.extend.board_file import FileStore
from nbagent.extend.boards import Boards
from tests.support.turns import wait_until


def test_a_claim_is_kept_while_no_loop_of_the_teammate_turns_and_no_longer_than_it_is_its_own(tmp_path: Path) -> None:
    async def opens() -> Boards:
        return Boards(FileStore(tmp_path))

    def now() -> Board:
        return asyncio.run(Boards(FileStore(tmp_path)).read())

    async def begun() -> Seat:
        seat = Seat(await opens(), "ada", lease=0.03)
        await seat.boards.change(lambda board: board.create("long work"))
        await seat.claim()
        return seat

    seat = asyncio.run(begun())
    with Pulse(opens, seat):
        wait_until(lambda: now().task("1").beat > 3)
        asyncio.run(Seat(Boards(FileStore(tmp_path)), "lead").boards.change(lambda board: board.assign("1", "")))
        taken = now().task("1")
        asyncio.run(Boards(FileStore(tmp_path)).change(lambda board: board.create("next")))
        assert now().task("1") == taken
    wait_until(lambda: not any(one.name == "nbagent-pulse" for one in threading.enumerate()))
