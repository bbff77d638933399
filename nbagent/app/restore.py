"""Restores what a checkpoint holds: cells and files that are still as the run left them, and nothing of the person's.

Give it a notebook that notes what is done to it (extend/checkpointed.py), and what it does can be taken back in its
turn. Must not know when or why. Read `restore_cells`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.files import content_hash
from nbagent.core.ports import Anchor, Cell, CellType, Notebook
from nbagent.extend.checkpointed import has_moved
from nbagent.extend.checkpoints import FILE_LIMIT, Around, CellChange, CellState, Checkpoint, FileChange
from nbagent.tools import paths
from nbagent.tools.cells import first_line
from nbagent.tools.servers import Server, running_servers, who_has_open

_Act = Callable[[CellChange], Awaitable[None]]


@dataclass(slots=True)
class Told:
    """What is told of it, a line a thing: `done`, and `kept` for what was left as it is, with the reason."""

    done: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])


async def restore_cells(notebook: Notebook, checkpoint: Checkpoint, told: Told, *, same_kernel: bool) -> None:
    """Restore the cells of `checkpoint`, as far as they are as they were left.

    `same_kernel`: the run was this kernel's, so that an execution count means what it meant then. Raises NotebookError
    where the notebook can't be reached; a cell that can't be restored is told.
    """
    work = _Cells(notebook, checkpoint, told, same_kernel=same_kernel)
    await work.look()
    for change in reversed(list(checkpoint.cells.values())):
        if change.before is None:
            await work.guarded(change, work.remove)
    for cell_id in reversed(checkpoint.placed):
        change = checkpoint.cells.get(cell_id)
        if change is not None and change.before is not None:
            await work.guarded(change, work.bring_back if change.after is None else work.move_back)
        work.pending.discard(cell_id)
    for change in checkpoint.cells.values():
        if change.before is not None and change.after is not None:
            await work.guarded(change, work.restore)


class _Cells:
    """One going back. `pending` are cells whose place is restored later: they say nothing of the places of others."""

    def __init__(self, notebook: Notebook, checkpoint: Checkpoint, told: Told, *, same_kernel: bool) -> None:
        self.notebook = notebook
        self.told = told
        self.same_kernel = same_kernel
        self.pending = set(checkpoint.placed)
        self._restless = checkpoint.restless()
        self._made = {change.id for change in checkpoint.cells.values() if change.made}
        self._cells: dict[str, Cell] = {}

    async def look(self) -> None:
        """See what is there."""
        self._cells = {cell.id: cell for cell in await self.notebook.cells()}

    async def guarded(self, change: CellChange, act: _Act) -> None:
        """Do one thing to one cell; if it is refused (the person was quicker) that is told, and the rest goes on."""
        try:
            await act(change)
        except NotebookError as error:
            await self.look()  # raises where nobody answers any more
            self.told.kept.append(f"{self._name(change)} could not be restored: {first_line(str(error), 160)}")

    async def remove(self, change: CellChange) -> None:
        """Remove a cell that the run made."""
        now, left = self._cells.get(change.id), change.after
        if now is None or left is None:
            return
        if not left.same_text(now):
            self.told.kept.append(f"{label(now)} stays: it was edited since")
            return
        if change.id == self.notebook.own_cell:
            self.told.kept.append(f"{label(now)} stays: it is the one that runs")
            return
        await self.notebook.delete(change.id, left.hash)
        del self._cells[change.id]
        self.told.done.append(f"removed {label(now)}")

    async def bring_back(self, change: CellChange) -> None:
        """Insert a cell that the run deleted, at its old place, under its old id."""
        before = change.before
        if before is None or change.id in self._cells:
            return
        anchor = self._anchor(list(self._cells), before.around)
        kind: CellType = "code" if before.type == "code" else "markdown" if before.type == "markdown" else "raw"
        metadata = {"trusted": None, **before.metadata}  # a page trusts a new cell: this one as far as before
        cell = await self.notebook.insert(anchor, kind, before.source, metadata=metadata, cell_id=change.id)
        if kind == "code" and (before.outputs or before.number is not None):
            cell = await self.notebook.set_outputs(change.id, before.outputs or (), before.number)
        await self.look()
        self.told.done.append(f"restored {label(cell)}")
        if before.outputs is None:
            self.told.kept.append(f"{label(cell)} has no output: the old one was too large to keep")
        if "](attachment:" in before.source:
            self.told.kept.append(f"{label(cell)} came back without the images that were attached to it")

    async def move_back(self, change: CellChange) -> None:
        """Move a cell to where it stood."""
        now, before, left = self._cells.get(change.id), change.before, change.after
        if now is None or before is None or before.around is None or left is None:
            return  # gone: `restore` says so
        ids = list(self._cells)
        others = self._restless - {change.id}
        if left.around is not None and has_moved(ids, change.id, left.around, others):
            self.told.kept.append(f"{label(now)} stays where it is: it was moved since")
            return
        rest = [cell_id for cell_id in ids if cell_id != change.id]
        anchor = self._anchor(rest, before.around)
        place = rest.index(anchor.id) + (anchor.where == "after") if rest else 0
        if ids.index(change.id) == place:
            return
        await self.notebook.move(change.id, anchor)
        await self.look()
        self.told.done.append(f"moved {label(now)} back to its place")

    async def restore(self, change: CellChange) -> None:
        """Restore text, output and metadata of a cell that was there before."""
        now, before, left = self._cells.get(change.id), change.before, change.after
        if before is None or left is None:
            return
        if now is None:
            self.told.kept.append(f"cell “{first_line(before.source, 40)}” was deleted since and stays deleted")
            return
        said: list[str] = []
        if change.wrote and now.source != before.source:
            if not left.same_text(now):
                self.told.kept.append(f"{label(now)} keeps its text: it was edited since")
                return
            await self.notebook.edit(change.id, before.source, left.hash)
            said.append("text")
        if change.ran and now.type == "code" and await self._restore_outputs(change, before):
            said.append("output")
        await self._restore_metadata(change, before)
        if said:
            between = " (as you had left it during the run)" if change.theirs else ""
            self.told.done.append(f"restored the {' and '.join(said)} of {_before_label(before)}{between}")

    async def _restore_outputs(self, change: CellChange, before: CellState) -> bool:
        now, left = await self.notebook.read(change.id), change.after
        if left is None or before.footprint.same_run(now, same_kernel=False):
            return False
        if not left.same_run(now, same_kernel=self.same_kernel):
            self.told.kept.append(f"{label(now)} keeps its output: it ran since")
            return False
        if before.outputs is None:
            self.told.kept.append(f"{label(now)} keeps its output: the old one was too large to keep")
            return False
        if before.number is not None and change.wrote and now.source == before.source:
            # text and output belong together again: JupyterLab takes its dot for “edited since” away when a cell runs
            await (await self.notebook.begin_run(change.id)).end(None)
        await self.notebook.set_outputs(change.id, before.outputs, before.number)
        return True

    async def _restore_metadata(self, change: CellChange, before: CellState) -> None:
        now = self._cells[change.id].metadata
        old = {key: before.metadata.get(key) for key in change.keys}
        if any(now.get(key) != value for key, value in old.items()):
            await self.notebook.set_metadata(change.id, old)

    def _anchor(self, ids: Sequence[str], old: Around | None) -> Anchor:
        """Return where among `ids` a cell goes that stood between `old`."""
        if not ids:
            return Anchor("")
        settled: Around = _without(old or ((), ()), self.pending | self._made)
        if not {*settled[0], *settled[1]} & set(ids):
            own = self.notebook.own_cell
            return Anchor(own if own is not None and own in ids else ids[-1])
        place = best_place(ids, settled)
        return Anchor(ids[place - 1]) if place else Anchor(ids[0], "before")

    def _name(self, change: CellChange) -> str:
        now = self._cells.get(change.id)
        return label(now) if now is not None else f"cell {change.id}"


def _without(old: Around, ids: set[str]) -> Around:
    before, after = (tuple(cell_id for cell_id in side if cell_id not in ids) for side in old)
    return before, after


def best_place(ids: Sequence[str], old: Around) -> int:
    """Return the place among `ids` (0: before all) with the fewest of a cell's old neighbours on the wrong side.

    Of equal places the first one that touches an old neighbour is taken, so that cells which came since go below.
    """
    before, after = set(old[0]), set(old[1])
    wrong = sum(cell_id in before for cell_id in ids)
    best: tuple[int, int, int] | None = None
    for place in range(len(ids) + 1):
        if place:
            wrong += (ids[place - 1] in after) - (ids[place - 1] in before)
        touches = (place > 0 and ids[place - 1] in before) + (place < len(ids) and ids[place] in after)
        rank = (wrong, -touches, place)
        best = rank if best is None or rank < best else best
    return best[2] if best is not None else 0


def label(cell: Cell) -> str:
    """Return how a person knows a cell: its number, if it has run, and its first line."""
    number = f"In[{cell.number}]" if cell.number is not None else "cell"
    return f"{number} “{first_line(cell.source, 40)}”"


def _before_label(before: CellState) -> str:
    return label(Cell("", before.type, before.source, 0, before.number))


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def restore_files(
    changes: Iterable[FileChange], reverse: Checkpoint, told: Told, *, within: Path | None = None
) -> bool:
    """Restore files that are as they were left; what that changes goes into `reverse`.

    Returns whether that is over: False where the disk did not let it, or a server has a notebook open. `within`: the only
    folder in which anything is written, and nothing in it that can make something run. None: the person was asked for each
    of these files in this kernel.
    """
    placed = [change if within is None else _placed(change, within, told) for change in changes]
    wanted = [change for change in placed if change is not None]
    servers = running_servers() if any(_is_notebook(Path(change.path)) for change in wanted) else []
    over = [_restore_file(change, reverse, told, servers) for change in wanted]
    return all(over)


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb"


def _placed(change: FileChange, within: Path, told: Told) -> FileChange | None:
    """Return the change under the name that its path really has; None, and told, where nothing may be written."""
    try:
        place = paths.locate(within, change.path)
    except ToolError as error:
        told.kept.append(f"{change.path} stays as it is: {first_line(str(error), 160)}")
        return None
    if not place.inside or place.guarded:
        where = "is a protected file" if place.inside else "lies outside of the working folder"
        told.kept.append(f"{place.path} stays as it is: it {where}, and another kernel ran this")
        return None
    return replace(change, shown=place.shown)


def _restore_file(change: FileChange, reverse: Checkpoint, told: Told, servers: Sequence[Server]) -> bool:
    """Restore one file, unless that is not to be; return False where it could not be done."""
    path = Path(change.path)
    try:
        now = read_if_there(path)
        if content_hash(now) == content_hash(change.before) and not change.lost:
            return True
        if content_hash(now) != change.after or change.lost:
            why = change.lost or f"it was {'deleted' if now is None else 'changed'} since"
            told.kept.append(f"{change.shown} stays as it is: {why}")
            return True
        made = missing_folders(path) if change.before is not None else ()
        _write(path, change, now, servers)
    except (OSError, ToolError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        told.kept.append(f"{change.shown} could not be restored: {first_line(why, 160)}")
        return False
    reverse.set_file(FileChange(change.path, change.shown, now, content_hash(change.before), made=made))
    told.done.append(f"removed {change.shown}" if change.before is None else f"restored {change.shown}")
    return True


def _write(path: Path, change: FileChange, now: bytes | None, servers: Sequence[Server]) -> None:
    if _is_notebook(path) and (holder := who_has_open(path, servers)):
        raise ToolError(f"it is {holder}")
    if change.before is not None:
        paths.replace_file(path, change.before, was=content_hash(now))
        return
    path.unlink()
    for folder in [folder for folder in reversed(change.made) if Path(folder) in path.parents]:
        with contextlib.suppress(OSError):  # something else is in it by now
            Path(folder).rmdir()


def read_if_there(path: Path) -> bytes | None:
    """Return the bytes of a file, None if there is none; raise OSError or ToolError if it can't be read or kept."""
    try:
        return paths.read_file(path, FILE_LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None


def missing_folders(path: Path) -> tuple[str, ...]:
    """Return the folders that writing `path` would make, outermost first."""
    return tuple(str(folder) for folder in reversed(path.parents) if not os.path.lexists(folder))
