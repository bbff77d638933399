"""Eight processes do the tasks of one board, and two of them are killed: each task is done once, in order, and none is lost.

Here 80 tasks, once; all of it, 50 times 200 tasks: `BOARD_REPEATS=50 python -m pytest tests/extend/test_boards_processes.py`.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbagent.core.board import Board, Member
from nbagent.extend.boards import Boards
from nbagent.extend.git import Git
from tests.source import ROOT
from tests.support.turns import wait_until

REPEATS = int(os.environ.get("BOARD_REPEATS", "1"))
TASKS = 200 if REPEATS > 1 else 80
NAMES = ("Ana", "Ben", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal")
LEASE = 3.0
PATIENCE = 60 if REPEATS == 1 else 600


def filled(chance: random.Random) -> Board:
    """A board of `TASKS` tasks, each of which needs up to three of those before it."""
    board = Board(goal="many")
    for name in NAMES:
        board = board.join(Member(name))
    for number in range(1, TASKS + 1):
        needs = chance.sample(range(1, number), min(number - 1, chance.choice([0, 0, 1, 1, 2, 3])))
        board = board.create(f"task {number}", needs=[str(need) for need in needs])
    return board


@contextlib.contextmanager
def at_work(root: Path, log: Path, stays: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start a process for each name; `stays` stays in its first task. None is left at the end."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in NAMES:
            words = [str(root), name, str(log), str(LEASE), str(int(name == stays))]
            started[name] = subprocess.Popen([sys.executable, "-m", "tests.extend.board_worker", *words], cwd=ROOT)
        yield started
    finally:
        for process in started.values():
            process.kill()
            process.wait(60)


def lines(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()]


def check(said: list[list[str]], board: Board, killed: set[str]) -> None:
    """What stands in the log, and on the board, is what eight careful people would have done."""
    begun = [(line[1], line[2]) for line in said if line[0] == "begin"]
    assert max(Counter(begun).values()) == 1  # no claim was had by two
    done = Counter(line[1] for line in said if line[0] == "done")
    assert max(done.values()) == 1
    unsaid = {task.id for task in board.tasks} - set(done)  # killed between the change and the line in the log
    assert {board.task(task).owner for task in unsaid} <= killed
    assert len(unsaid) <= len(killed)
    assert board.is_done
    assert {line[3] for line in said if line[0] == "done" and board.task(line[1]).owner != line[3]} == set()
    place = {(line[0], line[1], line[2]): number for number, line in enumerate(said) if line[0] in {"begin", "worked"}}
    for task in board.tasks:
        for need in task.needs:
            worked = place["worked", need, str(board.task(need).claims)]
            assert all(at > worked for (what, of, _), at in place.items() if (what, of) == ("begin", task.id))


@pytest.mark.slow
@pytest.mark.timeout(3 * PATIENCE)
@pytest.mark.parametrize("seed", range(REPEATS))
async def test_each_task_is_done_once_and_in_order_though_two_of_eight_are_killed(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    await Git(tmp_path).run("init", "--quiet")
    log = tmp_path / "log"
    log.touch()
    boards = await Boards.open(tmp_path, "demo")
    await boards.change(lambda _: filled(chance))
    holder, other = chance.sample(NAMES, 2)
    early, late = chance.randrange(TASKS // 2), chance.randrange(TASKS // 2, TASKS * 2)
    with at_work(tmp_path, log, holder) as started:
        wait_until(lambda: len(said := lines(log)) > early and any(line[0] == "stays" for line in said), PATIENCE)
        started[holder].send_signal(signal.SIGKILL)  # in the middle of a task
        wait_until(lambda: len(lines(log)) > late, PATIENCE)
        started[other].send_signal(signal.SIGKILL)  # wherever it is
        for process in started.values():
            process.wait(PATIENCE)
        codes = {name: process.returncode for name, process in started.items()}
    assert codes == {name: -9 if name in {holder, other} else 0 for name in NAMES}
    board, said = await boards.read(), lines(log)
    check(said, board, {holder, other})
    held = [line[1] for line in said if line[-1] == holder][-1]
    assert ("lease ended", holder) in [(stint.why, stint.owner) for stint in board.task(held).past]
    assert board.task(held).owner != holder
