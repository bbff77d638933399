"""What would make a notebook tidier, as changes that a person can take one by one: from the cells alone, no model.

Each change says why, touches cells that no other change touches, and leaves alone what has tags, an agent's own cells, and
cells marked "don't rerun". What it keeps of a cell's code keeps its outputs. Pure; nothing is changed here. Read `changes`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nbagent.core.diff import part_line
from nbagent.core.ports import Cell
from nbagent.tools.cellcode import parse, split
from nbagent.tools.cellflow import Flow
from nbagent.tools.cells import error_output, first_line
from nbagent.tools.dataflow import dataflow
from nbagent.tools.ledger import label_of
from nbagent.tools.marks import is_kept
from nbagent.tools.renaming import is_free, renamed
from nbagent.tools.tidysource import (
    acts,
    count_lines,
    import_lines,
    imports_cell,
    is_free_cell,
    is_words,
    listed_names,
    mentions,
    moves,
    pieces_of,
    plain,
    prepares_imports,
    step_of,
    with_imports,
    without,
)
from nbagent.tools.verdict import is_verifiable

MOST = 20
"""Changes that are proposed at once."""
SMALL, WHOLE, GIANT = 5, 15, 40
"""Lines: of a cell that may be merged into the next, of what comes of it, of a cell to be split."""
FEW = 6
"""Code cells from which a notebook should have headings."""
_ONLY_NAMES = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)


@dataclass(frozen=True, slots=True)
class Edit:
    """A cell gets another source; `old` is what it must still have, `label` how people know it."""

    cell: str
    old: str
    new: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """A cell goes; `old` is the source that it must still have, `label` how people know it."""

    cell: str
    old: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Insert:
    """A new cell right before the cell `before`."""

    before: str
    type: Literal["code", "markdown"]
    source: str


Op = Edit | Delete | Insert


@dataclass(frozen=True, slots=True)
class Change:
    """One change: its `kind`, what it does and why (`title`), and its steps in the order in which they are done."""

    kind: Literal["dead", "imports", "merge", "split", "heading", "rename"]
    title: str
    ops: tuple[Op, ...]

    @property
    def old(self) -> str:
        """What is there before, as one text for a diff."""
        return self._text([(op.label, op.old) for op in self.ops if not isinstance(op, Insert)])

    @property
    def new(self) -> str:
        """What is there afterwards, as one text for a diff."""
        left = [op for op in self.ops if not isinstance(op, Delete)]
        return self._text([("a new cell", op.source) if isinstance(op, Insert) else (op.label, op.new) for op in left])

    def _text(self, parts: Sequence[tuple[str, str]]) -> str:
        if len(self.ops) == 1:
            return "".join(source for _, source in parts)
        return "\n\n".join(f"{part_line(label or 'a cell')}\n{source}" for label, source in parts)

    @property
    def cells(self) -> set[str]:
        """The ids of the cells that it changes or deletes."""
        return {op.cell for op in self.ops if not isinstance(op, Insert)}


def changes(cells: Sequence[Cell], *, names: Mapping[str, str] | None = None, own: str | None = None) -> list[Change]:
    """Return what would make the notebook tidier, at most `MOST` changes, no two of which touch one cell.

    `cells` hold their outputs. `names` are better names for variables, by the old ones; `own` is a cell to leave alone.
    """
    look = _Look(cells, own)
    found: list[Change] = []
    taken: set[str] = set()
    for make in (look.dead, look.imports, lambda: look.renames(names or {}), look.splits, look.merges):
        for change in make():
            if not change.cells & taken and len(found) < MOST:
                taken |= change.cells
                found.append(change)
    found += list(look.headings(taken))[: MOST - len(found)]
    labels = {cell.id: label_of(cell) for cell in cells}
    found = [replace(change, ops=tuple(_labelled(op, labels) for op in change.ops)) for change in found]
    place = {cell.id: cell.index for cell in cells}
    return sorted(found, key=lambda change: min(place.get(_first(op), 0) for op in change.ops))


def _labelled(op: Op, labels: Mapping[str, str]) -> Op:
    return op if isinstance(op, Insert) else replace(op, label=labels.get(op.cell, ""))


def _first(op: Op) -> str:
    return op.before if isinstance(op, Insert) else op.cell


class _Look:
    """One notebook that is looked at."""

    def __init__(self, cells: Sequence[Cell], own: str | None) -> None:
        self.cells, self.flow = list(cells), dataflow(cells)
        self.flows: Mapping[str, Flow] = {flow.id: flow for flow in self.flow.cells}
        self.code = [cell for cell in cells if cell.type == "code" and cell.id != own and is_verifiable(cell)]
        self.plain = {cell.id: plain(cell.source) for cell in self.code}
        self.free = [cell for cell in self.code if is_free_cell(cell) and not self.flows[cell.id].problem]

    # ── dead cells ──────────────────────────────────────────────────────────────────────────────────────────────────

    def dead(self) -> Iterator[Change]:
        """Cells that could go: empty, commented out, done twice, failed and left, made for nothing."""
        last = self.code[-1].id if self.code else ""
        for cell in self.cells[:-1]:  # an empty one at the end is where the person goes on
            if cell.type == "code" and not cell.source.strip() and not cell.outputs and is_free_cell(cell):
                yield self._gone(cell, "it is empty")
        for place, cell in enumerate(self.code):
            if cell not in self.free:
                continue
            why = self._commented(cell) or self._twice(cell, self.code[:place]) or self._failed(cell)
            why = why or ("" if cell.id == last else self._unused(cell))
            if why:
                yield self._gone(cell, why)

    def _gone(self, cell: Cell, why: str) -> Change:
        return Change("dead", f"delete {label_of(cell)}: {why}", (Delete(cell.id, cell.source),))

    def _commented(self, cell: Cell) -> str:
        lines = [line.strip() for line in cell.source.splitlines() if line.strip()]
        if not all(line.startswith("#") for line in lines) or cell.outputs:
            return ""
        tree = parse("\n".join(line.lstrip("#").removeprefix(" ") for line in lines))
        said = tree is not None and any(not is_words(statement) for statement in tree.body)
        return "it is commented-out code" if said else ""

    def _twice(self, cell: Cell, above: Sequence[Cell]) -> str:
        flow = self.flows[cell.id]
        if flow.changes or flow.written_files or flow.opens or flow.deletes or flow.uses & flow.defines:
            return ""
        for place, other in enumerate(above):
            if self.plain[other.id] != self.plain[cell.id] or moves(split(cell.source).tree):
                continue
            between = [self.flows[c.id] for c in above[place + 1 :]]
            needed = flow.uses | flow.later | flow.defines
            if not any(needed & (f.defines | f.changes | f.deletes) or f.opens for f in between):
                return f"{label_of(other)} does the same, and nothing has changed in between"
        return ""

    def _failed(self, cell: Cell) -> str:
        error = error_output(cell)
        if error is None or self._used(cell):
            return ""
        below = [c for c in self.code if c.index > cell.index and error_output(c) is None]
        again = next((c for c in below if difflib.SequenceMatcher(None, c.source, cell.source).ratio() > 0.6), None)
        return f"it failed ({error.get('ename')}), and {label_of(again)} does it right" if again is not None else ""

    def _unused(self, cell: Cell) -> str:
        flow, tree = self.flows[cell.id], split(cell.source).tree
        if (
            cell.outputs
            or flow.shows
            or flow.changes
            or flow.written_files
            or flow.opens
            or flow.imports
            or flow.deletes
        ):
            return ""
        plain = tree is not None and all(isinstance(s, _ONLY_NAMES) for s in tree.body) and not acts(tree)
        if not plain or not flow.defines or self._used(cell) or cell.source.lstrip().startswith("%"):
            return ""
        return f"nothing uses {listed_names(flow.defines)}, and it shows nothing"

    def _used(self, cell: Cell) -> bool:
        names = self.flows[cell.id].defines | self.flows[cell.id].changes
        others = [flow for flow in self.flow.cells if flow.id != cell.id]
        return any(
            names & (f.uses | f.later | f.maybe) or f.opens or (f.agent and mentions(self.cells[f.index], names))
            for f in others
        )

    # ── imports ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def imports(self) -> Iterator[Change]:
        """Imports that stand elsewhere go to the imports cell, those that it has already just go."""
        home = imports_cell(self.free, self.flow)
        if home is None:
            return
        here, added, ops, moved = import_lines(home), list[str](), list[Op](), list[str]()
        order = [cell.index for cell in self.code if cell.index >= home.index and prepares_imports(cell)]
        until = order[0] if order else len(self.cells)  # an import that stands below that may need it
        for cell in self.free:
            if cell.index >= until:
                break
            strays = import_lines(cell)
            if (
                cell.index <= home.index
                or not strays
                or cell.source.lstrip().startswith("%")
                or split(cell.source).magics
            ):
                continue
            waits = cell.number is None and home.number is not None  # it has yet to run: its import would not have
            if waits or self._bound_elsewhere(cell):
                continue
            rest = without(cell.source, strays)
            if rest.strip() and parse(rest) is None:
                continue
            new = [text for text in strays.values() if text not in here.values() and text not in added]
            added += new
            moved += strays.values()
            ops.append(
                Edit(cell.id, cell.source, rest) if rest.strip() or cell.outputs else Delete(cell.id, cell.source)
            )
        if not ops:
            return
        first = [Edit(home.id, home.source, with_imports(home, here, added))] if added else []
        what = f"{len(moved)} import{'s' * (len(moved) > 1)}"
        yield Change("imports", f"move {what} to the imports cell, {label_of(home)}", (*first, *ops))

    def _bound_elsewhere(self, cell: Cell) -> bool:
        """Whether a cell above binds a name that this one imports to something else: then the order matters."""
        mine = {(item.name, item.module) for item in self.flows[cell.id].imports}
        names = {name for name, _ in mine}
        for other in self.flow.cells:
            if other.id == cell.id or not names & other.defines:
                continue
            theirs = {(item.name, item.module) for item in other.imports if item.name in names}
            if not theirs or not theirs <= mine or names & (other.defines - {n for n, _ in theirs}):
                return True
        return False

    # ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def renames(self, names: Mapping[str, str]) -> Iterator[Change]:
        """A variable gets the name that was found for it, in all cells, or in none."""
        every = {name for f in self.flow.cells for name in f.defines | f.uses | f.later | f.maybe}
        for old, new in names.items():
            if not is_free(new) or new in every or any(f.opens for f in self.flow.cells):
                continue
            meant = [
                cell for cell in self.cells if cell.type == "code" and re.search(rf"\b{re.escape(old)}\b", cell.source)
            ]
            pairs = [(cell, renamed(cell.source, old, new)) for cell in meant]
            ids = {cell.id for cell in self.free}
            if pairs and all(text is not None and (text == cell.source or cell.id in ids) for cell, text in pairs):
                every.add(new)
                ops = tuple(Edit(cell.id, cell.source, text) for cell, text in pairs if text and text != cell.source)
                yield Change("rename", f"rename `{old}` to `{new}` in {len(ops)} cell{'s' * (len(ops) > 1)}", ops)

    # ── sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def splits(self) -> Iterator[Change]:
        """A giant cell becomes several where its own comments begin new steps; the last keeps its outputs."""
        for cell in self.free:
            pieces = pieces_of(cell.source) if count_lines(cell.source) > GIANT and not is_kept(cell) else []
            if len(pieces) > 1:
                new = tuple(Insert(cell.id, "code", piece) for piece in pieces[:-1])
                title = f"split {label_of(cell)} ({count_lines(cell.source)} lines) into {len(pieces)} cells, where its comments begin new steps"
                yield Change("split", title, (*new, Edit(cell.id, cell.source, pieces[-1])))

    def merges(self) -> Iterator[Change]:
        """Tiny cells that only prepare the next one become one with it, under the next one's id and outputs."""
        place = 0
        while place < len(self.cells) - 1:
            group = [self.cells[place]]
            while group[-1].index + 1 < len(self.cells) and self._joins(group, self.cells[group[-1].index + 1]):
                group.append(self.cells[group[-1].index + 1])
            place += len(group)
            if len(group) > 1:
                last = group[-1]
                source = "\n".join(cell.source.rstrip("\n") for cell in group)
                title = f"merge {', '.join(label_of(c) for c in group)}: one step"
                yield Change(
                    "merge", title, (*(Delete(c.id, c.source) for c in group[:-1]), Edit(last.id, last.source, source))
                )

    def _joins(self, group: Sequence[Cell], after: Cell) -> bool:
        before, free = group[-1], {cell.id for cell in self.free}
        if before.id not in free or after.id not in free or before.outputs or is_kept(before) or is_kept(after):
            return False
        one, other = self.flows[before.id], self.flows[after.id]
        magic = any(split(c.source).magics or split(c.source).shell or split(c.source).heads for c in (before, after))
        if magic or one.shows or one.imports or one.opens or not self._is_small(before) or other.imports:
            return False
        if sum(count_lines(c.source) for c in (*group, after)) > WHOLE or (before.number is None) != (
            after.number is None
        ):
            return False
        if before.number is not None and after.number is not None and after.number != before.number + 1:
            return False
        return bool((one.defines | one.changes) & (other.uses | other.changes))

    def _is_small(self, cell: Cell) -> bool:
        tree = split(cell.source).tree
        plain = tree is not None and not any(
            isinstance(s, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) for s in tree.body
        )
        return plain and count_lines(cell.source) <= SMALL

    # ── headings ────────────────────────────────────────────────────────────────────────────────────────────────────

    def headings(self, taken: set[str]) -> Iterator[Change]:
        """A notebook of some length without any heading gets one where its steps change."""
        if len(self.code) < FEW or any(c.type == "markdown" and c.source.lstrip().startswith("#") for c in self.cells):
            return
        before = ""
        for cell in self.code:
            step = step_of(self.flows[cell.id], cell)
            if step and step != before and cell.id not in taken:
                yield Change(
                    "heading",
                    f"add the heading “{step}” above {label_of(cell)}",
                    (Insert(cell.id, "markdown", f"## {step}"),),
                )
            before = step or before


def summary(found: Sequence[Change]) -> str:
    """Return the changes as lines, for the record and the model."""
    return "\n".join(f"- {first_line(change.title, 160)}" for change in found)
