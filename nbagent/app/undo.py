"""`%agent undo`, `redo` and `forget`: takes back what a run did, and does it again.

Only what is still as the run left it is touched; all else stays and is named. An undo is itself noted in the same
way, so that redo is the undo of an undo. Cells and files are on disk and survive the kernel; variables are kept for the
last three runs, in memory. Read `Undo.take_back`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Container, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbagent.app.checkpointing import Checkpointing
from nbagent.app.restore import Told, restore_cells, restore_files
from nbagent.core.errors import NotebookError
from nbagent.core.ports import Kernel, Notebook
from nbagent.extend.bindings import Bindings
from nbagent.extend.checkpoint_files import RUNS, CheckpointFolder, Journal
from nbagent.extend.checkpointed import CheckpointedNotebook
from nbagent.extend.checkpoints import RUN_LIMIT, Checkpoint, Head
from nbagent.extend.seals import Seals
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
OTHER = "\nThe last run of a notebook that is not here any more was of {}: {}. %agent undo {} takes it back."
ELSEWHERE = "the cells: they are in another notebook ({}). Take this run back there"
NO_PAGE = "the cells: no page that shows the notebook has answered"
CUT_OFF = "the rest of the cells: {}"
DAMAGED = "The checkpoint of this run can't be read any more: {}."
IN_MEMORY_ONLY = (
    "The checkpoint of this run is kept only as long as this kernel lives: it can't be written to disk ({})."
)
NAMES_GONE = "they were only in the memory of the kernel that ran it, and this is another one"
NAMES_TOO_MANY = f"only those of the last {NAMES_OF} runs are kept"
NAMES_ELSEWHERE = "another kernel has taken this run back, or done it again, since"
IN_MEMORY = 4 * RUN_LIMIT
"""Bytes of checkpoints that are kept in memory, where the disk takes none."""


@dataclass(slots=True)
class Entry:
    """One run that can be taken back: its checkpoint is on disk at `path`, or `kept` in memory.

    `names`: what it did to the variables, or why that is not known. `document`: what the run was in, while its kernel lives.
    """

    head: Head
    path: Path
    kept: Checkpoint | None = None
    names: Bindings | str = NAMES_GONE
    document: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an undo or redo gave: what is said, the run's head as it is now, and whether anything was done."""

    text: str
    head: Head | None = None
    did: bool = False


