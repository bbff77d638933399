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
import tempfile
import time
import zlib
from pathlib import Path

from nbagent.extend.board_store import Seen, StoreError, Unsure
from nbagent.extend.git import Git, GitError, Ran

STALE = 3.0
"""Seconds of watching after which a lock is nobody's; git holds one for about a millisecond."""
PRUNED_AFTER = "2.minutes.ago"
_CROWDED = 4  # files of one of the 256 folders of objects: about a thousand in all
_PRUNE_EVERY = 60.0
_NOTHING = "0" * 40
_ANY = range(-64, 256)  # exit codes, all of which are looked at here


async def shared_folder(root: Path) -> Path | None:
    """Return the git folder that all worktrees of the repository around `root` share; None outside of one.

    Raises `StoreError` where `root` has a .git and there is no git to read it.
    """
    try:
        ran = await Git(root).run("rev-parse", "--git-common-dir", ok=(0, 128))
    except GitError as error:
        if any(found.exists() for found in (root / ".git", *(above / ".git" for above in root.parents))):
            raise StoreError(str(error)) from error
        return None
    return (root / ran.text).resolve() if ran.code == 0 else None


class RefStore:
    """Keeps the text at refs/teams/`team` of the repository `folder`/board.git, which is made where it is not there."""

    longest_pause = 2.0

    def __init__(self, folder: Path, team: str, *, stale: float = STALE) -> None:
        self.repository = folder / "board.git"
        self._ref = f"refs/teams/{team}"
        self._lock = _StaleLock(self.repository / f"{self._ref}.lock", stale)
        self._pruned = float("-inf")

    async def read(self) -> Seen:
        """Return the text as it is now."""
        if not self.repository.is_dir():
            return Seen()
        if (found := await asyncio.to_thread(self._loose)) is not None:
            return found
        return await self._by_git(self._ref) or Seen()

    async def text_of(self, mark: str) -> str | None:
        """Return the text of that mark, None where it is not here."""
        if not self.repository.is_dir() or (found := await self._by_git(mark)) is None:
            return None
        return found.text

    async def _by_git(self, name: str) -> Seen | None:
        ran = await self._git("cat-file", "--batch", data=f"{name}\n")
        head, _, rest = ran.out.partition(b"\n")
        if ran.code != 0 or (ran.said and head.endswith(b" missing")):
            raise StoreError(f"the team's board can't be read: {ran.said or 'git was stopped'}")
        if head.endswith(b" missing"):
            return None
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
        if await asyncio.to_thread(self._lock.is_there):
            return None
        new = await self.put(text)
        try:
            ran = await self._git("update-ref", self._ref, new, old.mark or _NOTHING)
        except StoreError as error:
            raise Unsure(str(error)) from error
        if ran.code == 0:
            await self._tidy()
            return Seen(text, new)
        if ran.code < 0:
            raise Unsure("the change of the team's board was cut off")
        if ".lock" in ran.said or (await self.read()).mark != old.mark:
            return None
        raise StoreError(f"the team's board can't be written: {ran.said}")

    async def put(self, text: str) -> str:
        """Store a text that nothing points to yet, and return the name of its object."""
        await self.make()
        ran = await self._git("hash-object", "-w", "--stdin", data=text)
        if ran.code != 0:
            raise StoreError(f"the team's board can't be written: {ran.said or 'git was stopped'}")
        return ran.text

    def _loose(self) -> Seen | None:
        """Return the text without any git, as nearly always it lies: a ref and an object in a file each. None: ask git."""
        try:
            mark = (self.repository / self._ref).read_text("ascii").strip()
            packed = (self.repository / "objects" / mark[:2] / mark[2:]).read_bytes()
            head, _, text = zlib.decompress(packed).partition(b"\0")
            return Seen(text.decode(), mark) if head == b"blob %d" % len(text) else None
        except (OSError, ValueError, zlib.error):
            return None

    async def _git(self, *words: str, data: str = "") -> Ran:
        try:
            return await Git(self.repository).run(*words, data=data, ok=_ANY, env={"GIT_DIR": str(self.repository)})
        except GitError as error:
            raise StoreError(f"the team's board can't be used: {error}") from error

    async def make(self) -> None:
        """Make the repository where it is not there: whole, or not at all."""
        if self.repository.is_dir():
            return
        made = None
        try:
            made = await asyncio.to_thread(_folder_in, self.repository.parent)
            await Git(made).run("init", "--quiet", "--bare", "--template=", env={"GIT_DEFAULT_REF_FORMAT": "files"})
            await asyncio.to_thread(made.rename, self.repository)
        except (OSError, GitError) as error:
            if not self.repository.is_dir():  # nobody else has made it at the same time
                raise StoreError(f"the team's board can't be made: {error}") from error
        finally:
            if made is not None:
                await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)

    async def _tidy(self) -> None:
        """Prune old texts where there are many."""
        if time.monotonic() - self._pruned < _PRUNE_EVERY:
            return
        some = self.repository / "objects" / "17"
        if some.is_dir() and len(os.listdir(some)) > _CROWDED:  # noqa: PTH208  (names are enough)
            self._pruned = time.monotonic()
            await self._git("prune", f"--expire={PRUNED_AFTER}")


def _folder_in(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="board-", dir=parent))


class _StaleLock:
    """Watches a lock file, and takes it away once it has been the same for `stale` seconds."""

    def __init__(self, path: Path, stale: float) -> None:
        self._path, self._stale = path, stale
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
        elif time.monotonic() - self._since >= self._stale:
            self._path.unlink(missing_ok=True)
            self._seen = None
        return True
