"""Gives a variable of the notebook another name in a cell's source, only where that very variable is meant.

A local variable, an argument, an attribute or a keyword of the same name stays. Where a text might mean the variable (a
query, a shell line, an f-string of an old Python) nothing is renamed: `None` says so. Pure. Read `renamed`.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys

from nbagent.tools.cellcode import parse
from nbagent.tools.flowmagics import shell_names


def is_free(name: str) -> bool:
    """Whether a name may be given to a variable: no keyword, nothing of Python's own."""
    return (
        name.isidentifier() and not keyword.iskeyword(name) and not hasattr(builtins, name) and not name.startswith("_")
    )


def renamed(source: str, old: str, new: str) -> str | None:
    """Return the source with the notebook's variable `old` called `new`; None where that can't be done safely."""
    tree = parse(source)
    if tree is None:
        return source if old not in _words(source) else None
    finder = _Finder(old)
    try:
        finder.visit(tree)
    except RecursionError:
        return None
    if finder.unsafe or (finder.places and new in finder.all_names):
        return None
    lines = source.splitlines(keepends=True)
    for line, column in sorted(finder.places, reverse=True):
        raw = lines[line - 1].encode()
        end = column + len(old.encode())
        if raw[column:end].decode("utf-8", "replace") != old:
            return None
        lines[line - 1] = (raw[:column] + new.encode() + raw[end:]).decode()
    return "".join(lines)


def _words(source: str) -> set[str]:
    return set(shell_names(source)) | set(re.findall(r"[^\W\d]\w*", source))


class _Finder(ast.NodeVisitor):
    """Finds where a variable of the notebook stands in a cell."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: list[tuple[int, int]] = []
        self.all_names: set[str] = set()
        self.unsafe = False
        self._hidden = 0

    def visit_Name(self, node: ast.Name) -> None:
        self.all_names.add(node.id)
        if node.id == self.name and not self._hidden:
            self.places.append((node.lineno, node.col_offset))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and self.name in _words(node.value):
            self.unsafe = True

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        if sys.version_info < (3, 12) and any(isinstance(n, ast.Name) and n.id == self.name for n in ast.walk(node)):
            self.unsafe = True  # where it stands is not told there
        else:
            self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.unsafe = self.unsafe or self.name in node.names

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        self.unsafe = self.unsafe or self.name in bound

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.unsafe = self.unsafe or node.name == self.name
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.unsafe = self.unsafe or node.name == self.name
        for outside in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(outside)
        self._inside(node.body, hidden=self._is_local(node.args, node.body))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outside in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(outside)
        self._inside([node.body], hidden=self._is_local(node.args, []))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        stored = any(
            isinstance(n, ast.Name) and n.id == self.name and isinstance(n.ctx, ast.Store) for n in ast.walk(node)
        )
        self.unsafe = self.unsafe or node.name == self.name or stored
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        targets = [n for g in node.generators for n in ast.walk(g.target)]
        own = any(isinstance(n, ast.Name) and n.id == self.name for n in targets)
        self.unsafe = self.unsafe or own  # its first iterable is another scope: too fine to be worth it
        self.generic_visit(node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815

    def _is_local(self, args: ast.arguments, body: list[ast.stmt]) -> bool:
        given = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a)]
        if any(arg.arg == self.name for arg in given):
            return True
        inner = [n for statement in body for n in ast.walk(statement)]
        return any(
            isinstance(n, ast.Name) and n.id == self.name and isinstance(n.ctx, ast.Store | ast.Del) for n in inner
        )

    def _inside(self, body: list[ast.stmt] | list[ast.expr], *, hidden: bool) -> None:
        self._hidden += hidden
        for part in body:
            self.visit(part)
        self._hidden -= hidden
