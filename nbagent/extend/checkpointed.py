"""A notebook that notes in a checkpoint what is done to it: a wrapper of the port, for undo.

What a cell was is read right before it is first touched, and noted before the change is made, so that a run that is
interrupted in the middle of one can be taken back too. A change that the notebook refused is forgotten again; one whose
answer was lost stays noted, for it may have been made. Must not know what the changes are for. Read `CheckpointedNotebook.edit`.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nbagent.core.errors import NotebookError, Unsure
from nbagent.core.messages import Json, clean
from nbagent.core.ports import Anchor, Cell, CellSink, CellType, Notebook, Output, source_hash
from nbagent.core.wrapped import WrappedNotebook
from nbagent.extend.checkpoints import (
    OUTPUT_LIMIT,
    Around,
    CellChange,
    CellState,
    Checkpoint,
    Footprint,
    around,
    outputs_hash,
)


class CheckpointedNotebook(WrappedNotebook):
    """The notebook port over `notebook`; what is done through it is noted in `checkpoint`.

    Where edits are only proposed nothing is noted, for nothing changes. The person may change cells between two changes of the run: what they did then is theirs, and stays at an undo.
    """

    def __init__(self, notebook: Notebook, checkpoint: Checkpoint) -> None:
        super().__init__(notebook)
        self._checkpoint = checkpoint

    async def insert(
        self,
        anchor: Anchor,
        cell_type: CellType,
        source: str,
        *,
        metadata: Json | None = None,
        cell_id: str | None = None,
    ) -> Cell:
        """Insert a cell; its id is chosen here, so that it is known even if the answer never comes."""
        if self.proposes_only:
            return await self._notebook.insert(anchor, cell_type, source, metadata=metadata, cell_id=cell_id)
        new = cell_id or uuid.uuid4().hex[:8]
        with self._unless_refused(new):
            gone = self._checkpoint.cells.get(new)
            empty = Footprint(cell_type, source_hash(source), None, outputs_hash(()))
            if gone is not None and gone.before is not None:  # deleted and restored by the same hand
                self._set(replace(gone, after=empty, moved=True))
            else:
                self._set(CellChange(new, None, empty, made=True))
            cell = await self._notebook.insert(anchor, cell_type, source, metadata=metadata, cell_id=new)
        self._wrote(cell, source)
        return cell

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source if its hash is still `expected_hash`."""
        if self.proposes_only:
            return await self._notebook.edit(cell_id, source, expected_hash, metadata=metadata)
        with self._unless_refused(cell_id):
            await self._before(cell_id, expected_hash)
            self._left(cell_id, keys=tuple(metadata or ()), hash=source_hash(source))
            cell = await self._notebook.edit(cell_id, source, expected_hash, metadata=metadata)
        self._wrote(cell, source)
        return cell

    async def delete(self, cell_id: str, expected_hash: str) -> None:
        """Delete a cell if its hash is still `expected_hash`."""
        if self.proposes_only:
            return await self._notebook.delete(cell_id, expected_hash)
        with self._unless_refused(cell_id):
            change = await self._before(cell_id)
            self._stood(change, [cell.id for cell in await self._notebook.cells()])
            self._set(replace(change, after=None))
            await self._notebook.delete(cell_id, expected_hash)
        if change.before is None:  # made and deleted by the same run
            self._checkpoint.set_cell(None, cell_id)
        return None

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:
        """Move a cell to `anchor`."""
        if self.proposes_only:
            return await self._notebook.move(cell_id, anchor)
        with self._unless_refused(cell_id):
            change = await self._before(cell_id)
            self._stood(change, [cell.id for cell in await self._notebook.cells()])
            self._set(replace(change, moved=True))
            cell = await self._notebook.move(cell_id, anchor)
        ids = [cell.id for cell in await self._notebook.cells()]
        if cell_id in ids:  # else the person was quicker
            self._left(cell_id, around=around(ids, cell_id))
        return cell

    async def begin_run(self, cell_id: str) -> CellSink:
        """Mark a cell as running; what its run leaves is noted when it ends."""
        with self._unless_refused(cell_id):
            change = self._checkpoint.cells.get(cell_id)
            if change is None or change.before is not None:  # a cell of the run's own goes as a whole
                await self._before(cell_id)
            self._left(cell_id, number=None, outputs=None)
            sink = await self._notebook.begin_run(cell_id)
        return _CheckpointedSink(sink, self, cell_id)

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace the outputs and the execution count of a code cell."""
        with self._unless_refused(cell_id):
            await self._before(cell_id)
            self._left(cell_id, number=number, outputs=outputs_hash(outputs))
            cell = await self._notebook.set_outputs(cell_id, outputs, number)
        self._left(cell_id, number=cell.number, outputs=outputs_hash(cell.outputs))
        return cell

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:
        """Merge `metadata` into a cell's."""
        with self._unless_refused(cell_id):
            if cell_id not in self._checkpoint.cells:
                await self._before(cell_id)
            self._left(cell_id, keys=tuple(metadata))
            return await self._notebook.set_metadata(cell_id, metadata)

    def ended(self, cell_id: str, number: int | None, outputs: Sequence[Output]) -> None:
        """Note what a cell's run left."""
        self._left(cell_id, number=number, outputs=outputs_hash(outputs))

    # ── what was, and what is left ──────────────────────────────────────────────────────────────────────────────────

    async def _before(self, cell_id: str, known_hash: str = "") -> CellChange:
        """Return the change of a cell that is about to be touched, with all that the person did to it until now.

        A cell that is still what the run left, as `known_hash` says (the notebook checks it), is not read again.
        """
        change = self._checkpoint.cells.get(cell_id)
        if change is not None and change.after is not None and change.after.hash == known_hash:
            return change
        now = await self._notebook.read(cell_id)
        state = CellState.of(now, min(OUTPUT_LIMIT, self._checkpoint.room()))
        if change is None or change.after is None:  # new to the run, or brought back by the person
            self._checkpoint.use(state.size())
            change = CellChange(cell_id, state, Footprint.of(now))
        elif not change.after.same_text(now):
            self._checkpoint.use(state.size())
            old = change.before
            before = replace(old, type=state.type, source=state.source) if old else state
            change = replace(change, before=before, after=_text_of(change.after, now), theirs=True)
        if change.before is not None and change.after is not None and not change.after.same_run(now):
            before = replace(change.before, number=state.number, outputs=state.outputs, digest=state.digest)
            after = replace(change.after, number=now.number, outputs=outputs_hash(now.outputs))
            change = replace(change, before=before, after=after, theirs=True)
        return self._set(change)

    def _stood(self, change: CellChange, ids: Sequence[str]) -> None:
        """Note where a cell stood before it was first moved or deleted, or where the person has put it since."""
        old, left = change.before, change.after.around if change.after else None
        if old is None or change.id not in ids:
            return
        others = self._checkpoint.restless() - {change.id}
        if old.around is None or (left is not None and has_moved(ids, change.id, left, others)):
            change.before = replace(old, around=around(ids, change.id))

    def _wrote(self, cell: Cell, source: str) -> None:
        """Note how a host keeps a text that it took; if it holds another one by now, that one is the person's."""
        if clean(cell.source) == clean(source):
            self._left(cell.id, hash=cell.hash, type=cell.type)

    def _left(self, cell_id: str, *, keys: tuple[str, ...] = (), **facts: Any) -> None:
        change = self._checkpoint.cells.get(cell_id)
        if change is None or change.after is None:  # a late word of a cell that is gone
            return
        keys = tuple(dict.fromkeys((*change.keys, *keys)))
        self._set(replace(change, after=replace(change.after, **facts), keys=keys))

    def _set(self, change: CellChange) -> CellChange:
        self._checkpoint.set_cell(change, change.id)
        return change

    @contextmanager
    def _unless_refused(self, cell_id: str) -> Generator[None]:
        """Forget what is noted of a cell inside, if the notebook refuses; an interrupt or a lost answer leaves it: it may be done."""
        known = copy.copy(self._checkpoint.cells.get(cell_id))
        placed = cell_id in self._checkpoint.placed
        try:
            yield
        except Unsure:
            raise
        except NotebookError:
            self._checkpoint.set_cell(known, cell_id)
            if not placed and cell_id in self._checkpoint.placed:
                self._checkpoint.placed.remove(cell_id)
            raise


