"""A notebook in memory: the Notebook port over a plain list of nbformat cells.

For hosts that hold the cells themselves (headless runs, files, plain questions) and for tests: it is the port's double
and ships as product. It must not know where the cells come from or go to; `on_save` is told. What it keeps is valid
nbformat 4.5 at every moment. Read `MemoryNotebook.insert` first, then `MemorySink`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from nbagent.core.errors import NotebookError
from nbagent.core.messages import Json, clean, clean_value
from nbagent.core.ports import Anchor, Cell, CellType, Output, source_hash
from nbagent.tools.cells import unknown_cell
from nbagent.tools.results import fold_terminal

_ID_LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_OUTPUT_KEYS = {
    "stream": ("name", "text"),
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "metadata", "execution_count"),
    "error": ("ename", "evalue", "traceback"),
}


class MemoryNotebook:
    """A notebook whose cells are the nbformat dicts of `cells_`, changed in place.

    `cells_` may be the live list of a notebook that somebody else holds; cells without a usable id get one.
    `make` turns a new cell or output from a plain dict into what the list holds (`nbformat.from_dict` for nbclient).
    `running` holds the ids of the cells that run now.
    """

    def __init__(
        self,
        cells: list[Any] | None = None,
        *,
        path: str = "notebook.ipynb",
        own_cell: str | None = None,
        proposes_only: bool = False,
        on_save: Callable[[], None] = lambda: None,
        make: Callable[[Json], Any] = lambda value: value,
    ) -> None:
        self.cells_: list[Any] = cells if cells is not None else []
        self.path = path
        self.own_cell = own_cell
        self.proposes_only = proposes_only
        self.running: set[str] = set()
        self._on_save = on_save
        self._make = make
        self._displays: dict[str, list[Json]] = {}
        _give_ids(self.cells_)

    async def cells(self) -> list[Cell]:
        """Return all cells in order, without outputs."""
        return [_as_cell(raw, index, with_outputs=False) for index, raw in enumerate(self.cells_)]

    async def read(self, cell_id: str) -> Cell:
        """Return one cell with its outputs."""
        index = self._find(cell_id)
        return _as_cell(self.cells_[index], index, with_outputs=True)

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
        index = self._place(anchor) if self.cells_ or anchor.id else 0
        raw: Json = {"id": self._new_id(cell_id), "cell_type": cell_type, "metadata": {}, "source": clean(source)}
        if cell_type == "code":
            raw |= {"outputs": [], "execution_count": None}
        new = self._make(raw)
        self._merge(new, metadata)
        self.cells_.insert(index, new)
        return await self.read(raw["id"])

    async def edit(self, cell_id: str, source: str, expected_hash: str, *, metadata: Json | None = None) -> Cell:
        """Replace a cell's source if its hash is still `expected_hash`."""
        raw = self._checked(cell_id, expected_hash)
        raw["source"] = clean(source)
        self._merge(raw, metadata)
        return await self.read(cell_id)

    async def delete(self, cell_id: str, expected_hash: str) -> None:
        """Delete a cell if its hash is still `expected_hash`."""
        self._checked(cell_id, expected_hash)
        del self.cells_[self._find(cell_id)]

    async def move(self, cell_id: str, anchor: Anchor) -> Cell:
        """Move a cell to `anchor`; next to itself means that it stays."""
        index = self._find(cell_id)
        self._find(anchor.id)
        if anchor.id != cell_id:
            raw = self.cells_.pop(index)
            self.cells_.insert(self._place(anchor), raw)
        return await self.read(cell_id)

    async def begin_run(self, cell_id: str) -> MemorySink:
        """Mark a code cell as running, with its outputs cleared, and return where its outputs go."""
        raw = self._code(cell_id)
        raw["outputs"] = []
        raw["execution_count"] = None
        self.running.add(cell_id)
        return MemorySink(raw, self._displays, self._make, lambda: self.running.discard(cell_id))

    async def set_outputs(self, cell_id: str, outputs: Sequence[Output], number: int | None) -> Cell:
        """Replace the outputs and the execution count of a code cell; what is no nbformat output is refused."""
        raw = self._code(cell_id)
        if unknown := [o.get("output_type") for o in outputs if o.get("output_type") not in _OUTPUT_KEYS]:
            raise NotebookError(f"{unknown[0]!r} is no type of output: there are {', '.join(_OUTPUT_KEYS)}")
        raw["outputs"] = [self._make(_valid(output)) for output in outputs]
        raw["execution_count"] = number
        return await self.read(cell_id)

    async def set_metadata(self, cell_id: str, metadata: Json) -> Cell:
        """Merge `metadata` into a cell's; None takes a key away."""
        self._merge(self.cells_[self._find(cell_id)], metadata)
        return await self.read(cell_id)

    async def save(self) -> None:
        """Call `on_save`."""
        self._on_save()

    def _find(self, cell_id: str) -> int:
        for index, raw in enumerate(self.cells_):
            if raw["id"] == cell_id:
                return index
        raise unknown_cell(cell_id, [_as_cell(raw, i, with_outputs=False) for i, raw in enumerate(self.cells_)])

    def _place(self, anchor: Anchor) -> int:
        return self._find(anchor.id) + (anchor.where == "after")

    def _checked(self, cell_id: str, expected_hash: str) -> Any:
        raw = self.cells_[self._find(cell_id)]
        if source_hash(_joined(raw["source"])) != expected_hash:
            raise NotebookError(f"cell {cell_id} changed since you read it: read it again")
        return raw

    def _code(self, cell_id: str) -> Any:
        raw = self.cells_[self._find(cell_id)]
        if raw["cell_type"] != "code":
            raise NotebookError(f"cell {cell_id} is a {raw['cell_type']} cell: only code cells run and have outputs")
        return raw

    def _merge(self, raw: Any, metadata: Json | None) -> None:
        kept = dict(raw["metadata"])
        for key, value in clean_value(metadata or {}).items():
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
        raw["metadata"] = self._make(kept)

    def _new_id(self, given: str | None) -> str:
        taken = {raw["id"] for raw in self.cells_}
        if given is not None:
            if given in taken:
                raise NotebookError(f"there is a cell {given} already: a second one can't have its id")
            return given
        while (new := uuid.uuid4().hex[:8]) in taken:
            pass
        return new


