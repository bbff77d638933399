"""A notebook that passes everything on to another one: what wrappers of the port have in common.

Must not know what a wrapper is for. Read `WrappedNotebook`; a wrapper overrides what it does otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from nbagent.core.messages import Json
from nbagent.core.ports import Anchor, Cell, CellSink, CellType, Notebook, Output


class WrappedNotebook:
    """The notebook port over `notebook`, which does all of it."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    @property
    def path(self) -> str:
        """The notebook's path."""
        return self._notebook.path

    @property
    def own_cell(self) -> str | None:
        """The id of the cell that runs now."""
        return self._notebook.own_cell

    @property
    def proposes_only(self) -> bool:
        """Whether edits are only proposed."""
        return self._notebook.proposes_only

    async def cells(self) -> list[Cell]:
        """Return all cells in order, without outputs."""
        return await self._notebook.cells()

    async def read(self, cell_id: str) -> Cell:
        """Return one cell with its outputs."""
        return await self._notebook.read(cell_id)

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
        return await self._notebook.insert(anchor, cell_type, source, metadata=metadata, cell_id=cell_id)

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source if its hash is still `expected_hash`."""
        return await self._notebook.edit(cell_id, source, expected_hash, metadata=metadata)

    async def delete(self, cell_id: str, expected_hash: str) -> None:
        """Delete a cell if its hash is still `expected_hash`."""
        await self._notebook.delete(cell_id, expected_hash)

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:
        """Move a cell to `anchor`."""
        return await self._notebook.move(cell_id, anchor)

    async def begin_run(self, cell_id: str) -> CellSink:
        """Mark a cell as running."""
        return await self._notebook.begin_run(cell_id)

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace the outputs and the execution count of a code cell."""
        return await self._notebook.set_outputs(cell_id, outputs, number)

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:
        """Merge `metadata` into a cell's."""
        return await self._notebook.set_metadata(cell_id, metadata)

    async def save(self) -> None:
        """Save the notebook."""
        await self._notebook.save()
