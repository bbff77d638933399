"""`%agent undo`, `redo` and `forget`: takes back what a run did, and does it again.

Only what is still as the run left it is touched; all else stays and is named. An undo is itself recorded in the same
way, so that redo is the undo of an undo. Cells and files are on disk and survive the kernel; variables are kept for the
last three runs, in memory. Read `Undo.turn`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbagent.app.putback import Told, put_back_cells, put_back_files
from nbagent.app.recording import Recording
from nbagent.core.errors import NotebookError
from nbagent.core.ports import Kernel, Notebook
from nbagent.extend.bindings import Bindings
from nbagent.extend.checkpoint_files import CheckpointFolder
from nbagent.extend.checkpoints import Checkpoint, Head
from nbagent.extend.recorded import RecordedNotebook
from nbagent.extend.sessions import JsonlStore
from nbagent.tools.cells import first_line

NAMES_OF = 3
"""Runs whose old objects are kept alive."""
LINES = 20
"""Lines of one kind in a report."""
PARTS = ("cells", "files", "names")

NOTHING = "There is nothing to take back: no run in this notebook has changed anything, or it is forgotten."
NOTHING_AGAIN = "There is nothing to do again: nothing was taken back."
UNKNOWN = "Nothing is known of this run any more: it changed nothing, or its checkpoint is gone."
NO_PAGE = "the cells: no page that shows the notebook has answered"


@dataclass(slots=True)
class Entry:
    """One run that can be taken back. `kept` where it is not on disk; `names` None: not kept (any more)."""

    head: Head
    path: Path | None = None
    kept: Checkpoint | None = None
    names: Bindings | None = None


@dataclass(frozen=True, slots=True)
class Turned:
    """What an undo or redo gave: the report, the run's head as it is now, and whether anything was done."""

    text: str
    head: Head | None = None
    did: bool = False


