"""A notebook that tells which cells were added, edited and run through it: a wrapper of the port, for hooks.

What only was proposed is no deed. Must not know what the deeds are for. Read `WatchedNotebook.take`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nbagent.core.messages import Json
from nbagent.core.payloads import CellAdded, CellEdited, CellPayload, CellRun
from nbagent.core.ports import Anchor, Cell, CellSink, CellType, Notebook, Output
from nbagent.core.wrapped import WrappedNotebook


class WatchedNotebook(WrappedNotebook):
    """The notebook port over `notebook`; `take` gives what was done through it since it was asked last."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        self._deeds: list[CellPayload] = []

    def take(self) -> tuple[CellPayload, ...]:
        """Return what was done, in order, and forget it."""
        deeds, self._deeds = tuple(self._deeds), []
        return deeds

    async def insert(
        self,
        anchor: Anchor,
        cell_type: CellType,
        source: str,
        *,
        metadata: Json | None = None,
        cell_id: str | None = None,
    ) -> Cell:
        """Insert a cell."""
        cell = await super().insert(anchor, cell_type, source, metadata=metadata, cell_id=cell_id)
        self._did(CellAdded(cell_id=cell.id, cell_type=cell.type, source=cell.source, notebook_path=self.path))
        return cell

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source."""
        old = await self._notebook.read(cell_id)
        cell = await self._notebook.edit(cell_id, source, expected_hash, metadata=metadata)
        if cell.source != old.source:
            self._did(CellEdited(cell_id=cell.id, cell_type=cell.type, source=cell.source, old_source=old.source,
                                 notebook_path=self.path))  # fmt: skip
        return cell

    async def begin_run(self, cell_id: str) -> CellSink:
        """Mark a cell as running; when its run ends, that is a deed."""
        cell = await self._notebook.read(cell_id)
        return _Sink(await self._notebook.begin_run(cell_id), cell, self)

    def ran(self, cell: Cell, outputs: Sequence[Output], number: int | None) -> None:
        """Keep that a cell has run, with what came of it."""
        error = next((output for output in outputs if output.get("output_type") == "error"), None)
        said = f"{error.get('ename')}: {error.get('evalue')}" if error else ""
        self._did(CellRun(cell_id=cell.id, cell_type=cell.type, source=cell.source, notebook_path=self.path,
                          status="error" if error else "ok", error=said, execution_count=number))  # fmt: skip

    def _did(self, deed: CellPayload) -> None:
        if not self.proposes_only:
            self._deeds.append(deed)


class _Sink:
    """The sink of a cell that runs; it sees the outputs pass, for the notebook may not give them back."""

    def __init__(self, sink: CellSink, cell: Cell, notebook: WatchedNotebook) -> None:
        self._sink, self._cell, self._notebook = sink, cell, notebook
        self._errors: list[Output] = []

    def emit(self, output: Output) -> None:
        """Take one output."""
        if output.get("output_type") == "error":
            self._errors.append(output)
        self._sink.emit(output)

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Mark the cell as idle."""
        try:
            return await self._sink.end(number)
        finally:
            self._notebook.ran(self._cell, self._errors, number)
