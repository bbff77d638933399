"""A notebook's cells as the page inside nbclient holds them: the bridge's operations over nbformat nodes.

The counterpart of `operations` in jupyter/static/bridge.js, in the same order and with the same refusals; patches come
folded from the kernel. Must not know of nbclient or comms. Read `Document.perform`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import nbformat
from nbformat import NotebookNode

from nbagent.core.messages import Json
from nbagent.core.ports import Output

Shown = Callable[[NotebookNode, Output], None]
"""Told of each new piece of output of a cell; a stream's piece holds only the new text."""


class Refusal(Exception):
    """The operation is not done, with the code that the kernel turns into a sentence."""

    def __init__(self, code: str, message: str, cell: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.cell = cell


class Document:
    """The cells of a notebook in document order; `current` is the one that runs now."""

    def __init__(
        self,
        cells: list[NotebookNode],
        *,
        path: str,
        save: Callable[[], None],
        shown: Shown,
        recorded: Callable[[str], None] = lambda _cell: None,
    ) -> None:
        self.cells = list(cells)
        self.path = path
        self.current: str | None = None
        self._save = save
        self._shown = shown
        self._recorded = recorded
        self._runs: dict[str, int] = {}

    def perform(self, request: Json) -> Json:
        """Do one operation and return its result; raises Refusal."""
        operation = getattr(self, f"_do_{request.get('op')}", None)
        if operation is None:
            raise Refusal("unknown_op", f"a headless page can't do {request.get('op')}")
        return operation(request) or {}

    def _do_hello(self, request: Json) -> Json:
        named = request.get("cell")
        own = self.current if named is None or named == self.current else None
        return {"path": self.path, "document": True, "own_cell": own, "interactive": False, "front_end": "headless",
                "running": True}  # fmt: skip

    def _do_ping(self, _: Json) -> None: ...

    def _do_list(self, _: Json) -> Json:
        return {"cells": [_described(cell, index) for index, cell in enumerate(self.cells)]}

    def _do_read(self, request: Json) -> Json:
        index = self._index(request["cell"])
        wanted = request.get("outputs") is not False
        return {
            "cell": {
                **_described(self.cells[index], index),
                "outputs": self.cells[index].get("outputs", []) if wanted else [],
            }
        }

    def _do_insert(self, request: Json) -> Json:
        there = any(cell["id"] == request["cell"] for cell in self.cells)
        if there and not request.get("retry"):
            raise Refusal("exists", f"there is a cell {request['cell']}", str(request["cell"]))
        if not there:
            make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
            new = make.get(request["cell_type"], nbformat.v4.new_raw_cell)
            cell = new(request["source"], id=request["cell"])
            _merge(cell, request.get("metadata"))
            self.cells.insert(self._place(request["anchor"]), cell)
        return self._one(request["cell"])

    def _do_edit(self, request: Json) -> Json:
        cell = self._cell(request["cell"])
        if cell.source != request["source"]:
            _check_unchanged(cell, request)
            cell.source = request["source"]
        _merge(cell, request.get("metadata"))
        return self._one(request["cell"])

    def _do_delete(self, request: Json) -> None:
        if request.get("retry") and not any(cell["id"] == request["cell"] for cell in self.cells):
            return
        index = self._index(request["cell"])
        _check_unchanged(self.cells[index], request)
        del self.cells[index]

    def _do_move(self, request: Json) -> Json:
        start, place = self._index(request["cell"]), self._place(request["anchor"])
        self.cells.insert(place - (start < place), self.cells.pop(start))
        return self._one(request["cell"])

    def _do_begin(self, request: Json) -> None:
        cell = self._code(request["cell"])
        cell.outputs, cell.execution_count = [], None
        self._runs[request["run"]] = 0

    def _do_outputs(self, request: Json) -> None:
        cell, patch, seq = self._code(request["cell"]), request["patch"], int(request["seq"])
        if (patch["base"] < 0 or seq == self._runs.get(request["run"])) and self._patch(cell, patch):
            self._runs[request["run"]] = seq + 1
        elif seq >= self._runs.get(request["run"], -1):
            self._runs[request["run"]] = -1  # the end will ask for all; iopub of a local kernel loses nothing else

    def _do_end(self, request: Json) -> Json:
        cell = self._code(request["cell"])
        gap = self._runs.get(request["run"]) != request["seq"] or len(cell.outputs) != request["count"]
        if not gap or request.get("last"):
            self._runs.pop(request["run"], None)
            cell.execution_count = request["number"]
        return {"gap": gap}

    def _do_set_outputs(self, request: Json) -> Json:
        cell = self._code(request["cell"])
        cell.outputs, cell.execution_count = _nodes(request["outputs"]), request["number"]
        return self._do_read(request)

    def _do_set_metadata(self, request: Json) -> Json:
        _merge(self._cell(request["cell"]), request["metadata"])
        return self._one(request["cell"])

    def _do_record(self, request: Json) -> None:
        cell = self._code(request["cell"])
        cell.outputs = _nodes(request["outputs"])
        if request["number"] is not None:
            cell.execution_count = request["number"]
        self._recorded(str(cell["id"]))

    def _do_say(self, request: Json) -> None:
        """What the running cell's live view would show: told of, but no output of any cell."""
        if self.current is not None:
            said: Output = {"output_type": "stream", "name": "stdout", "text": str(request["text"])}
            self._shown(self._cell(self.current), said)

    def _do_save(self, _: Json) -> None:
        self._save()

    def _patch(self, cell: NotebookNode, patch: Json) -> bool:
        base = patch["base"] if patch["base"] >= 0 else len(cell.outputs)
        if len(cell.outputs) != base:
            return False
        if patch["base"] < 0 or patch["keep"] < base:
            cell.outputs = [*cell.outputs[: patch["keep"]], *_nodes(patch["add"])]
        else:
            if patch["drop"] or patch["text"]:
                _change_text(cell.outputs[-1], patch["drop"], patch["text"])
                self._shown(cell, {"output_type": "stream", "name": cell.outputs[-1].name, "text": patch["text"]})
            cell.outputs.extend(_nodes(patch["add"]))
        for output in patch["add"]:
            self._shown(cell, output)
        return True

    def _one(self, cell_id: str) -> Json:
        index = self._index(cell_id)
        return {"cell": _described(self.cells[index], index)}

    def _index(self, cell_id: str) -> int:
        for index, cell in enumerate(self.cells):
            if cell["id"] == cell_id:
                return index
        raise Refusal("unknown_cell", f"no cell {cell_id}", cell_id)

    def _cell(self, cell_id: str) -> NotebookNode:
        return self.cells[self._index(cell_id)]

    def _code(self, cell_id: str) -> NotebookNode:
        cell = self._cell(cell_id)
        if cell.cell_type != "code":
            raise Refusal("not_code", f"cell {cell_id} is not a code cell", cell_id)
        return cell

    def _place(self, anchor: Json) -> int:
        return self._index(anchor["id"]) + (anchor["where"] != "before")


def _check_unchanged(cell: NotebookNode, request: Json) -> None:
    if cell.source != request["expected"]:
        raise Refusal("changed", f"cell {request['cell']} was changed", str(request["cell"]))


def _merge(cell: NotebookNode, metadata: Json | None) -> None:
    """Set the top-level keys of a cell's metadata; None takes one away."""
    for key, value in (metadata or {}).items():
        if value is None:
            cell.metadata.pop(key, None)
        else:
            cell.metadata[key] = nbformat.from_dict(value) if isinstance(value, dict) else value


def _change_text(output: NotebookNode, drop: int, text: str) -> None:
    """Drop UTF-16 units from the end of a stream's text and append to it."""
    if drop:
        raw = str(output.text).encode("utf-16-le", "surrogatepass")
        output.text = raw[: len(raw) - 2 * drop].decode("utf-16-le", "surrogatepass")
    output.text += text


def _nodes(outputs: list[Output]) -> list[NotebookNode]:
    return [cast("NotebookNode", nbformat.from_dict(_complete(output))) for output in outputs]


def _complete(output: Output) -> Output:
    """Add the keys that nbformat requires and that a kernel may leave out."""
    kind = output.get("output_type")
    if kind in ("display_data", "execute_result"):
        output = {"metadata": {}, "data": {}, **output}
    if kind == "execute_result":
        output = {"execution_count": None, **output}
    return output


def _described(cell: NotebookNode, index: int) -> Json:
    number: Any = cell.get("execution_count")
    return {"id": cell["id"], "type": cell.cell_type, "source": cell.source, "index": index, "number": number,
            "metadata": cell.metadata}  # fmt: skip