class Undo:
    """The checkpoints of one kernel, and those that are on disk in its folder."""

    def __init__(self, folder: Path, namespace: Callable[[], dict[str, Any]]) -> None:
        self.lock = asyncio.Lock()
        """Held while something is taken back; a run waits for it."""
        self._disk = CheckpointFolder(folder)
        self._root = folder
        self._namespace = namespace
        self._kernel = secrets.token_hex(4)
        self._entries: dict[str, Entry] = {}

    # ── recording ───────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def recording(self, prompt: str, notebook: Notebook | None, kernel: Kernel) -> Generator[Recording]:
        """Record a run for as long as this is entered, however it ends; nothing is kept of one that changed nothing."""
        path, own = (notebook.path, notebook.own_cell) if notebook is not None else ("", None)
        run = f"run-{secrets.token_hex(4)}"
        checkpoint = Checkpoint(Head(run, time.time(), first_line(prompt, 60), path, own, self._kernel))
        file, store = self._disk.journal(checkpoint)
        recording = Recording(checkpoint, self._root, notebook, kernel)
        try:
            yield recording
        finally:
            self._finish(checkpoint, recording.end(), file, store)

    def _finish(self, checkpoint: Checkpoint, names: Bindings, path: Path, store: JsonlStore) -> None:
        if checkpoint.is_empty and not names.changed:
            self._disk.remove(path)  # what it touched it has put back itself
            return
        on_disk = path.exists() and not store.problem
        entry = Entry(checkpoint.head, path if on_disk else None, None if on_disk else checkpoint, names)
        self._entries[entry.head.run] = entry
        self._let_go()
        self._disk.prune()

    def _let_go(self) -> None:
        newest = sorted((e for e in self._entries.values() if e.names), key=lambda e: e.head.at, reverse=True)
        for entry in newest[NAMES_OF:]:
            entry.names = None

    # ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, notebook: Notebook | None, run: str = "", *, again: bool = False) -> Entry | None:
        """Return the run with the id `run`, or the newest that can be taken back (`again`: that was taken back last).

        Those of this kernel count, and those on disk that are of this notebook.
        """
        entries = [*self._entries.values(), *self._on_disk(notebook, run)]
        if run:
            return next((entry for entry in entries if entry.head.run == run), None)
        if again:
            return max((e for e in entries if e.head.undone), key=lambda e: e.head.undone_at, default=None)
        return max((e for e in entries if not _is_undone(e.head)), key=lambda e: e.head.at, default=None)

    def _on_disk(self, notebook: Notebook | None, run: str = "") -> list[Entry]:
        path = notebook.path if notebook is not None else ""
        return [
            Entry(head, file)
            for file, head in self._disk.heads()
            if head.run not in self._entries and (head.run == run if run else bool(path) and head.notebook == path)
        ]

    # ── taking back ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def turn(self, notebook: Notebook | None, run: str = "", *, again: bool = False) -> Turned:
        """Take a run back (`again`: do it again), the last one if none is named, and tell what was done and what not.

        Without a `notebook` the cells wait for an undo that has one; files and names are put back all the same.
        """
        async with self.lock:
            entry = self.find(notebook, run, again=again)
            if entry is None:
                return Turned(UNKNOWN if run else NOTHING_AGAIN if again else NOTHING)
            if again and not entry.head.undone:
                return Turned(f"This run was not taken back: {_name(entry.head)}.", entry.head)
            if not again and _is_undone(entry.head):
                return Turned(f"This run was taken back already: {_name(entry.head)}.", entry.head)
            return await self._turn(entry, notebook, again=again)

    async def _turn(self, entry: Entry, notebook: Notebook | None, *, again: bool) -> Turned:
        old = entry.kept or (self._disk.load(entry.path) if entry.path is not None else None)
        if old is None:
            self._entries.pop(entry.head.run, None)
            return Turned(f"The checkpoint of this run can't be read any more: {_name(entry.head)}.")
        todo = [part for part in PARTS if (part in entry.head.undone) == again]
        told, new = Told(), Checkpoint(entry.head, cannot=old.cannot)
        turned = set(todo)
        if "cells" not in todo or not await self._cells(old, new, notebook, told):
            new.cells, new.placed = old.cells, old.placed
            turned -= {"cells"} if old.cells else set()
        if "files" in todo:
            put_back_files(reversed(old.files.values()), new, told)
        else:
            new.files = old.files
        if "names" in todo:
            self._names(entry, told)
        undone = set(entry.head.undone) - turned if again else set(entry.head.undone) | turned
        parts = tuple(part for part in PARTS if part in undone)
        new.head = entry.head = replace(entry.head, undone=parts, undone_at=time.time() if parts else 0.0)
        self._keep(entry, new)
        return Turned(_report(entry.head, told, old.cannot, again=again), entry.head, did=bool(told.done))

    async def _cells(self, old: Checkpoint, new: Checkpoint, notebook: Notebook | None, told: Told) -> bool:
        """Put cells back; return whether that is over. What could not be reached waits for the next time."""
        if not old.cells:
            return True
        if notebook is None:
            told.kept.append(NO_PAGE)
            return False
        recorded = RecordedNotebook(notebook, new)
        try:
            await put_back_cells(recorded, old, told, same_kernel=old.head.kernel == self._kernel)
        except NotebookError as error:
            told.kept.append(f"the rest of the cells: {first_line(str(error), 160)}")
            new.cells, new.placed = {}, []
            return False
        return True

    def _names(self, entry: Entry, told: Told) -> None:
        if entry.names is None:
            if entry.head.kernel != self._kernel:
                told.kept.append(
                    "the variables: they were kept in the kernel's memory only, and it was restarted since"
                )
            elif entry.head.run in self._entries:
                told.kept.append(f"the variables: only those of the last {NAMES_OF} runs are kept")
            return
        entry.names, done = entry.names.put_back(self._namespace())
        if done.names:
            told.done.append(f"variables as before: {', '.join(done.names)}")
        if done.removed:
            told.done.append(f"variables gone again: {', '.join(done.removed)}")
        if done.kept:
            told.kept.append(f"variables that were set anew since: {', '.join(done.kept)}")

    def _keep(self, entry: Entry, checkpoint: Checkpoint) -> None:
        on_disk = entry.path is not None and self._disk.rewrite(entry.path, checkpoint)
        entry.kept = None if on_disk else checkpoint
        if entry.names is not None or not on_disk:
            self._entries[entry.head.run] = entry

    # ── forgetting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def forget(self, notebook: Notebook | None) -> str:
        """Let go of all checkpoints of this kernel and of this notebook; tell how much that was."""
        entries = [*self._entries.values(), *self._on_disk(notebook)]
        size = sum(self._disk.remove(entry.path) for entry in entries if entry.path is not None)
        objects = sum(len(entry.names.changed) for entry in entries if entry.names is not None)
        held = sum(entry.names.held() for entry in entries if entry.names is not None)
        self._entries.clear()
        if not entries:
            return "There was nothing to forget."
        runs = f"{len(entries)} run{'s' * (len(entries) > 1)}"
        return (
            f"Forgotten: {runs}, {_bytes(size)} on disk, {objects} variable{'s' * (objects != 1)} in memory "
            f"(about {_bytes(held)}). They can't be taken back any more."
        )


def _is_undone(head: Head) -> bool:
    return set(PARTS) <= set(head.undone)


def _name(head: Head) -> str:
    return f"“{head.prompt}”, of {clock(head.at)}"


def clock(at: float) -> str:
    """Return a time of day, with the date if it is not today's."""
    then, now = time.localtime(at), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def _report(head: Head, told: Told, cannot: dict[str, None], *, again: bool) -> str:
    lines = [f"{'Done again' if again else 'Taken back'}: {_name(head)}."]
    lines += _listed("", told.done) or ["  Nothing had to be changed."]
    lines += _listed("Left as it is:", told.kept)
    if not again:
        lines += _listed("Can't be taken back:", list(cannot))
    turn = "%agent undo takes it back again." if again else "%agent redo does it again."
    return "\n".join([*lines, turn] if told.done else lines)


def _listed(head: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    shown = [f"  {line}" for line in lines[:LINES]]
    if len(lines) > LINES:
        shown.append(f"  … and {len(lines) - LINES} more")
    return [head, *shown] if head else shown


def _bytes(size: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
