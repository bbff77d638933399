"""What is kept of a map in its folder, so that it can be gone on with after any crash: what was asked, and each job.

    DIR/map.json                what was asked: a resumed map must ask the same
    DIR/jobs/KEY/job.json       one input, its prompt and the session of its run; written before the run begins
    DIR/jobs/KEY/outcome.json   what came of it; written when the run ended
    DIR/jobs/KEY/NAME.ipynb     the copy of a notebook that was the input
    DIR/before/…                what was put aside, since it was to run anew: it was paid for, so it is kept

Each file is written at once or not at all. One process at a time works on a folder. Knows nothing of workers. Read
`MapFolder.open`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.files import private_folder
from nbagent.core.messages import Json
from nbagent.extend.holds import Holds
from nbagent.extend.sessions import new_session_id
from nbagent.tools.paths import replace_file

MAPS = Path(".nbagent") / "maps"
VERSION = 1
Again = bool | Literal["failed", "changed"]

_HASHED = 64 * 1024 * 1024
"""Bytes of an input file whose content is compared; of larger ones size and time are."""

_WORDS = {
    "prompt": "prompt",
    "model": "model",
    "tools": "tools",
    "schema": "schema",
    "mode": "mode",
    "options": "options",
}


def new_folder(folder: Path) -> Path:
    """Return where a new map of `folder` is kept."""
    return folder / MAPS / new_session_id()


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of one job: its `job.json` and, if it has ended, its `outcome.json` (else None)."""

    job: Json
    outcome: Json | None = None


class MapFolder:
    """The folder of one map, held by this process until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._holds = Holds(path)
        self._sessions: set[str] = set()
        self._before: Path | None = None

    @classmethod
    def open(cls, path: Path, asked: Mapping[str, Any], *, resumed: bool, again: Again = False) -> MapFolder:
        """Hold a folder for a map that asks for `asked`; `resumed`: the person named the folder.

        With `again` true, what is there is put aside (`DIR/before/`) and all is run anew. Raises `ConfigError` where
        another process works on it, where it is a folder of other things, and where it holds a map that asked otherwise.
        """
        made = cls(path)
        try:
            made._take(resumed=resumed)
            before = _read(path / "map.json")
            if before is not None and again is True:
                with contextlib.suppress(FileNotFoundError):
                    (path / "jobs").rename(made._aside() / "jobs")
            elif before is not None:
                _must_agree(path, before, asked)
            made._write(path / "map.json", {"version": VERSION, "when": round(time.time(), 3), **asked})
        except OSError as error:
            made.close()
            raise ConfigError(f"{path}: {error.strerror or error}. A map keeps what it did there.") from error
        except ConfigError:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Let another process work on it."""
        self._holds.close()

    def kept(self, key: str) -> Kept | None:
        """Return what is known of a job, None where it has never begun. What is damaged is not there."""
        folder = self.path / "jobs" / key
        job = _read(folder / "job.json")
        return None if job is None else Kept(job, _read(folder / "outcome.json"))

    def begin(self, key: str, job: Json) -> None:
        """Keep that a job begins, or goes on; raises OSError where that can't be written."""
        self._write(self._folder(key) / "job.json", job)
        with contextlib.suppress(FileNotFoundError):
            (self._folder(key) / "outcome.json").unlink()

    def end(self, key: str, outcome: Json) -> None:
        """Keep what came of a job; raises OSError."""
        self._write(self._folder(key) / "outcome.json", outcome)

    def new_session(self, key: str) -> str:
        """Return an id for the session of a job that no other job of this map has."""
        mark = int(key[:4], 16)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        while (found := f"{stamp}-{mark % 0x10000:04x}") in self._sessions:
            mark += 1
        self._sessions.add(found)
        return found

    def copy(self, key: str, notebook: Path) -> Path:
        """Return the job's own copy of a notebook, made when it is first asked for; raises OSError."""
        there = self._folder(key) / notebook.name
        if not there.exists():
            replace_file(_real(there), notebook.read_bytes(), mode=0o600)
        return there

    def forget(self, key: str) -> None:
        """Put what is known of a job aside, so that it is run anew."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / "jobs" / key).rename(self._aside() / key)

    def _take(self, *, resumed: bool) -> None:
        """Make the folder and hold it; raises `ConfigError`, OSError."""
        path = self.path
        if resumed and path.is_dir() and any(path.iterdir()) and not (path / "map.json").is_file():
            raise ConfigError(f"{path} is no folder of a map: resume= names a new or empty folder, or one of a map.")
        private_folder(path)
        if _open_here(path / ".lock") or not self._holds.take("map"):
            raise ConfigError(f"Another map works on {path} right now. Wait for it, or give another folder.")

    def _aside(self) -> Path:
        """Return a place for what was paid for and is not wanted now: one for all of this process."""
        if self._before is None:
            self._before = self.path / "before" / new_session_id()
            self._before.mkdir(parents=True)
        return self._before

    def _folder(self, key: str) -> Path:
        folder = self.path / "jobs" / key
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _write(self, path: Path, data: Mapping[str, Any]) -> None:
        text = json.dumps(data, ensure_ascii=False, indent=1, default=str)
        try:
            replace_file(_real(path), text.encode("utf-8", "replace"), mode=0o600)
        except ToolError as error:  # a link in the way
            raise OSError(0, str(error), str(path)) from None


def _real(path: Path) -> Path:
    """Return `path` with the links on the way to its folder followed: the person named the folder."""
    return Path(os.path.realpath(path.parent)) / path.name


def _read(path: Path) -> Json | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _must_agree(path: Path, before: Json, asked: Mapping[str, Any]) -> None:
    """Raise `ConfigError` that says what the map of a folder asked for and this one does not."""
    now = json.loads(json.dumps(dict(asked), default=str))
    other = [word for name, word in _WORDS.items() if before.get(name) != now.get(name)]
    if said := " and ".join(f"another {word}" if word[-1] != "s" else f"other {word}" for word in other):
        raise ConfigError(
            f"{path} holds the map of {said}. Give resume= another folder, or again=True to run all of it anew."
        )


def _open_here(path: Path) -> bool:
    """Whether this very process has the file open: its own locks do not keep it out."""
    try:
        wanted = path.stat()
        handles = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208  (numbers, no paths)
    except OSError:
        return False  # no such file yet; or Windows, whose locks hold within a process, too
    for handle in handles:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(handle), wanted):
                return True
    return False


def fingerprint(path: Path) -> Json:
    """Return what tells the content of an input file from another; {} for what has none that could be told."""
    try:
        found = path.stat()
        known: Json = {"size": found.st_size, "when": found.st_mtime_ns}
        if found.st_size <= _HASHED:
            known["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return {}
    return known


def is_changed(before: Json, now: Json) -> bool:
    """Whether a file is another one than it was; False where nothing was known of it."""
    if not before or not now:
        return False
    name = "sha256" if "sha256" in before and "sha256" in now else "when"
    return (before.get("size"), before.get(name)) != (now.get("size"), now.get(name))
