"""A notebook that is not open: the Notebook port over a file, of which nothing changes but what is edited.

The cells live in a `MemoryNotebook`; each edit is on the disk when it returns, and each look reads the disk anew, so that
what somebody else wrote is seen and never written over. Cells of files without ids are addressed by made-up ones, which
are never written. How a file is taken apart and written safely is told in tools/ipynb.py and tools/keeping.py.
Read `FileNotebook._write`, then `_load`.
"""

from __future__ import annotations

import asyncio
import difflib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Json
from nbagent.core.ports import Anchor, Cell, CellSink, CellType, Output, text_hash
from nbagent.headless.memory import MemoryNotebook
from nbagent.tools import ipynb
from nbagent.tools.ipynb import CellText, NotebookText
from nbagent.tools.keeping import Keeper
from nbagent.tools.servers import Holder

_ID_LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class FileNotebook:
    """The notebook in the file `path`, which must be nbformat 4; raises `NotebookError` with one sentence if it is not.

    A file that is open in a Jupyter server of this machine is read, and edits are refused. `who_has_open` finds out.
    """

    own_cell: str | None = None
    proposes_only = False

    def __init__(self, path: str | Path, *, who_has_open: Callable[[Path], Holder | None] | None = None) -> None:
        self.path = str(path)
        self._keeper = Keeper(Path(os.path.realpath(path)), self.path, who_has_open)
        self._memory = MemoryNotebook(path=self.path)
        self._origin: dict[str, CellText] = {}
        self._turn = asyncio.Lock()
        self._file = self._read()
        self._load(self._file)

    async def cells(self) -> list[Cell]:
        """Return all cells in order, without outputs, as the file has them now."""
        async with self._current() as memory:
            return await memory.cells()

    async def read(self, cell_id: str) -> Cell:
        """Return one cell with its outputs, as the file has it now."""
        async with self._current() as memory:
            return await memory.read(cell_id)

    async def insert(
        self,
        anchor: Anchor,
        cell_type: CellType,
        source: str,
        *,
        metadata: Json | None = None,
        cell_id: str | None = None,
    ) -> Cell:
        """Insert a cell at `anchor`; in an empty notebook an anchor with an empty id means its start."""
        async with self._current() as memory:
            new = await memory.insert(anchor, cell_type, source, metadata=metadata, cell_id=cell_id)
            await self._write()
            return await memory.read(new.id)

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source if its hash is still `expected_hash`."""
        async with self._current() as memory:
            await memory.edit(cell_id, source, expected_hash, metadata=metadata)
            await self._write()
            return await memory.read(cell_id)

    async def delete(self, cell_id: str, expected_hash: str) -> None:
        """Delete a cell if its hash is still `expected_hash`."""
        async with self._current() as memory:
            await memory.delete(cell_id, expected_hash)
            await self._write()

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:
        """Move a cell to `anchor`; next to itself means that it stays."""
        async with self._current() as memory:
            await memory.move(cell_id, anchor)
            await self._write()
            return await memory.read(cell_id)

    async def begin_run(self, cell_id: str) -> CellSink:
        """Mark a code cell as running, its outputs cleared; the file gets the new ones when it ends."""
        async with self._current() as memory:
            return _FileSink(await memory.begin_run(cell_id), self._end)

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace the outputs and the execution count of a code cell."""
        async with self._current() as memory:
            await memory.set_outputs(cell_id, outputs, number)
            await self._write()
            return await memory.read(cell_id)

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:
        """Merge `metadata` into a cell's; None takes a key away."""
        async with self._current() as memory:
            await memory.set_metadata(cell_id, metadata)
            await self._write()
            return await memory.read(cell_id)

    async def save(self) -> None:
        """See that the file holds what the cells are: edits are in it already, a cell that runs is written too."""
        async with self._current():
            await self._write()

    # ── between memory and disk ──────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _current(self) -> AsyncGenerator[MemoryNotebook]:
        """One operation at a time, on what the file holds now; one that fails leaves the cells as the file has them."""
        async with self._turn:
            if self._keeper.content() != self._file.text.encode("utf-8"):
                self._file = self._read()
                self._load(self._file)
            try:
                yield self._memory
            except BaseException:
                self._load(self._file)
                raise

    def _read(self) -> NotebookText:
        data = self._keeper.content()
        if data is None:
            raise NotebookError(f"there is no notebook {self.path}")
        return ipynb.read(data, self.path)

    async def _write(self) -> None:
        """Bring the file to what memory holds, by as little text as possible; nothing to change writes nothing."""
        cells = [(self._origin.get(raw["id"]), raw) for raw in self._memory.cells_]
        text = ipynb.written(self._file, cells)
        if text == self._file.text:
            return
        changed = [raw for was, raw in cells if was is None or ipynb.normal(was.raw["source"]) != raw["source"]]
        shown = [raw if self._file.has_ids else {k: v for k, v in raw.items() if k != "id"} for raw in changed]
        new = await asyncio.to_thread(self._keeper.write, text, self._file, shown)
        self._file = new
        self._origin = {raw["id"]: cell for raw, cell in zip(self._memory.cells_, new.cells, strict=True)}

    def _load(self, file: NotebookText) -> None:
        """Take the cells of `file` into memory: a cell keeps the id that it is known by, one that runs its outputs."""
        before = self._memory.cells_
        running = {raw["id"]: raw for raw in before if raw["id"] in self._memory.running}
        ids = _ids([(raw["id"], _key(raw)) for raw in before], file.cells)
        fresh: list[Json] = []
        for cell_id, cell in zip(ids, file.cells, strict=True):
            raw = {**cell.raw, "id": cell_id, "source": ipynb.normal(cell.raw["source"])}
            raw["metadata"] = dict(cell.raw.get("metadata", {}))
            if (runs := running.get(cell_id)) is not None:  # its outputs go on coming into this very dict
                runs |= {"source": raw["source"], "metadata": raw["metadata"]}
                raw = runs
            fresh.append(raw)
        self._memory.cells_[:] = fresh
        self._origin = dict(zip(ids, file.cells, strict=True))

    async def _end(self, sink: CellSink, number: int | None) -> tuple[Output, ...]:
        """End a run and write its outputs; what others wrote meanwhile is taken in first, while the cell still runs."""
        try:
            async with self._current():
                outputs = await sink.end(number)
                await self._write()
                return outputs
        except NotebookError:
            await sink.end(number)  # where the file could not be read
            raise


