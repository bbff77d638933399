"""How the cells of a notebook depend on one another: which defines, changes and uses which name or file, from the code alone.

Pure functions of sources: nothing is run, no library is imported, and no value is looked at. It must not know of notebooks
on a page or in a file. Read `dataflow`, then `Dataflow`; what one cell does is told by cellflow.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from nbagent.tools.cellflow import Flow, flow_of

OF_IPYTHON = frozenset({
    *("In", "Out", "_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh", "get_ipython", "display", "exit", "quit"),
    *("__name__", "__doc__", "__file__", "__builtins__", "__builtin__", "__annotations__", "__session__", "_exit_code"),
})  # fmt: skip
"""Names that a notebook's kernel has by itself, beside Python's own."""
_BRANCHES = 4
"""Cells of which each may have made what a name holds, as they bind it in a branch or loop only."""


class HasSource(Protocol):
    """A cell, as far as it is needed here: `core.ports.Cell` and any other with these."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def type(self) -> str:
        """code, markdown or raw."""
        ...

    @property
    def source(self) -> str:
        """Its text."""
        ...


@dataclass(frozen=True, slots=True)
class Edge:
    """The cell `target` needs what `source` made: `names` are variables, imported names or (of kind file) paths.

    `late`: only functions of `target` need it, when they are called; then `source` may stand below.
    """

    source: str
    target: str
    names: tuple[str, ...]
    kind: Literal["name", "import", "file"] = "name"
    late: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that a cell uses at `line` of its code, and that no cell above defines.

    `below` is the first cell below that does ("" none, its own id: only its own code further down), `deleted_by` the cell
    above that takes the name away.
    """

    name: str
    line: int
    below: str = ""
    deleted_by: str = ""


@dataclass(frozen=True, slots=True)
class Dataflow:
    """The cells in order with what each does, and the edges between them. Cells are named by id."""

    cells: tuple[Flow, ...]
    edges: tuple[Edge, ...]
    missing: Mapping[str, tuple[Missing, ...]]

    def __getitem__(self, cell: str) -> Flow:
        """Return what a cell does; raises KeyError."""
        for flow in self.cells:
            if flow.id == cell:
                return flow
        raise KeyError(cell)

    def upstream(self, cell: str) -> tuple[str, ...]:
        """Return the ids of all cells that `cell` needs, by way of others too, in the notebook's order."""
        return self._reached(cell, {}, back=True)

    def downstream(self, cell: str) -> tuple[str, ...]:
        """Return the ids of all cells that need `cell`, by way of others too, in the notebook's order."""
        return self._reached(cell, {}, back=False)

    def undefined(self, cell: str) -> tuple[Missing, ...]:
        """Return the names that a cell uses and that no cell above defines, in the order of its lines.

        None are told where a cell above may bind any name (`from x import *`, `%run`): see `Flow.opens`.
        """
        return self.missing.get(cell, ())

    def definers(self, name: str) -> tuple[str, ...]:
        """Return the ids of the cells that define a name."""
        return tuple(flow.id for flow in self.cells if name in flow.defines)

    def users(self, name: str) -> tuple[str, ...]:
        """Return the ids of the cells that use or change a name that they did not make themselves."""
        return tuple(f.id for f in self.cells if name in f.uses or name in f.later or name in f.maybe)

    def _reached(self, cell: str, ways: dict[str, set[str]], *, back: bool) -> tuple[str, ...]:
        for edge in self.edges:
            start, end = (edge.target, edge.source) if back else (edge.source, edge.target)
            ways.setdefault(start, set()).add(end)
        found: set[str] = set()
        todo = [cell]
        while todo:
            new = ways.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return tuple(flow.id for flow in self.cells if flow.id in found and flow.id != cell)


def dataflow(cells: Iterable[HasSource]) -> Dataflow:
    """Return how cells, given in the notebook's order, depend on one another."""
    flows: list[Flow] = []
    known: dict[str, str] = {}
    for index, cell in enumerate(cells):
        flow = flow_of(cell.id, index, cell.source, cell.type, known)
        for name in flow.defines | flow.deletes:
            known.pop(name, None)
        known.update(flow.texts)
        flows.append(flow)
    return connected(flows)


