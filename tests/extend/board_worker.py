"""A process that claims tasks of a board and completes them until none is left: `python -m tests.extend.board_worker`.

What it does stands in one log, a line each, in the order in which it happened for all processes: it is appended at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from nbagent.core.errors import BoardError
from nbagent.core.seat import Seat
from nbagent.extend.boards import Boards


async def work(root: Path, name: str, log: int, lease: float, *, stays: bool) -> None:
    """Do tasks until all are done; one that stays does so in its first task, alive, until it is killed."""
    seat = Seat(await Boards.open(root, "demo"), name, lease=lease)
    async with seat.alive(lambda task: os.write(log, f"lost {task} {name}\n".encode())):
        while not (board := await seat.boards.read()).is_done:
            task = await seat.claim()
            if task is None:
                await seat.boards.changed(board.version, 5)
                continue
            os.write(log, f"begin {task.id} {task.claims} {name}\n".encode())
            if stays:
                os.write(log, f"stays {task.id} {name}\n".encode())
                await asyncio.Event().wait()
            os.write(log, f"worked {task.id} {task.claims} {name}\n".encode())
            try:
                await seat.complete(task.id, f"by {name}")
            except BoardError as refused:
                os.write(log, f"refused {task.id} {name} {refused}\n".encode())
            else:
                os.write(log, f"done {task.id} {task.claims} {name}\n".encode())


if __name__ == "__main__":
    root, name, log, lease, stays = sys.argv[1:]
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    asyncio.run(work(Path(root), name, handle, float(lease), stays=stays == "1"))
