"""The text of a board as a git ref that points to a blob, replaced by git's own compare-and-swap (`update-ref REF NEW OLD`).

The ref is in a bare repository of nbagent's own inside the project's git folder (`.git/nbagent/board.git`), so that all
worktrees and all machines that share the repository see one board, and the project's own refs, objects and `git log --all`
stay as they were. No value has a parent, so the old ones are garbage, which is pruned here: history does not grow.

What a kill can leave behind is git's `REF.lock`. A lock is in force for milliseconds: one that has been the same file
for `STALE` seconds of watching is taken away. Must not know what the text means. Read `RefStore.swap`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.extend.board_store import Seen, StoreError, Unsure

STALE = 3.0
"""Seconds of watching after which a lock is nobody's; git holds one for about a millisecond."""
PRUNED_AFTER = "2.minutes.ago"
LONGEST_COMMAND = 30.0
_CROWDED = 4  # files of one of the 256 folders of objects: about a thousand in all
_PRUNE_EVERY = 60.0
_NOTHING = "0" * 40


@dataclass(frozen=True, slots=True)
class Said:
    """What a git command gave: its exit code (None: it was cut off), output and errors."""

    code: int | None
    out: bytes
    err: str


async def git(argv: Sequence[str], *, cwd: Path, given: bytes = b"", more: Mapping[str, str] | None = None) -> Said:
    """Run git, bounded, with no prompts, no hooks and no editor; raises `StoreError` where there is no git."""
    return await asyncio.to_thread(_git, argv, cwd, given, dict(more or {}))


def _git(argv: Sequence[str], cwd: Path, given: bytes, more: dict[str, str]) -> Said:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_DEFAULT_REF_FORMAT": "files",
    } | more
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *argv]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=cwd, env=env, input=given, capture_output=True, timeout=LONGEST_COMMAND, check=False
        )
    except FileNotFoundError as error:
        raise StoreError("git is not installed, and the team's board is kept in the git repository") from error
    except subprocess.TimeoutExpired:
        return Said(None, b"", f"git {argv[0]} took longer than {LONGEST_COMMAND:.0f} s")
    code = done.returncode if done.returncode >= 0 else None
    return Said(code, done.stdout, done.stderr.decode("utf-8", "replace").strip())


async def home(root: Path) -> Path | None:
    """Return the git folder that all worktrees of the repository around `root` share; None outside of one."""
    said = await git(["rev-parse", "--git-common-dir"], cwd=root)
    return (root / said.out.decode().rstrip("\n")).resolve() if said.code == 0 else None


class RefStore:
    """Keeps the text at refs/teams/`team` of the repository `folder`/board.git, which is made where it is not there."""

    def __init__(self, folder: Path, team: str) -> None:
        self.repository = folder / "board.git"
        self._ref = f"refs/teams/{team}"
        self._lock = _StaleLock(self.repository / f"{self._ref}.lock")
        self._pruned = float("-inf")

    async def read(self) -> Seen:
        """Return the text as it is now."""
        if not self.repository.is_dir():
            return Seen()
        if (found := await asyncio.to_thread(self._loose)) is not None:
            return found
        said = await self._git(["cat-file", "--batch"], given=f"{self._ref}\n".encode())
        head, _, rest = said.out.partition(b"\n")
        if said.code != 0 or (said.err and head.endswith(b" missing")):
            raise StoreError(f"the team's board can't be read: {said.err or 'git was stopped'}")
        if head.endswith(b" missing"):
            return Seen()
        mark, _, size = head.decode().split(" ")
        return Seen(rest[: int(size)].decode("utf-8", "replace"), mark)

    async def mark(self) -> str:
        """Return the mark of the text as it is now: what the file of the ref says."""
        try:
            return (await asyncio.to_thread((self.repository / self._ref).read_text, "ascii")).strip()
        except (OSError, ValueError):
            return (await self.read()).mark

    async def swap(self, old: Seen, text: str) -> Seen | None:
        """Put `text` in the place of `old`; None where another text is there by now."""
        await asyncio.to_thread(self._made)
        new = await self.put(text)
        said = await self._git(["update-ref", self._ref, new, old.mark or _NOTHING])
        if said.code == 0:
            await self._tidy()
            return Seen(text, new)
        if said.code is None:
            raise Unsure(f"the change of the team's board was cut off: {said.err}")
        if (await self.read()).mark != old.mark or self._lock.is_there():
            return None
        if ".lock" in said.err:
            return None  # it was there when git looked
        raise StoreError(f"the team's board can't be written: {said.err}")

    def _loose(self) -> Seen | None:
        """Return the text without any git, as nearly always it lies: a ref and an object in a file each. None: ask git."""
        try:
            mark = (self.repository / self._ref).read_text("ascii").strip()
            packed = (self.repository / "objects" / mark[:2] / mark[2:]).read_bytes()
            head, _, text = zlib.decompress(packed).partition(b"\0")
            return Seen(text.decode(), mark) if head == b"blob %d" % len(text) else None
        except (OSError, ValueError, zlib.error):
            return None

    async def put(self, text: str) -> str:
        """Store a text that nothing points to yet, and return the name of its object."""
        said = await self._git(["hash-object", "-w", "--stdin"], given=text.encode())
        if said.code != 0:
            raise StoreError(f"the team's board can't be written: {said.err or 'git was stopped'}")
        return said.out.decode().strip()

    async def _git(self, argv: Sequence[str], given: bytes = b"") -> Said:
        return await git(["--git-dir=.", *argv], cwd=self.repository, given=given)

    def _made(self) -> None:
        """Make the repository where it is not there: whole, or not at all."""
        if self.repository.is_dir():
            return
        parent = self.repository.parent
        made = None
        try:
            parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix="board-", dir=parent))
            said = _git(["init", "--quiet", "--bare", "--template="], made, b"", {})
            if said.code != 0:
                raise StoreError(f"the team's board can't be made: {said.err or 'git was stopped'}")
            made.rename(self.repository)
        except OSError as error:
            if not self.repository.is_dir():  # nobody else has made it at the same time
                raise StoreError(f"the team's board can't be made: {error}") from error
        finally:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)

    async def _tidy(self) -> None:
        """Prune old texts where there are many."""
        if time.monotonic() - self._pruned < _PRUNE_EVERY:
            return
        some = self.repository / "objects" / "17"
        if some.is_dir() and len(os.listdir(some)) > _CROWDED:  # noqa: PTH208  (names are enough)
            self._pruned = time.monotonic()
            await self._git(["prune", f"--expire={PRUNED_AFTER}"])


class _StaleLock:
    """Watches a lock file, and takes it away once it has been the same for `STALE` seconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._since = 0.0

    def is_there(self) -> bool:
        """Whether the lock is there; one that nobody holds any more is taken away."""
        try:
            found = self._path.stat()
        except OSError:
            self._seen = None
            return False
        now = (found.st_ino, found.st_mtime_ns)
        if now != self._seen:
            self._seen, self._since = now, time.monotonic()
        elif time.monotonic() - self._since >= STALE:
            self._path.unlink(missing_ok=True)
            self._seen = None
        return True
