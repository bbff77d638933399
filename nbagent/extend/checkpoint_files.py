"""Checkpoints on disk: one JSON line a fact, appended as it happens, so that they survive the kernel.

They lie under `.nbagent/checkpoints/`, readable by their owner only and kept out of git, as sessions are, and only so
many of them. Nothing here raises for a disk that fails. Read `CheckpointFolder`.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nbagent.extend.checkpoints import Checkpoint, Head
from nbagent.extend.sessions import JsonlStore, private_folder

FOLDER = Path(".nbagent") / "checkpoints"
RUNS = 20
"""Checkpoints on disk, in one folder; older ones go."""
FOLDER_LIMIT = 256 * 1024 * 1024
"""Bytes of all checkpoints in one folder; older ones go."""


class CheckpointFolder:
    """The checkpoints of one working folder. Nothing here raises for a disk that fails: they are then in memory only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER

    def journal(self, checkpoint: Checkpoint) -> tuple[Path, JsonlStore]:
        """Return where a run's facts are appended as they happen; the head is written with the first of them."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(checkpoint.head.at))
        store = JsonlStore(self.folder / f"{stamp}-{checkpoint.head.run}.jsonl")

        def keep(record: dict[str, Any]) -> None:
            if not store.path.exists():
                store.append({"type": "run", "version": 1, **asdict(checkpoint.head)})
            store.append(record)

        checkpoint.keep = keep
        return store.path, store

    def heads(self) -> list[tuple[Path, Head]]:
        """Return what there is, oldest first; files that are no checkpoints are left out."""
        found: list[tuple[Path, Head]] = []
        for path in self._paths():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError), path.open(encoding="utf-8") as file:
                found.append((path, _head(json.loads(file.readline()))))
        return found

    def load(self, path: Path) -> Checkpoint | None:
        """Read a checkpoint back; None if it can't be read. A last line that was cut off by a crash is left out."""
        try:
            lines = path.read_text("utf-8").split("\n")
            checkpoint = Checkpoint(_head(json.loads(lines[0])))
            for line in lines[1:]:
                with contextlib.suppress(ValueError):
                    checkpoint.take(json.loads(line))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return checkpoint

    def rewrite(self, path: Path, checkpoint: Checkpoint) -> bool:
        """Put `checkpoint` in the place of what is at `path`, whole or not at all; return whether that worked."""
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        store = JsonlStore(part)
        for record in checkpoint.records():
            store.append(record)
        try:
            if store.problem:
                part.unlink(missing_ok=True)
                return False
            private_folder(path.parent)
            part.replace(path)
        except OSError:
            return False
        return True

    def remove(self, path: Path) -> int:
        """Remove a checkpoint; return its bytes."""
        try:
            size = path.stat().st_size
            path.unlink()
        except OSError:
            return 0
        return size

    def prune(self) -> None:
        """Remove what is over the bounds, oldest first; the newest stays in any case."""
        total = 0
        for count, path in enumerate(reversed(self._paths())):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
            if count and (count >= RUNS or total > FOLDER_LIMIT):
                self.remove(path)

    def _paths(self) -> list[Path]:
        try:
            return sorted(self.folder.glob("*.jsonl"))
        except OSError:
            return []


def _head(record: Any) -> Head:
    if not isinstance(record, dict):
        raise TypeError("a checkpoint begins with an object")
    names = Head.__dataclass_fields__
    head = Head(**{key: value for key, value in record.items() if key in names})
    return replace(head, undone=tuple(head.undone))
