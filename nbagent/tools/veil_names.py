"""Follows hidden variables through the code that ran: which names were made of them.

A static look at the statements of each cell, in the order in which they ran; it runs nothing. It hides rather too much (the
length of a hidden table is made of it) than too little, and can't see what goes through files, containers that functions
change, or text that is run. Read `made_of`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from nbagent.tools import cellcode
from nbagent.tools.sqlcells import sql_parts

_MAGICS = frozenset({"run_cell_magic", "run_line_magic"})
_MOST = 3_000  # cells


def made_of(
    cells: Iterable[str], hidden: Callable[[str], bool], modules: Callable[[str], bool]
) -> Mapping[str, frozenset[str]]:
    """Return the names that `cells` made, one way or another, of names that are `hidden`: each with those names.

    A name that is bound anew to something else is free again. `modules` says which names are modules: calling something
    of theirs does not put anything into them.
    """
    made: dict[str, frozenset[str]] = {}
    for source in list(cells)[-_MOST:]:
        for statement in _statements(source):
            loads, stores, fills = _uses(statement)
            sources = frozenset[str]().union(
                *(made.get(name, frozenset()) | (frozenset({name}) if hidden(name) else frozenset()) for name in loads)
            )
            for name in stores:
                if sources - {name}:
                    made[name] = sources
                elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom):
                    made.pop(name, None)
            for name in fills:
                if sources - {name} and not modules(name):
                    made[name] = made.get(name, frozenset()) | sources
    return made


def _statements(source: str) -> Iterator[ast.stmt]:
    if (tree := cellcode.split(source).tree) is None:
        return
    for statement in tree.body:
        yield statement
        for node in ast.walk(statement):  # the body of a cell magic, as IPython passes it on
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", "") == "run_cell_magic"
                and len(node.args) == 3
            ):
                body = node.args[2]
                if isinstance(body, ast.Constant) and isinstance(body.value, str):
                    yield from _statements(body.value)


def _uses(statement: ast.stmt) -> tuple[set[str], set[str], set[str]]:
    """Return the names that a statement reads, those that it binds, and those whose objects it may put something into."""
    loads: set[str] = set()
    stores: set[str] = set()
    fills: set[str] = set()
    for part in sql_parts(ast.unparse(statement)) if _has_magic(statement) else ():
        loads |= {*part.uses, *part.uses_saved}
        stores |= {part.makes, part.saves} - {""}
    for node in ast.walk(statement):
        match node:
            case ast.Name(ctx=ast.Load()):
                loads.add(node.id)
            case ast.Name(ctx=ast.Store()):
                stores.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                stores.add(node.name)
            case ast.Import() | ast.ImportFrom():
                stores |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                fills |= {_root(node)}
            case ast.Expr(value=ast.Call(func=ast.Attribute() as function)):
                fills |= {_root(function)}
            case _:
                pass
    return loads, stores, fills - {"", "get_ipython"}


def _has_magic(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in _MAGICS for node in ast.walk(statement))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
