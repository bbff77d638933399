"""The board of a team that many processes share: read it, change it by a pure step, wait until somebody else has changed it.

A change is a compare-and-swap: read, take the step, swap; where another one was first, again. So a step may be called
several times, and nothing is locked while it is thought about. Must not know what teammates do. Read `Boards.change`.

In a repository the swap is that of a git ref (`board_ref`, `board_remote`), decided against a lock file (`board_file`) by
`python -m tests.benchmarks.boards`. On two cores that were busy with other things:

    kept in    ms a change   changes a second by 8   with a slow disk   60 × all killed with -9: lost, next change after
    git ref       13 to 29                      37                  9   0, at most 3.3 s (6 × git's lock was left behind)
    lock file       2 to 8                     187                 18   0, at most 0.04 s

Both lose nothing and never give one task to two. The file is faster and forgets a dead holder at once; but it counts only
where the locks of the disk do, which a network disk may not say, and it can't be shared by clones on machines without a
common disk. The ref counts wherever git itself does, over a remote, too, and is fast enough by far: a teammate changes the
board a few times a minute. Its price, a lock that a kill leaves behind, is healed by watching (`board_ref`). So the ref it is;
the file is kept for the one place where there is no repository.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nbagent.core import board_rules
from nbagent.core.board import Board
from nbagent.core.errors import BoardError
from nbagent.core.leases import Watch
from nbagent.core.messages import Json
from nbagent.extend.board_file import FileStore
from nbagent.extend.board_ref import RefStore, shared_folder
from nbagent.extend.board_remote import RemoteStore
from nbagent.extend.board_store import Seen, Store, StoreError, Unsure

FORMAT = 1
"""Of what is stored; a board of a later one is not touched."""
LONGEST = 60.0
"""Seconds that a change is tried again for, before it is given up with a sentence."""
_WRITES = 64  # ids of the latest writes, by which one that was cut off finds out whether it has happened
_FIRST_PAUSE = 0.05

Step = Callable[[Board], Board]


class Boards:
    """The board of one team. Safe to use from many processes, and by many tasks of one."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.store, self._clock = store, clock
        self._watch = Watch()
        self._last: tuple[Seen, Board, tuple[str, ...]] | None = None  # boards are frozen: what was read once is read

    @classmethod
    async def open(cls, root: Path, team: str, *, remote: str = "") -> Boards:
        """Return the board of `team` for the project at `root`; nothing is written before the first change.

        In a git repository it is kept in that; with `remote` in that remote (a name or an address), for clones of it on
        other machines; outside in .nbagent/teams/. Raises `StoreError`, and `BoardError` for a name that is none.
        """
        board_rules.name(team)
        shared = await shared_folder(root)
        if shared is None:
            if remote:
                raise StoreError(f"{root} is not in a git repository, so the team's board can't be kept in {remote}")
            return cls(FileStore(root / ".nbagent" / "teams" / team))
        local = RefStore(shared / "nbagent", team)
        return cls(RemoteStore(root, shared, team, remote, local) if remote else local)

    async def read(self) -> Board:
        """Return the board as it is now; raises `StoreError`."""
        return (await self._read())[0]

    async def change(self, step: Step) -> Board:
        """Put `step(board)` in the place of the board, and return it; what `step` raises is raised, and changes nothing.

        `step` may be called several times, each time with the board as it is then. One that is cancelled may have happened.
        Raises `StoreError`.
        """
        end, tries, ours = self._clock() + LONGEST, 0, ""
        while True:
            board, seen, writes = await self._read()
            if ours and ours in writes:
                return board  # it was cut off, and had happened
            new = step(board)
            if new == board:
                return board
            new = replace(new, version=board.version + 1)
            ours = secrets.token_hex(4)
            try:
                if await self.store.swap(seen, _text(new, (*writes, ours))) is not None:
                    self._watch = self._watch.look(new, self._clock())
                    return new
            except Unsure:
                if self._clock() > end:
                    raise
            tries += 1
            if self._clock() > end:
                raise StoreError(f"the team's board could not be changed in {LONGEST:.0f} s: others were always first")
            await asyncio.sleep(random.uniform(0, min(0.01 * 2**tries, 0.1)))  # noqa: S311  (so that not all try at once)

    async def changed(self, since: int, timeout: float) -> Board:
        """Return the board as soon as its version is other than `since`, else as it is after `timeout` seconds.

        A file and a ref tell nobody that they changed, so it looks: after 0.05 s, then less and less often, in the end every
        2 s (four times in the shortest lease). A look costs the reading of one small file. Who waits so also watches the
        leases, and frees the tasks of the dead: that is a change, too.
        """
        end, pause = self._clock() + timeout, _FIRST_PAUSE
        board, mark = Board(), None
        while True:
            now = await self.store.mark()
            if now != mark:
                board, mark = await self.read(), now
            self._watch = self._watch.look(board, self._clock())
            if self._watch.overdue(board):
                board = await self.change(self.free)
            left = end - self._clock()
            if board.version != since or left <= 0:
                return board
            shortest = min((task.lease for task in board.tasks if task.state == "in_progress"), default=60.0)
            await asyncio.sleep(min(pause, left, max(shortest / 4, _FIRST_PAUSE)))
            pause = min(pause * 1.5, self.store.longest_pause)

    def free(self, board: Board) -> Board:
        """Return `board` without the claims whose lease has ended before this watcher's eyes: a step of `change`."""
        return board.free(self._watch.overdue(board), time.time())

    async def _read(self) -> tuple[Board, Seen, tuple[str, ...]]:
        seen = await self.store.read()
        if self._last is not None and self._last[0] == seen:
            board, writes = self._last[1:]
        else:
            board, writes = _board(seen.text)
            self._last = (seen, board, writes)
        self._watch = self._watch.look(board, self._clock())
        return board, seen, writes


def _text(board: Board, writes: tuple[str, ...]) -> str:
    return json.dumps({"format": FORMAT, "writes": writes[-_WRITES:], "board": board.to_json()}, ensure_ascii=False)


def _board(text: str) -> tuple[Board, tuple[str, ...]]:
    if not text:
        return Board(), ()
    try:
        said: Json = json.loads(text)
        if said["format"] > FORMAT:
            raise StoreError("the team's board was written by a newer nbagent: update this one to work with it")
        return Board.from_json(said["board"]), tuple(said["writes"])
    except (ValueError, TypeError, KeyError, BoardError, RecursionError) as error:
        raise StoreError(f"the team's board can't be read: {error}") from error
