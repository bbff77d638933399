"""What decided how a team's board is kept: `python -m tests.benchmarks.boards` measures both ways, and kills both.

Columns: ms a change by one process; changes a second by eight at once; the same where each git command, or each write of
the file, takes 50 ms longer (a slow disk); and what is left of `kills` rounds in which all processes, git's too, are killed
at a random moment while they change the board as fast as they can: changes that were said to be done and are not there
(must be 0), and the longest time that the next change took (a lock left behind). The figures stand in extend/boards.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from nbagent.extend.board_file import FileStore
from nbagent.extend.board_ref import RefStore
from nbagent.extend.board_store import Seen, Store
from nbagent.extend.boards import Boards
from tests.source import ROOT

KILLS = int(os.environ.get("BOARD_KILLS", "200"))
SLOW = 0.05


class Slow:
    """A store on a slow disk: each step of a swap takes `SLOW` seconds longer."""

    longest_pause = 2.0

    def __init__(self, store: Store, steps: int) -> None:
        self.store, self.steps = store, steps

    async def read(self) -> Seen:
        return await self.store.read()

    async def mark(self) -> str:
        return await self.store.mark()

    async def swap(self, old: Seen, text: str) -> Seen | None:
        for _ in range(self.steps):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SLOW):
                    await asyncio.Event().wait()
        return await self.store.swap(old, text)


def store(kind: str, folder: Path) -> Store:
    return RefStore(folder, "demo") if kind.startswith("ref") else FileStore(folder)


def opened(kind: str, folder: Path) -> Boards:
    found = store(kind, folder)
    return Boards(Slow(found, 2 if "ref" in kind else 1) if "slow" in kind else found)


async def change(boards: Boards, name: str) -> str:
    """Put one more task of `name` on the board, take the oldest off where there are many, and return its number."""
    board = await boards.change(lambda old: (old.delete(old.tasks[0].id) if len(old.tasks) > 40 else old).create(name))
    return board.tasks[-1].id


async def worker(kind: str, folder: Path, name: str, seconds: float) -> None:
    """Change the board for `seconds`, and say each change."""
    boards, end = opened(kind, folder), time.monotonic() + seconds
    while time.monotonic() < end:
        print(await change(boards, name), flush=True)


def started(kind: str, folder: Path, seconds: float, count: int = 8) -> list[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "tests.benchmarks.boards", "worker", kind, str(folder)]
    return [
        subprocess.Popen([*words, f"w{n}", str(seconds)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for n in range(count)
    ]


def in_folder(measure: Callable[[str, Path], Coroutine[Any, Any, Any]], kind: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure(kind, Path(folder)))


async def alone(kind: str, folder: Path) -> float:
    boards, began = opened(kind, folder), time.perf_counter()
    for _ in range(50):
        await change(boards, "x")
    return (time.perf_counter() - began) / 50 * 1000


async def together(kind: str, folder: Path) -> float:
    workers = started(kind, folder, 5.0)
    said = [len(one.communicate()[0].split()) for one in workers]
    return sum(said) / 5.0


def descendants_of(folder: Path) -> list[int]:
    """Processes with `folder` among their words, or in it: workers, and git at work for them."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            cwd = (entry / "cwd").readlink()
            if str(folder) in (entry / "cmdline").read_bytes().decode("utf-8", "replace") or cwd.is_relative_to(folder):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def lock_is_left(folder: Path) -> bool:
    return any(folder.rglob("*.lock"))


async def killed(kind: str, folder: Path) -> tuple[int, float, int]:
    """Return changes that were lost, the longest next change, and how often a lock was left behind."""
    chance, lost, longest, left = random.Random(1), 0, 0.0, 0
    await change(opened(kind, folder), "first")
    for _ in range(KILLS):
        workers = started(kind, folder, 60.0, 3)
        for one in workers:
            assert one.stdout
            one.stdout.readline()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(chance.random() * 0.1):
                await asyncio.Event().wait()
        for pid in descendants_of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        numbers = [int(word) for one in workers for word in one.communicate()[0].split() if word.isdigit()]
        left += kind == "ref" and lock_is_left(folder)
        board = await opened(kind, folder).read()
        lost += board.last_task < max(numbers, default=0)
        began = time.perf_counter()
        await change(opened(kind, folder), "after")
        longest = max(longest, time.perf_counter() - began)
    return lost, longest, left


def main() -> None:
    """Measure both ways and print a table."""
    print("kept in | ms a change | changes/s by 8 | the same, slow disk | kills: lost, longest next change, locks left")
    for kind in ("ref", "file"):
        one, eight = in_folder(alone, kind), in_folder(together, kind)
        slow = in_folder(together, f"{kind} slow")
        lost, longest, left = in_folder(killed, kind)
        print(f"{kind} | {one:.1f} | {eight:.0f} | {slow:.1f} | {KILLS}: {lost}, {longest:.2f} s, {left}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(worker(sys.argv[2], Path(sys.argv[3]), sys.argv[4], float(sys.argv[5])))
    else:
        main()
