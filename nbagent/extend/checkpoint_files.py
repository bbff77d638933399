"""Checkpoints on disk: one JSON line a fact, appended as it happens, so that they survive the kernel.

They lie under `.nbagent/checkpoints/`, readable by their owner only and kept out of git, as sessions are, and only so
many of them. Each line is sealed together with the run's id and the seal of the line before it: a file that came with
somebody else's project would have an undo write what it likes, and is not there. Nothing here raises for a disk that
fails. Read `CheckpointFolder`.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.extend.checkpoints import Checkpoint, Head
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import JsonlStore

FOLDER = Path(".nbagent") / "checkpoints"
RUNS = 20
"""Checkpoints on disk, in one folder; older ones go."""
END: Json = {"type": "end"}
"""The last fact of a checkpoint. Without it the kernel died, or the disk was full."""
BROKEN_OFF = "what it did last: its checkpoint breaks off"
FOLDER_LIMIT = 256 * 1024 * 1024
"""Bytes of all checkpoints in one folder; older ones go."""


class CheckpointFolder:
    """The checkpoints of one working folder. Nothing here raises for a disk that fails: they are then in memory only."""

    def __init__(self, folder: Path, seals: Seals | None = None) -> None:
        self.folder = folder / FOLDER
        self._seals = seals or Seals()

    def journal(self, checkpoint: Checkpoint) -> Journal:
        """Have the facts of a run appended to a file as they happen; there is none before the first one."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(checkpoint.head.at))
        return Journal(self.folder / f"{stamp}-{checkpoint.head.run}.jsonl", checkpoint, self._seals)

    def heads(self) -> list[tuple[Path, Head]]:
        """Return what there is, oldest first; files that are no checkpoints of this person's are left out."""
        found: list[tuple[Path, Head]] = []
        for path in self._paths():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError), path.open(encoding="utf-8") as file:
                found.append((path, self._begun(file.readline())[0]))
        return found

    def load(self, path: Path) -> Checkpoint | None:
        """Read a checkpoint back, up to a line that a crash cut off or that is not ours: then it says so; None if none can be read."""
        try:
            lines = path.read_text("utf-8").split("\n")
            head, chain = self._begun(lines[0])
            checkpoint, whole = Checkpoint(head), False
            for line in lines[1:]:
                try:
                    record = chain.opened(line)
                except ValueError:
                    break
                whole = whole or record == END
                checkpoint.take(record)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not whole:
            checkpoint.note(BROKEN_OFF)
        return checkpoint

    def _begun(self, line: str) -> tuple[Head, _Chain]:
        """Return the head in a first line, and what opens the lines after it; raise ValueError if it is not sealed."""
        head = _head(json.loads(line))
        chain = _Chain(self._seals, head.run)
        chain.opened(line)
        return head, chain

    def rewrite(self, path: Path, checkpoint: Checkpoint) -> str:
        """Put `checkpoint` in the place of what is at `path`, whole or not at all; return "", or why that did not work."""
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        store, chain = JsonlStore(part), _Chain(self._seals, checkpoint.head.run)
        for record in (*checkpoint.records(), END):
            store.append(chain.sealed(record))
        problem = store.problem
        with contextlib.suppress(OSError):
            if not problem:
                try:
                    part.replace(path)
                except OSError as error:
                    problem = f"{path}: {error.strerror}"
            part.unlink(missing_ok=True)
        return problem

    def remove(self, path: Path) -> int:
        """Remove a checkpoint; return its bytes."""
        try:
            size = path.stat().st_size
            path.unlink()
        except OSError:
            return 0
        return size

    def prune(self) -> None:
        """Remove what is over the bounds, oldest first."""
        total = 0
        for count, path in enumerate(reversed(self._paths())):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
            if count >= RUNS or total > FOLDER_LIMIT:
                self.remove(path)

    def _paths(self) -> list[Path]:
        try:
            return sorted(self.folder.glob("*.jsonl"))
        except OSError:
            return []


class Journal:
    """The file of a run that is under way."""

    def __init__(self, path: Path, checkpoint: Checkpoint, seals: Seals) -> None:
        self.path = path
        self._store, self._checkpoint, self._seals = JsonlStore(path), checkpoint, seals
        self._chain = _Chain(seals, checkpoint.head.run)
        checkpoint.keep = self._keep

    def end(self) -> str:
        """Say that the run is over; return "", or why what it has done is not on disk."""
        if not self.path.exists():
            self._begin()
        self._append(END)
        return self._store.problem

    def _keep(self, record: Json) -> None:
        if self.path.exists():
            self._append(record)
        else:
            self._begin()

    def _begin(self) -> None:
        """Write all that is known: that is the first fact, or more where somebody has cleared the folder away."""
        self._chain = _Chain(self._seals, self._checkpoint.head.run)
        for record in self._checkpoint.records():
            self._append(record)

    def _append(self, record: Json) -> None:
        self._store.append(self._chain.sealed(record))


class _Chain:
    """Seals the lines of one file, one after the other, and opens them again in that order."""

    def __init__(self, seals: Seals, run: str) -> None:
        self._seals = seals
        self._run = run
        self._last = ""

    def sealed(self, record: Json) -> Json:
        """Return `record` with its seal."""
        self._last = self._seals.seal(self._data(record))
        return {**record, "seal": self._last}

    def opened(self, line: str) -> Json:
        """Return the record in `line`; raise ValueError if it is none that was sealed at this place."""
        record = json.loads(line)
        seal = record.pop("seal", None) if isinstance(record, dict) else None
        record.pop("when", None) if isinstance(record, dict) else None  # the store's own
        if seal is None or not self._seals.holds(self._data(record), seal):
            raise ValueError("not sealed by this person's nbagent")
        self._last = seal
        return record

    def _data(self, record: Json) -> bytes:
        return json.dumps([self._run, self._last, record], ensure_ascii=False, default=str).encode("utf-8", "replace")


def _head(record: Any) -> Head:
    if not isinstance(record, dict):
        raise TypeError("a checkpoint begins with an object")
    names = Head.__dataclass_fields__
    head = Head(**{key: value for key, value in record.items() if key in names})
    return replace(head, undone=tuple(head.undone))
