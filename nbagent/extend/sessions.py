"""Sessions on disk: one JSON line a record under `.nbagent/sessions/`, readable by `jq`, appended and never rewritten.

Knows nothing of the loop; it is the file host of the store port.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from nbagent.core.files import private_folder
from nbagent.core.messages import Json, Message

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FOLDER = Path(".nbagent") / "sessions"


def new_session_id() -> str:
    """Return a new id that sorts by time: `20261129-235801-1f9c`."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as it is on disk: its first record, and the messages of its transcript."""

    about: Json
    messages: tuple[Message, ...]


def read_session(path: Path) -> Stored | None:
    """Return the session in a file, None where there is none that can be read whole."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINK)
        with os.fdopen(handle, encoding="utf-8", newline="\n") as file:
            records: list[Any] = [json.loads(line) for line in file if line.strip()]
        about = records[0]
        if about["type"] != "session" or about["v"] != 1:
            return None
        return Stored(about, tuple(record["message"] for record in records if record["type"] == "message"))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


class JsonlStore:
    """Appends records to one file; the file and its folder are made at the first record, readable by their owner only.

    A place that can't be written (read-only folder, full disk) does not stop a run: `problem` then says which and why,
    and records are dropped from there on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._ready = False

    def beside(self, name: str) -> JsonlStore:
        """Return the store of another session, in a file beside this one."""
        return JsonlStore(self.path.with_name(f"{name}.jsonl"))

    def append(self, record: Json) -> None:
        """Append one record as one line, with the time (`when`, seconds since 1970)."""
        if self.problem:
            return
        line = json.dumps({**record, "when": round(time.time(), 3)}, ensure_ascii=False, default=str) + "\n"
        try:
            if not self._ready or not self.path.exists():  # somebody may have cleared the folder away
                private_folder(self.path.parent)
                self._ready = True
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
            with FileIO(handle, "a") as file:
                _write_whole(file, line.encode("utf-8", "replace"))
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"


def _write_whole(file: FileIO, data: bytes) -> None:
    """Write all of `data` at the end or nothing: a disk that is nearly full takes a part, and refuses what comes after."""
    end, rest = file.seek(0, os.SEEK_END), memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(end)
        raise
