"""The text of a board in a folder, behind a lock of the operating system: for teams outside of a git repository.

The system lets go of the lock when its holder dies, however it dies, so nothing is ever left behind. It counts on one
machine, and on shared disks whose locks work. Must not know what the text means. Read `FileStore.swap`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from nbagent.core.files import private_folder
from nbagent.extend.board_store import Seen, StoreError

LONGEST_WAIT = 20.0
"""Seconds to wait for the lock; each holder has it for milliseconds."""
_PAUSE = 0.002
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class FileStore:
    """Keeps the text in `folder`/board.json."""

    longest_pause = 2.0

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "board.json"

    async def read(self) -> Seen:
        """Return the text as it is now."""
        return await asyncio.to_thread(self._read)

    async def swap(self, old: Seen, text: str) -> Seen | None:
        """Put `text` in the place of `old`, under the lock."""
        return await asyncio.to_thread(self._swap, old, text)

    async def mark(self) -> str:
        """Return the mark of the text as it is now."""
        return (await self.read()).mark

    def _read(self) -> Seen:
        try:
            text = self._file.read_text("utf-8")
        except FileNotFoundError:
            return Seen()
        except (OSError, ValueError) as error:
            raise StoreError(f"the team's board can't be read ({self._file}): {error}") from error
        return Seen(text, hashlib.sha256(text.encode()).hexdigest())

    def _swap(self, old: Seen, text: str) -> Seen | None:
        try:
            private_folder(self._folder)
            with _locked(self._folder / "board.lock"):
                if self._read().mark != old.mark:
                    return None
                self._write(text)
        except OSError as error:
            raise StoreError(f"the team's board can't be written ({self._file}): {error}") from error
        return Seen(text, hashlib.sha256(text.encode()).hexdigest())

    def _write(self, text: str) -> None:
        part = (
            self._folder / "board.part"
        )  # one name: under the lock nobody else writes it, and a killed one's is reused
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._file)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold the lock of `path`; raises `TimeoutError` (an `OSError`) after `LONGEST_WAIT` seconds."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
    try:
        end = time.monotonic() + LONGEST_WAIT
        while not _lock(handle):
            if time.monotonic() > end:
                raise TimeoutError(f"{path.name} was locked for {LONGEST_WAIT:.0f} s")
            time.sleep(_PAUSE)  # in a thread of its own
        yield
    finally:
        os.close(handle)  # which lets go of the lock


if os.name == "nt":  # pragma: no cover  (another system)
    import msvcrt

    def _lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
