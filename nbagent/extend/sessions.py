"""Sessions on disk: one JSON line a record under `.nbagent/sessions/`, readable by `jq`, appended and never rewritten.

Each line carries a seal over itself and all lines before it, so that a session that came with somebody else's project, or
was changed since, is told from this person's own. Knows nothing of the loop; it is the file host of the store port.
Reading is `sessions_read`. Read `JsonlStore`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from io import FileIO
from pathlib import Path
from typing import Protocol

from nbagent.core.files import private_folder
from nbagent.core.messages import Json
from nbagent.core.ports import Store
from nbagent.extend.sessions_read import SEALED, Outline, Stored, outline, read_session

__all__ = ["FOLDER", "GoingOn", "JsonlStore", "Outline", "Seal", "Stored", "new_session_id", "outline", "read_session"]

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FOLDER = Path(".nbagent") / "sessions"


def new_session_id() -> str:
    """Return a new id that sorts by time: `20261129-235801-1f9c`."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


class Seal(Protocol):
    """Makes seals of data (`extend.seals.Seals`)."""

    def seal(self, data: bytes) -> str:
        """Return the seal of `data` (64 hex digits)."""
        ...


class JsonlStore:
    """Appends records to one file; the file and its folder are made at the first record, readable by their owner only.

    With `seals` each line is sealed; `last` is the seal of the last line that is there already. A line that a dying kernel
    left unfinished is ended before the first new one. A place that can't be written (read-only folder, full disk) does
    not stop a run: `problem` then says which and why, and records are dropped from there on.
    """

    def __init__(self, path: Path, seals: Seal | None = None, *, last: str = "") -> None:
        self.path = path
        self.problem = ""
        self._ready = False
        self._seals, self._last = seals, last

    def beside(self, name: str) -> JsonlStore:
        """Return the store of another session, in a file beside this one."""
        return JsonlStore(self.path.with_name(f"{name}.jsonl"), self._seals)

    def append(self, record: Json) -> None:
        """Append one record as one line, with the time (`when`, seconds since 1970)."""
        if self.problem:
            return
        body = json.dumps({**record, "when": round(time.time(), 3)}, ensure_ascii=False, default=str)
        data = body.encode("utf-8", "replace")
        seal = self._seals.seal(self._last.encode("ascii") + data) if self._seals is not None else ""
        line = (SEALED % seal.encode("ascii") + data[1:] if seal else data) + b"\n"
        try:
            if not self._ready or not self.path.exists():  # somebody may have cleared the folder away
                private_folder(self.path.parent)
                line = b"\n" + line if _torn(self.path) else line
                self._ready = True
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
            with FileIO(handle, "a") as file:
                _write_whole(file, line)
            self._last = seal
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"


class GoingOn:
    """The store of a session that is on disk already: what is taken over from there is not written again, until `begin`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._begun = False

    def append(self, record: Json) -> None:
        """Hand a record on, once begun."""
        if self._begun:
            self._store.append(record)

    def beside(self, name: str) -> Store:
        """Return the store of another session, in the same place."""
        return self._store.beside(name)

    def begin(self) -> None:
        """Say that what comes from here on is new."""
        self._begun = True


def _torn(path: Path) -> bool:
    """Whether a file's last line is not ended: a kernel was killed while it wrote."""
    with contextlib.suppress(OSError), os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    return False


def _write_whole(file: FileIO, data: bytes) -> None:
    """Write all of `data` at the end or nothing: a disk that is nearly full takes a part, and refuses what comes after."""
    end, rest = file.seek(0, os.SEEK_END), memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(end)
        raise
