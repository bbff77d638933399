"""One line after a cell was added that is not as cells worth keeping are: stray imports, a name that hides another, only a look.

Pure: from the new source and the cells as they were last listed. Read `hint_on`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from nbagent.core.ports import Cell
from nbagent.tools.cellcode import split
from nbagent.tools.cellflow import flow_of
from nbagent.tools.dataflow import dataflow
from nbagent.tools.ledger import label_of
from nbagent.tools.tidysource import imports_cell, plain
from nbagent.tools.verdict import is_verifiable

_LOOKS = frozenset(
    {"head", "tail", "info", "sample", "columns", "dtypes", "shape", "index", "describe", "nunique", "isna", "sum"}
)
_LONGEST = 300
"""Cells of a notebook up to which an added one is compared with them."""


def hint_on(source: str, cells: Sequence[Cell], added: str) -> str:
    """Return what the model should know of a code cell that it added (its id is `added`), "" where it is as it should be."""
    others = [cell for cell in cells if cell.id != added and is_verifiable(cell)][:_LONGEST]
    if not others:
        return ""
    said = [_imports(source, others), _twice(source, others), _hides(source, others), _only_looks(source)]
    return " ".join(text for text in said if text)


def _imports(source: str, others: Sequence[Cell]) -> str:
    found = flow_of("", 0, source).imports
    home = imports_cell(others, dataflow(others)) if found else None
    if home is None:
        return ""
    names = ", ".join(f"`{item.name}`" for item in found[:4])
    return f"Hint: {label_of(home)} ({home.id}) is the notebook's imports cell: the import of {names} belongs there."


def _twice(source: str, others: Sequence[Cell]) -> str:
    mine = plain(source)
    same = next((cell for cell in others if plain(cell.source) == mine), None)
    return (
        f"Hint: {label_of(same)} ({same.id}) has the same code: run that with run_cell instead."
        if same is not None
        else ""
    )


def _hides(source: str, others: Sequence[Cell]) -> str:
    flow = flow_of("", 0, source)
    mine = flow.defines - {item.name for item in flow.imports} - flow.uses
    own = sorted(name for name in mine if hasattr(builtins, name) and not name.startswith("_"))
    if own:
        return f"Hint: `{own[0]}` hides Python's own: take another name."
    for cell in others:
        theirs = flow_of("", 0, cell.source)
        names = {item.name for item in theirs.imports} & mine
        if names:
            return f"Hint: `{min(names)}` is imported in {label_of(cell)}, and hidden now: take another name."
    return ""


def _only_looks(source: str) -> str:
    tree = split(source).tree
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return ""
    value = tree.body[0].value
    value = value.func if isinstance(value, ast.Call) else value
    looks = isinstance(value, ast.Name) or (
        isinstance(value, ast.Attribute) and value.attr in _LOOKS and _is_name(value.value)
    )
    return (
        "Hint: a cell that only looks is not worth keeping: look with run_python or inspect_variable." if looks else ""
    )


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name))