def connected(flows: Sequence[Flow]) -> Dataflow:
    """Return the edges between cells of which it is known what each does."""
    graph = _Graph(flows)
    for flow in flows:
        graph.take(flow)
    graph.take_late()
    edges = sorted(graph.edges.items(), key=lambda item: (graph.place[item[0][0]], graph.place[item[0][1]], item[0][2]))
    made = tuple(Edge(start, end, tuple(sorted(names)), kind, late) for (start, end, kind, late), names in edges)
    return Dataflow(tuple(flows), made, graph.missing)


_Key = tuple[str, str, Literal["name", "import", "file"], bool]


class _Graph:
    """The edges while the cells are gone through in order."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self.flows = flows
        self.place = {flow.id: flow.index for flow in flows}
        self.edges: dict[_Key, set[str]] = {}
        self.missing: dict[str, tuple[Missing, ...]] = {}
        self._makers: dict[str, list[Flow]] = {}  # of what the name holds now: more than one after a branch
        self._imports: dict[str, bool] = {}
        self._deleted: dict[str, str] = {}
        self._opened: list[Flow] = []
        self._writers: dict[str, Flow] = {}
        self._defined_in: dict[str, list[Flow]] = {}
        for flow in flows:
            for name in flow.defines:
                self._defined_in.setdefault(name, []).append(flow)

    def take(self, flow: Flow) -> None:
        """Connect a cell to those above, and let its names hold what it makes of them."""
        for name in flow.uses | flow.changes | flow.maybe:
            for maker in self._makers.get(name, ()):
                self._connect(maker, flow, name)
        self.missing.update({flow.id: missing} if (missing := self._missing(flow)) else {})
        for path in flow.read_files:
            if (writer := self._writers.get(path)) is not None and writer is not flow:
                self.edges.setdefault((writer.id, flow.id, "file", False), set()).add(path)
        self._writers.update(dict.fromkeys(flow.written_files, flow))
        self._hold(flow)

    def _hold(self, flow: Flow) -> None:
        imported = {item.name for item in flow.imports}
        for name in flow.defines | flow.changes:
            if name in flow.certain or (name in flow.changes and name in self._makers):
                self._makers[name] = [flow]
            elif name in flow.defines:
                self._makers[name] = [*self._makers.get(name, [])[-_BRANCHES:], flow]
            if name in flow.defines:
                self._imports[name] = name in imported
                self._deleted.pop(name, None)
        for name in flow.deletes:
            self._makers.pop(name, None)
            self._deleted[name] = flow.id
        if flow.opens:
            self._opened.append(flow)

    def take_late(self) -> None:
        """Connect what functions need when they are called: the last cell above that makes it, else the first below."""
        for flow in self.flows:
            for name in flow.later:
                makers = self._defined_in.get(name, [])
                above = [maker for maker in makers if maker.index < flow.index]
                below = [maker for maker in makers if maker.index > flow.index]
                maker = above[-1] if above else below[0] if below else None
                if maker is not None:
                    self._connect(maker, flow, name, late=True)

    def _connect(self, maker: Flow, flow: Flow, name: str, *, late: bool = False) -> None:
        if maker is not flow:
            is_import = any(item.name == name for item in maker.imports)
            key: _Key = (maker.id, flow.id, "import" if is_import else "name", late)
            self.edges.setdefault(key, set()).add(name)

    def _missing(self, flow: Flow) -> tuple[Missing, ...]:
        if self._opened or flow.opens:
            return ()
        found: list[Missing] = []
        for name in flow.uses | (flow.later - self._defined_in.keys()):
            if name in self._makers or name in OF_IPYTHON or hasattr(builtins, name) or _of_history(name):
                continue
            below = next((f.id for f in self._defined_in.get(name, ()) if f.index >= flow.index), "")
            found.append(Missing(name, flow.lines.get(name, 0), below, self._deleted.get(name, "")))
        return tuple(sorted(found, key=lambda missing: (missing.line, missing.name)))


def _of_history(name: str) -> bool:
    return name.startswith("_") and name.lstrip("_i").isdigit()
