"""Which sessions a living kernel writes to, so that no two write to one file.

One lock file for a folder, a byte of it for each session. The system lets go of it when the process ends, however it
ends; children that the kernel forks do not keep it. Where files can't be locked nothing is held. Read `Holds`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from nbagent.core.files import private_folder

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BYTES = 2**30


class Holds:
    """The sessions of one folder that this process holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle: int | None = None
        self._held: set[str] = set()

    def take(self, session: str) -> bool:
        """Hold a session; False where another process holds it."""
        if session in self._held:
            return True
        free = self._lock(session)
        if free:
            self._held.add(session)
        return free

    def drop(self, session: str) -> None:
        """Let go of a session."""
        if session in self._held:
            self._held.discard(session)
            self._unlock(session)

    def here(self, session: str) -> bool:
        """Whether this process holds a session."""
        return session in self._held

    def elsewhere(self, session: str) -> bool:
        """Whether another process holds a session."""
        if session in self._held:
            return False
        if not self._lock(session):
            return True
        self._unlock(session)
        return False

    def close(self) -> None:
        """Let go of all."""
        if self._handle is not None:
            os.close(self._handle)  # which lets go of every lock of this file
        self._handle, self._held = None, set()

    def _open(self) -> int | None:
        if self._handle is None:
            try:
                private_folder(self._folder)
                self._handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
            except OSError:
                return None
        return self._handle

    def _lock(self, session: str) -> bool:
        handle = self._open()
        return handle is None or _lock(handle, _place(session))

    def _unlock(self, session: str) -> None:
        if (handle := self._open()) is not None:
            _unlock(handle, _place(session))


def _place(session: str) -> int:
    return int.from_bytes(hashlib.sha256(session.encode("utf-8", "replace")).digest()[:8]) % _BYTES


if os.name == "nt":  # pragma: no cover  (another system)
    import msvcrt

    def _lock(handle: int, place: int) -> bool:
        os.lseek(handle, place, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(handle: int, place: int) -> None:
        os.lseek(handle, place, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import errno
    import fcntl

    def _lock(handle: int, place: int) -> bool:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            return error.errno not in {errno.EACCES, errno.EAGAIN}  # a disk without locks holds nothing
        return True

    def _unlock(handle: int, place: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_UN, 1, place)