class Undo:
    """The checkpoints of one kernel, and those that are on disk in its folder."""

    def __init__(
        self,
        folder: Path,
        namespace: Callable[[], dict[str, Any]],
        running: Callable[[], bool] = lambda: False,
        seals: Seals | None = None,
        under_way: Callable[[], Container[str]] = tuple,
    ) -> None:
        self.lock = asyncio.Lock()
        """Held while something is taken back; a run waits for it."""
        self._disk = CheckpointFolder(folder, seals)
        self._root = folder
        self._namespace = namespace
        self._running, self._under_way = running, under_way
        self._own: dict[str, str | None] = {}
        self._kernel = secrets.token_hex(4)
        self._entries: dict[str, Entry] = {}

    # ── a run ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def checkpointing(
        self,
        prompt: str,
        notebook: Notebook | None,
        kernel: Kernel,
        document: str = "",
        *,
        run: str = "",
        by_call: bool = False,
    ) -> Generator[Checkpointing]:
        """Keep what undoes a run for as long as this is entered, however it ends; nothing is kept of one that changed nothing.

        `document` is what its notebook is known by while the kernel lives (`place.document`); `run` is its id ("": a new one).
        `by_call`: only what its calls do to variables is the run's, for the person's cells run between them.
        """
        path, own = (notebook.path, notebook.own_cell) if notebook is not None else ("", None)
        run = run or new_run_id()
        checkpoint = Checkpoint(Head(run, time.time(), first_line(prompt, 60), path, own, self._kernel))
        self._own[run] = own
        journal = self._disk.journal(checkpoint)
        checkpointing = Checkpointing(checkpoint, self._root, notebook, kernel, by_call=by_call)
        try:
            yield checkpointing
        finally:
            self._finish(checkpointing, journal, document)

    def _finish(self, checkpointing: Checkpointing, journal: Journal, document: str) -> None:
        checkpoint, names = checkpointing.checkpoint, checkpointing.end()
        if checkpoint.is_empty:
            self._disk.remove(journal.path)  # what it touched it has restored itself
        problem = "" if checkpoint.is_empty else journal.end()
        checkpointing.problem = problem and IN_MEMORY_ONLY.format(problem)
        if names.changed or not checkpoint.is_empty:
            kept = checkpoint if problem or checkpoint.is_empty else None
            self._entries[checkpoint.head.run] = Entry(checkpoint.head, journal.path, kept, names, document)
            self._let_go()
            self._disk.prune()

    def _let_go(self) -> None:
        held = 0
        newest = sorted(self._entries.values(), key=lambda e: e.head.at, reverse=True)
        for count, entry in enumerate(newest):
            held += entry.kept.size if entry.kept is not None else 0
            if count >= RUNS or (entry.kept is not None and held > IN_MEMORY):
                del self._entries[entry.head.run]
        for entry in [entry for entry in newest if isinstance(entry.names, Bindings)][NAMES_OF:]:
            entry.names = NAMES_TOO_MANY

    # ── finding ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def has_run(self, run: str, cell: str) -> bool:
        """Whether the run `run` was this person's and in the cell `cell`: a link in an output may say what it likes."""
        if run in self._own:
            return self._own[run] == cell
        return any(head.run == run and head.own_cell == cell for _, head in self._disk.heads())

    def _find(self, notebook: Notebook | None, run: str, document: str, *, again: bool) -> Entry | None:
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
            if head.run not in self._entries
            and head.run not in self._under_way()
            and (head.run == run if run else bool(path) and head.notebook == path)
        ]

    def _catch_up(self) -> None:
        """See what another kernel of the same folder has taken back, or done again, of this kernel's runs."""
        heads = dict(self._disk.heads())
        for entry in self._entries.values():
            head = heads.get(entry.path, entry.head)
            if entry.kept is None and head.undone_at != entry.head.undone_at:
                entry.head, entry.names = head, NAMES_ELSEWHERE

    # ── taking back ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def take_back(self, notebook: Notebook | None, run: str = "", *, document: str = "") -> Outcome:
        """Take a run back, the last one if none is named, and tell what was done and what not.

        Without a `notebook`, or in another one than the run's, the cells wait for an undo there; files and names are
        restored all the same. `document` is what the notebook is known by while the kernel lives.
        """
        async with self.lock:
            return await self._do(notebook, run, document, again=False)

    async def do_again(self, notebook: Notebook | None, run: str = "", *, document: str = "") -> Outcome:
        """Do again what was taken back last, or of the run that is named: as `take_back`."""
        async with self.lock:
            return await self._do(notebook, run, document, again=True)

    async def _do(self, notebook: Notebook | None, run: str, document: str, *, again: bool) -> Outcome:
        if self._running():  # it may have begun while a page was looked for
            return Outcome(RUNNING)
        self._catch_up()
        if not run and not document and (runs := self._of_several(again=again)):
            return Outcome(WHICH.format(", ".join(f"{head.run} ({head.notebook or '?'})" for head in runs)))
        entry = self._find(notebook, run, document, again=again)
        if entry is None:
            return Outcome(UNKNOWN if run else NOTHING_AGAIN if again else NOTHING + self._of_another())
        if again and not entry.head.undone:
            return Outcome(f"This run was not taken back: {_name(entry.head)}.", entry.head)
        if not again and _is_undone(entry.head):
            return Outcome(f"This run was taken back already: {_name(entry.head)}.", entry.head)
        old = entry.kept or await asyncio.to_thread(self._disk.load, entry.path)
        if old is None:
            self._entries.pop(entry.head.run, None)
            return Outcome(DAMAGED.format(_name(entry.head)))
        if document and entry.document and entry.document != document:
            return await self._restore(entry, old, ELSEWHERE.format(entry.head.notebook), again=again)
        return await self._restore(entry, old, NO_PAGE if notebook is None else notebook, again=again)

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

    async def _restore(self, entry: Entry, old: Checkpoint, place: Notebook | str, *, again: bool) -> Outcome:
        """Restore what is in `old`, as far as it is to be; `place` is the notebook, or why its cells can't be reached."""
        todo = {part for part in PARTS if (part in entry.head.undone) == again}
        done = set(todo)
        told, new = Told(), Checkpoint(entry.head, cannot=old.cannot)
        if old.cells and not ("cells" in todo and await self._cells(old, new, place, told)):
            new.cells, new.placed = old.cells, old.placed  # they wait for the next time
            done.discard("cells")
        if old.files and not ("files" in todo and await self._files(old, new, told)):
            new.files = old.files
            done.discard("files")
        if "names" in todo:
            self._names(entry, told)
        undone = set(entry.head.undone) - done if again else set(entry.head.undone) | done
        parts = tuple(part for part in PARTS if part in undone)
        new.head = entry.head = replace(entry.head, undone=parts, undone_at=time.time() if parts else 0.0)
        problem = self._keep(entry, new)
        lines = _report(entry.head, told, old.cannot, again=again)
        if todo - done:
            lines.append(f"%agent {'redo' if again else 'undo'} tries again what could not be done.")
        if problem:
            lines.append(IN_MEMORY_ONLY.format(problem))
        return Outcome("\n".join(lines), entry.head, did=bool(told.done))

    async def _cells(self, old: Checkpoint, new: Checkpoint, place: Notebook | str, told: Told) -> bool:
        """Restore cells; return whether that is over."""
        if isinstance(place, str):
            told.kept.append(place)
            return False
        try:
            same_kernel = old.head.kernel == self._kernel
            await restore_cells(CheckpointedNotebook(place, new), old, told, same_kernel=same_kernel)
        except NotebookError as error:
            told.kept.append(CUT_OFF.format(first_line(str(error), 160)))
            return False
        return True

    async def _files(self, old: Checkpoint, new: Checkpoint, told: Told) -> bool:
        """Restore files, on another thread: it waits for disks and asks servers; return whether that is over."""
        within = None if old.head.kernel == self._kernel else self._root
        changes = list(reversed(old.files.values()))
        return await asyncio.to_thread(restore_files, changes, new, told, within=within)

    def _names(self, entry: Entry, told: Told) -> None:
        if isinstance(entry.names, str):
            told.kept.append(f"the variables: {entry.names}")
            return
        entry.names, done = entry.names.restore(self._namespace())
        if done.names:
            told.done.append(f"restored the variables {', '.join(done.names)}")
        if done.removed:
            told.done.append(f"removed the variables {', '.join(done.removed)}")
        if done.kept:
            told.kept.append(f"variables that were set anew since: {', '.join(done.kept)}")

    def _keep(self, entry: Entry, checkpoint: Checkpoint) -> str:
        """Keep what the way back needs; return why that is not on disk."""
        only_names = checkpoint.is_empty and not entry.path.exists()
        problem = "" if only_names else self._disk.rewrite(entry.path, checkpoint)
        entry.kept = checkpoint if only_names or problem else None
        if entry.kept is not None or isinstance(entry.names, Bindings):
            self._entries[entry.head.run] = entry
        return problem

    # ── forgetting ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def forget(self, notebook: Notebook | None, *, document: str = "") -> str:
        """Let go of all checkpoints of this notebook (where none is known, of this kernel); tell how much that was."""
        async with self.lock:
            if self._running():
                return RUNNING
            mine = [e for e in self._entries.values() if not (document and e.document) or e.document == document]
            entries = [*mine, *self._on_disk(notebook)]
            for entry in mine:
                del self._entries[entry.head.run]
        if not entries:
            return "There was nothing to forget."
        size = sum(self._disk.remove(entry.path) for entry in entries)
        names = [entry.names for entry in entries if isinstance(entry.names, Bindings)]
        objects = sum(len(bindings.changed) for bindings in names)
        held = sum(bindings.held() for bindings in names)
        runs = f"{len(entries)} run{'s' * (len(entries) > 1)}"
        return (
            f"Forgotten: {runs}, {_bytes(size)} on disk, {objects} variable{'s' * (objects != 1)} in memory "
            f"(about {_bytes(held)}). They can't be taken back any more."
        )


def new_run_id() -> str:
    """Return an id for a new run."""
    return f"run-{secrets.token_hex(4)}"


def _is_undone(head: Head) -> bool:
    return set(PARTS) <= set(head.undone)


def _name(head: Head) -> str:
    return f"“{head.prompt}”, of {clock(head.at)}"


def clock(at: float) -> str:
    """Return a time of day, with the date if it is not today's."""
    then, now = time.localtime(at), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def _report(head: Head, told: Told, cannot: Iterable[str], *, again: bool) -> list[str]:
    lines = [f"{'Done again' if again else 'Taken back'}: {_name(head)}."]
    lines += _listed("", told.done) or ["  Nothing had to be changed."]
    lines += _listed("Left as it is:", told.kept)
    if not again:
        lines += _listed("Can't be taken back:", list(cannot))
    if told.done:
        lines.append("%agent undo takes it back again." if again else "%agent redo does it again.")
    return lines


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