class MemorySink:
    """Takes the outputs of one running cell and keeps the cell's own list up to date with every piece."""

    def __init__(
        self, cell: Any, displays: dict[str, list[Json]], make: Callable[[Json], Any], ended: Callable[[], None]
    ) -> None:
        self._cell = cell
        self._displays = displays
        self._make = make
        self._ended = ended
        self._open = True
        self._clear_next = False
        self._stream = _Stream()

    def emit(self, output: Output) -> None:
        """Take one output, a piece of a stream, a display update or a clear_output; after `end` it is dropped."""
        if not self._open:
            return
        kind = output.get("output_type")
        if kind == "clear_output":
            self._clear_next = bool(output.get("wait"))
            if not self._clear_next:
                self._cell["outputs"].clear()
        elif output.get("_update"):
            self._update(output)
        elif kind in _OUTPUT_KEYS:
            if self._clear_next:
                self._cell["outputs"].clear()
                self._clear_next = False
            self._append(output)

    async def end(self, number: int | None) -> tuple[Output, ...]:
        """Mark the cell as idle with execution count `number`; return its outputs."""
        self._open = False
        self._cell["execution_count"] = number
        for output in self._cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = number
        self._ended()
        return tuple(dict(output) for output in self._cell["outputs"])

    def _append(self, output: Output) -> None:
        outputs = self._cell["outputs"]
        if output["output_type"] == "stream":
            name, text = str(output.get("name") or "stdout"), clean(_joined(output.get("text", "")))
            last = outputs[-1] if outputs else None
            if last is None or last["output_type"] != "stream" or last["name"] != name:
                self._stream = _Stream()
                last = self._make({"output_type": "stream", "name": name, "text": ""})
                outputs.append(last)
            last["text"] = self._stream.add(text)
            return
        kept = self._make(_valid(output))
        outputs.append(kept)
        if display_id := output.get("_display_id"):
            self._displays.setdefault(display_id, []).append(kept)

    def _update(self, output: Output) -> None:
        for shown in self._displays.get(str(output.get("_display_id")), []):
            fresh = self._make(_valid({**output, "output_type": "display_data"}))
            shown["data"], shown["metadata"] = fresh["data"], fresh["metadata"]


class _Stream:
    """Text of one stream output that comes in pieces; work per piece does not grow with what was written before."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._tail = ""

    def add(self, piece: str) -> str:
        head, newline, self._tail = (self._tail + piece).rpartition("\n")
        if newline:
            self._lines += [_folded(line) + "\n" for line in head.split("\n")]
        if "\r" in self._tail:  # a progress bar redraws one line for ever: keep its last state, not its history
            before, _, after = self._tail.rpartition("\r")
            self._tail = f"{_folded(before)}\r{after}"
        if len(self._lines) > 64:
            self._lines = ["".join(self._lines)]
        return "".join(self._lines) + _folded(self._tail)


def _folded(line: str) -> str:
    """Return one line as a terminal would leave it; where nothing was written over it keeps its colours."""
    return fold_terminal(line) if "\r" in line or "\b" in line else line


def _as_cell(raw: Any, index: int, *, with_outputs: bool) -> Cell:
    return Cell(
        id=raw["id"],
        type=raw["cell_type"],
        source=_joined(raw["source"]),
        index=index,
        number=raw.get("execution_count"),
        outputs=tuple(dict(output) for output in raw.get("outputs", [])) if with_outputs else (),
        metadata=dict(raw.get("metadata", {})),
    )


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _valid(output: Output) -> Output:
    """Return only what nbformat knows of `output`, cleaned of what can't be written to a file."""
    kind = output["output_type"]
    if kind == "stream":
        output = {"name": "stdout", **output, "text": _joined(output.get("text", ""))}
    missing: Json = {"metadata": {}, "execution_count": None, "data": {}, "traceback": [], "ename": "", "evalue": ""}
    kept = {key: clean_value(output.get(key, missing.get(key))) for key in _OUTPUT_KEYS[kind]}
    return {"output_type": kind, **kept}


def _give_ids(cells: list[Any]) -> None:
    taken: set[str] = set()
    for raw in cells:
        given = raw.get("id")
        usable = isinstance(given, str) and 0 < len(given) <= 64 and set(given) <= _ID_LETTERS
        if not usable or given in taken:
            raw["id"] = uuid.uuid4().hex[:8]
        taken.add(raw["id"])
