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

from nbagent.app.checkpointing import Checkpointing
from nbagent.app.restore import Told, restore_cells, restore_files
from nbagent.core.errors import NotebookError
from nbagent.core.ports import Kernel, Notebook
from nbagent.extend.bindings import Bindings
from nbagent.extend.checkpoint_files import RUNS, CheckpointFolder
from nbagent.extend.checkpointed import CheckpointedNotebook
from nbagent.extend.checkpoints import RUN_LIMIT, Checkpoint, Head
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
RUNNING = "An agent is running. Stop it first, or wait for it: then its run can be taken back."
WHICH = "No page shows a notebook here, and runs of several notebooks can be taken back. Name one: {}."
ELSEWHERE = "the cells: they are in another notebook ({}). Take this run back there"
OTHER = "\nThe last run of a notebook that is not here any more was of {}: {}. %agent undo {} takes it back."
IN_MEMORY = 4 * RUN_LIMIT
"""Bytes of checkpoints that are kept in memory, where the disk takes none."""
NO_PAGE = "the cells: no page that shows the notebook has answered"


@dataclass(slots=True)
class Entry:
    """One run that can be taken back. `kept` where it is not on disk; `names` None: not kept (any more)."""

    head: Head
    path: Path | None = None
    kept: Checkpoint | None = None
    names: Bindings | None = None
    document: str = ""
    """The document that the run was in, while its kernel lives."""


@dataclass(frozen=True, slots=True)
class Turned:
    """What an undo or redo gave: the report, the run's head as it is now, and whether anything was done."""

    text: str
    head: Head | None = None
    did: bool = False


