"""Small questions about pieces of Python's syntax. It knows nothing of what the code means."""

from __future__ import annotations

import ast
from collections.abc import Iterable

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def flat(targets: Iterable[ast.expr]) -> Iterable[ast.expr]:
    """Yield the single targets of an assignment."""
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from flat(target.elts)
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def is_generator(body: Function) -> bool:
    """Whether a function has a `yield` of its own."""
    rest: list[ast.AST] = list(ast.iter_child_nodes(body))
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            rest.extend(ast.iter_child_nodes(node))
    return False


def method_of(body: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the method of that name that a class defines."""
    for node in body.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    return None


def is_minus(node: ast.expr) -> bool:
    """Whether an index is a number from the end: `items[-1]`."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