def _text_of(left: Footprint, now: Cell) -> Footprint:
    return replace(left, type=now.type, hash=now.hash)


def has_moved(ids: Sequence[str], cell_id: str, left: Around, others: set[str]) -> bool:
    """Whether a cell that is now one of `ids` was moved since it was left between `left`.

    Cells that came or went count for nothing, nor do `others`, which were moved by the same hand; one that keeps one of
    its two nearest old neighbours has stayed.
    """
    place = ids.index(cell_id)
    there, known = set(ids) - others, {*left[0], *left[1]} - others
    before = _nearest(reversed(left[0]), there) == _nearest(reversed(ids[:place]), known)
    after = _nearest(left[1], there) == _nearest(ids[place + 1 :], known)
    return not (before or after)


def _nearest(ids: Iterable[str], among: set[str]) -> str | None:
    return next((cell_id for cell_id in ids if cell_id in among), None)


class _CheckpointedSink:
    """Passes outputs on, and tells the notebook what the run left."""

    def __init__(self, sink: CellSink, notebook: CheckpointedNotebook, cell_id: str) -> None:
        self._sink = sink
        self._notebook = notebook
        self._cell = cell_id

    def emit(self, output: Output) -> None:
        """Take one output (see `ports.CellSink.emit`)."""
        self._sink.emit(output)

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Mark the cell as idle; return its outputs as they are in the notebook."""
        outputs = await self._sink.end(number)
        self._notebook.ended(self._cell, number, outputs)
        return outputs
