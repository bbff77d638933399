"""Finished runs on disk: what each one read and what it reported, so that its cell can be run again without a model.

One JSON file a run under `.nbagent/runs/`, named by the hash of the cell's text and by its cell, readable by its owner
only and ignored by git, written at once or not at all. A file that is damaged, of another version, or not sealed by this
person's nbagent (it came with somebody's project: what it tells was never run here) is not there.
Runs are found by text and options within the folder, never by the notebook's path: papermill runs copies. Knows nothing
of events or kernels. Read `RunStore`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbagent.core.files import private_folder
from nbagent.core.messages import Json
from nbagent.extend.seals import Seals

FOLDER = Path(".nbagent") / "runs"
VERSION = 2

NEWEST = 5
"""Runs that are kept of one cell text."""

ALL = 500
"""Runs that are kept in all; the oldest go first."""

BYTES = 64 * 1024 * 1024
"""A run that is larger is not kept."""

ALL_BYTES = 256 * 1024 * 1024
"""Bytes of all runs together; the oldest go first."""

_LISTS: dict[str, type] = {"above": str, "shown": str, "texts": str, "untold": str, "cells": str, "events": dict}
_KINDS: dict[str, type] = {
    "run": str, "text": str, "cell": str, "at": str, "model": str, "session": str, "past": str, "inputs": dict, "first": int, "last": int,
}  # fmt: skip
_SEAL = 65
"""Bytes of the seal's line, which is the first one of a file."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def text_key(prompt: str, options: Mapping[str, Any]) -> str:
    """Return the hash of a cell's text: its prompt and those of its options that change the answer (16 hex digits)."""
    text = json.dumps([prompt, sorted(options.items())], ensure_ascii=False, default=str)
    return _hash(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One finished run.

    `run` is its id, `text` the `text_key` of its cell, `cell` the cell's id ("" where the place tells none), `at` when it ended (ISO
    8601, UTC), `above` the sources of the code cells above its cell when it ended, `cells` the ids of those that it made or ran, `inputs` what it read
    (`tools.inputs`), `events` all that it reported. It is messages `first` to `last` (exclusive) of session `session`.
    `past` is the hash of the messages before `first`, which the answer was given after (`app.forks.past_hash`). `shown` are
    hashes of the texts that the code cells above showed then, in their order, `texts` the sources of the text cells above, and
    `untold` those among them that the model was not shown; () where they are not known.
    """

    run: str
    text: str
    cell: str
    at: str
    model: str
    above: tuple[str, ...]
    cells: tuple[str, ...]
    inputs: Json
    events: tuple[Json, ...]
    session: str = ""
    first: int = 0
    last: int = 0
    past: str = ""
    shown: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    @classmethod
    def now(cls) -> str:
        """Return the time for `at`."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class RunStore:
    """The finished runs of one folder. Nothing of it raises: a place that can't be written keeps nothing."""

    def __init__(self, folder: Path, *, limit: int = ALL_BYTES, seals: Seals | None = None) -> None:
        self._folder, self._limit, self._seals = folder / FOLDER, limit, seals or Seals()

    def keep(self, run: FinishedRun) -> str:
        """Keep a run and drop the oldest beyond the bounds; return "", or the sentence that says why it can't be kept."""
        try:
            data = json.dumps({"v": VERSION, **asdict(run)}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError) as error:  # an input of a call that is no JSON
            return f"The run can't be kept for the next time: {error}."
        if len(data) > min(BYTES, self._limit):
            return f"The run is not kept for the next time: it has {len(data) // 1_000_000:,} MB."
        name = f"{run.text}-{_cell_key(run.cell)}-{time.time_ns():020d}-{_hash(run.run)[:8]}.json"
        try:
            private_folder(self._folder)
            _write(self._folder / name, self._seals.seal(data).encode("ascii") + b"\n" + data)
        except OSError as error:
            return f"The run can't be kept for the next time ({self._folder}: {error.strerror})."
        self._drop([path for path in self._paths(f"{run.text}-*.json") if path.name != name][NEWEST - 1 :])
        self._drop(self._beyond(self._paths("*.json")))
        return ""

    def forget(self, run: str) -> None:
        """Forget a run: what it did was taken back, so its record tells of nothing that is there."""
        self._drop(self._paths(f"*-{_hash(run)[:8]}.json"))

    def of_text(self, text: str) -> Iterator[FinishedRun]:
        """Yield the finished runs of a cell text, newest first."""
        yield from self._read(self._paths(f"{text}-*.json"))

    def of_cell(self, cell: str) -> Iterator[FinishedRun]:
        """Yield the finished runs of a cell, whatever its text was, newest first; none for ""."""
        if cell:
            yield from (run for run in self._read(self._paths(f"*-{_cell_key(cell)}-*.json")) if run.cell == cell)

    def _beyond(self, paths: list[Path]) -> list[Path]:
        """Return which of `paths` (newest first) are one too many, or too many bytes."""
        total = 0
        for count, path in enumerate(paths):
            with contextlib.suppress(OSError):
                total += path.lstat().st_size
            if count and (count >= ALL or total > self._limit):
                return paths[count:]
        return []

    def _paths(self, pattern: str) -> list[Path]:
        try:
            return sorted(self._folder.glob(pattern), key=_stamp, reverse=True)
        except OSError:
            return []

    def _read(self, paths: Iterable[Path]) -> Iterator[FinishedRun]:
        for path in paths:
            if (run := _load(path, self._seals)) is not None:
                yield run

    def _drop(self, paths: Iterable[Path]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                path.unlink()


def _cell_key(cell: str) -> str:
    return _hash(cell)[:8] if cell else "none"


def _stamp(path: Path) -> str:
    return path.name.split("-")[2] if path.name.count("-") == 3 else ""


def _write(path: Path, data: bytes) -> None:
    """Write a new file at once: readers see all of it or nothing."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".run-", suffix=".tmp")  # for the owner only
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _load(path: Path, seals: Seals) -> FinishedRun | None:
    """Return the run in a file, None for one that is damaged, not sealed here, or a link that leads elsewhere."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINK)
        with os.fdopen(handle, "rb") as file:
            seal, _, text = file.read(BYTES + _SEAL).partition(b"\n")
        if not seals.holds(text, seal.decode("ascii")):
            return None
        data: Any = json.loads(text.decode("utf-8", "surrogatepass"))
        if data.pop("v") != VERSION:
            return None
        for name, kind in _LISTS.items():
            if not all(isinstance(item, kind) for item in data[name]):
                return None
            data[name] = tuple(data[name])
        run = FinishedRun(**data)
        return run if all(isinstance(getattr(run, name), kind) for name, kind in _KINDS.items()) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