class _FileSink:
    """Outputs of a cell that runs: in memory while they come, in the file at the end."""

    def __init__(self, inner: CellSink, end: Callable[[CellSink, int | None], Awaitable[tuple[Output, ...]]]) -> None:
        self._inner = inner
        self._end = end

    def emit(self, output: Output) -> None:
        """Take one output."""
        self._inner.emit(output)

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Mark the cell as idle and write its outputs; raises `NotebookError` where the file did not take them."""
        return await self._end(self._inner, number)


def _key(raw: Json) -> tuple[str, str]:
    return raw["cell_type"], ipynb.normal(raw["source"])


def _ids(before: Sequence[tuple[str, tuple[str, str]]], cells: Sequence[CellText]) -> list[str]:
    """Return an id for each cell: the file's own if it has a usable one, else the one that it was known by, else a made-up one.

    A cell without an id is taken for the one with the same source that stood in its place, else for the one between the
    same neighbours.
    """
    given = [cell.raw.get("id") for cell in cells]
    usable = [i if isinstance(i, str) and 0 < len(i) <= 64 and set(i) <= _ID_LETTERS else None for i in given]
    found = [i if i is not None and i not in usable[:place] else None for place, i in enumerate(usable)]
    taken = {i for i in found if i}
    matcher = difflib.SequenceMatcher(
        a=[key for _, key in before], b=[_key(cell.raw) for cell in cells], autojunk=False
    )
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and a_end - a == b_end - b):
            for (known, _), place in zip(before[a:a_end], range(b, b_end), strict=True):
                if found[place] is None and known not in taken:
                    found[place] = known
                    taken.add(known)
    for place, cell in enumerate(cells):
        if found[place] is None:
            base = f"cell-{text_hash(repr(_key(cell.raw)))[:8]}"
            made = next(name for n in range(len(cells) + 1) if (name := base if not n else f"{base}-{n}") not in taken)
            found[place] = made
            taken.add(made)
    return [i for i in found if i is not None]