class Undo:
    """The checkpoints of one kernel, and those that are on disk in its folder."""

    def __init__(
        self, folder: Path, namespace: Callable[[], dict[str, Any]], running: Callable[[], bool] = lambda: False
    ) -> None:
        self.lock = asyncio.Lock()
        """Held while something is taken back; a run waits for it."""
        self._disk = CheckpointFolder(folder)
        self._root = folder
        self._namespace = namespace
        self._running = running
        self._own: dict[str, str | None] = {}
        self._kernel = secrets.token_hex(4)
        self._entries: dict[str, Entry] = {}

    # ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def checkpointing(
        self, prompt: str, notebook: Notebook | None, kernel: Kernel, document: str = ""
    ) -> Generator[Checkpointing]:
        """Record a run for as long as this is entered, however it ends; nothing is kept of one that changed nothing.

        `document` is what its notebook is known by while the kernel lives (`place.document`).
        """
        path, own = (notebook.path, notebook.own_cell) if notebook is not None else ("", None)
        run = f"run-{secrets.token_hex(4)}"
        checkpoint = Checkpoint(Head(run, time.time(), first_line(prompt, 60), path, own, self._kernel))
        self._own[run] = own
        file, store = self._disk.journal(checkpoint)
        checkpointing = Checkpointing(checkpoint, self._root, notebook, kernel)
        try:
            yield checkpointing
        finally:
            self._finish(checkpoint, checkpointing.end(), file, store, document)

    def _finish(self, checkpoint: Checkpoint, names: Bindings, path: Path, store: JsonlStore, document: str) -> None:
        if checkpoint.is_empty and not names.changed:
            self._disk.remove(path)  # what it touched it has put back itself
            return
        on_disk = path.exists() and not store.problem
        entry = Entry(checkpoint.head, path if on_disk else None, None if on_disk else checkpoint, names, document)
        self._entries[entry.head.run] = entry
        self._let_go()
        self._disk.prune()

    def _let_go(self) -> None:
        held = 0
        for count, entry in enumerate(sorted(self._entries.values(), key=lambda e: e.head.at, reverse=True)):
            held += entry.kept.size if entry.kept is not None else 0
            if count >= RUNS or held > IN_MEMORY:
                del self._entries[entry.head.run]
        newest = sorted((e for e in self._entries.values() if e.names), key=lambda e: e.head.at, reverse=True)
        for entry in newest[NAMES_OF:]:
            entry.names = None

    # ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def has_run(self, run: str, cell: str) -> bool:
        """Whether the run `run` was this person's and in the cell `cell`: a link in an output may say what it likes."""
        if run in self._own:
            return self._own[run] == cell
        return any(head.run == run and head.own_cell == cell for _, head in self._disk.heads())

    def find(
        self, notebook: Notebook | None, run: str = "", *, again: bool = False, document: str = ""
    ) -> Entry | None:
        """Return the run with the id `run`, or the newest that can be taken back (`again`: that was taken back last).

        Of this kernel's runs those in `document` count (all where none is known), and of those on disk this notebook's.
        """
        entries = [*self._entries.values(), *self._on_disk(notebook, run)]
        if run:
            return next((entry for entry in entries if entry.head.run == run), None)
        entries = [e for e in entries if not (document and e.document) or e.document == document]
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

    async def turn(
        self, notebook: Notebook | None, run: str = "", *, again: bool = False, document: str = ""
    ) -> Turned:
        """Take a run back (`again`: do it again), the last one if none is named, and tell what was done and what not.

        Without a `notebook`, or in another one than the run's, the cells wait for an undo there; files and names are put
        back all the same. `document` is what the notebook is known by while the kernel lives.
        """
        async with self.lock:
            if self._running():  # it may have begun while a page was looked for
                return Turned(RUNNING)
            if not run and not document and (runs := self._of_several(again=again)):
                return Turned(WHICH.format(", ".join(f"{head.run} ({head.notebook or '?'})" for head in runs)))
            entry = self.find(notebook, run, again=again, document=document)
            if entry is None:
                return Turned(UNKNOWN if run else NOTHING_AGAIN if again else NOTHING + self._of_another())
            if again and not entry.head.undone:
                return Turned(f"This run was not taken back: {_name(entry.head)}.", entry.head)
            if not again and _is_undone(entry.head):
                return Turned(f"This run was taken back already: {_name(entry.head)}.", entry.head)
            elsewhere = bool(document and entry.document and entry.document != document)
            return await self._turn(entry, notebook, again=again, elsewhere=elsewhere)

    def _of_several(self, *, again: bool) -> list[Head]:
        """Return the newest run of each document, if there are several to choose from."""
        wanted = (e for e in self._entries.values() if (e.head.undone if again else not _is_undone(e.head)))
        newest = {e.document: e.head for e in sorted(wanted, key=lambda e: e.head.at)}
        return list(newest.values()) if len(newest) > 1 else []

    def _of_another(self) -> str:
        """Say which run was the last of a notebook that has another name by now, or is gone."""
        heads = [head for _, head in self._disk.heads() if head.run not in self._entries and not _is_undone(head)]
        lost = [head for head in heads if head.notebook and not self._is_there(head.notebook)]
        newest = max(lost, key=lambda head: head.at, default=None)
        return "" if newest is None else OTHER.format(newest.notebook, _name(newest), newest.run)

    def _is_there(self, notebook: str) -> bool:
        """Whether a notebook lies where it was: its path is relative to the server's folder, which is not known here."""
        return any((place / notebook).exists() for place in (self._root, *self._root.parents))

    async def _turn(self, entry: Entry, notebook: Notebook | None, *, again: bool, elsewhere: bool) -> Turned:
        old = entry.kept or (self._disk.load(entry.path) if entry.path is not None else None)
        if old is None:
            self._entries.pop(entry.head.run, None)
            return Turned(f"The checkpoint of this run can't be read any more: {_name(entry.head)}.")
        todo = [part for part in PARTS if (part in entry.head.undone) == again]
        told, new = Told(), Checkpoint(entry.head, cannot=old.cannot)
        if elsewhere and old.cells:
            notebook = None
            told.kept.append(ELSEWHERE.format(entry.head.notebook))
        turned = set(todo)
        if "cells" not in todo or not await self._cells(old, new, notebook, told):
            new.cells, new.placed = old.cells, old.placed
            turned -= {"cells"} if old.cells else set()
        if "files" in todo:
            within = None if old.head.kernel == self._kernel else self._root
            restore_files(reversed(old.files.values()), new, told, within=within)
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
            if not told.kept:
                told.kept.append(NO_PAGE)
            return False
        recorded = CheckpointedNotebook(notebook, new)
        try:
            await restore_cells(recorded, old, told, same_kernel=old.head.kernel == self._kernel)
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
        entry.names, done = entry.names.restore(self._namespace())
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

    def forget(self, notebook: Notebook | None, document: str = "") -> str:
        """Let go of all checkpoints of this notebook (where none is known, of this kernel); tell how much that was."""
        mine = [e for e in self._entries.values() if not (document and e.document) or e.document == document]
        entries = [*mine, *self._on_disk(notebook)]
        size = sum(self._disk.remove(entry.path) for entry in entries if entry.path is not None)
        objects = sum(len(entry.names.changed) for entry in entries if entry.names is not None)
        held = sum(entry.names.held() for entry in entries if entry.names is not None)
        for entry in mine:
            del self._entries[entry.head.run]
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
