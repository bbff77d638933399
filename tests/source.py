"""nbagent's own source as the tests of its shape see it: files, syntax trees, functions, imports."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "nbagent"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def files(folder: Path = PACKAGE) -> list[Path]:
    """All Python files of a folder."""
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def short(path: Path) -> str:
    """A file's path as it is named in tables and failures: `core/loop.py`, `tests/test_size.py`."""
    base = PACKAGE if path.is_relative_to(PACKAGE) else ROOT
    return path.relative_to(base).as_posix()


@dataclass(frozen=True)
class Import:
    """One imported module: where, whether it is read only inside a function, and whether only for type checkers."""

    file: str
    line: int
    module: str
    lazy: bool
    typing_only: bool

    @property
    def top(self) -> str:
        """The package that it comes from."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """All imports of a file, inside functions too; `from nbagent import core` gives nbagent.core."""
    return tuple(_imports(tree(path), path, lazy=False, typing_only=False))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a node and may hold statements: no expression does."""
    return (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _imports(node: ast.AST, path: Path, *, lazy: bool, typing_only: bool) -> Iterator[Import]:
    for child in _statements(node):
        if isinstance(child, ast.Import):
            for name in child.names:
                yield Import(short(path), child.lineno, name.name, lazy, typing_only)
        elif isinstance(child, ast.ImportFrom):
            yield from _import_from(child, path, lazy, typing_only)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                block = ast.Module([statement], [])
                yield from _imports(block, path, lazy=lazy, typing_only=True)
        else:
            inside = lazy or isinstance(child, Function)
            yield from _imports(child, path, lazy=inside, typing_only=typing_only)


def _import_from(node: ast.ImportFrom, path: Path, lazy: bool, typing_only: bool) -> Iterator[Import]:
    module = node.module or ""
    if node.level:
        base = path.relative_to(ROOT).with_suffix("").parts[: -node.level]
        module = ".".join([*base, *([module] if module else [])])
    for name in node.names:
        sub = ROOT.joinpath(*module.split("."), name.name)
        is_module = module.startswith("nbagent") and (sub.is_dir() or sub.with_suffix(".py").is_file())
        yield Import(short(path), node.lineno, f"{module}.{name.name}" if is_module else module, lazy, typing_only)


def functions(path: Path) -> Iterator[tuple[str, Function]]:
    """All functions of a file, nested ones and methods too, with their qualified names."""
    yield from _functions(tree(path), "")


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in _statements(node):
        if isinstance(child, Function):
            yield f"{prefix}{child.name}", child
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def own_lines(function: Function) -> int:
    """How long a function is from `def` to its end, its docstring and nested functions not counted."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        doc = function.body[0]
        total -= (doc.end_lineno or doc.lineno) - doc.lineno + 1
    nested = [n for n in ast.walk(function) if isinstance(n, Function) and n is not function]
    inner = [n for n in nested if not any(n is not m and n in ast.walk(m) for m in nested)]
    return total - sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in inner)
