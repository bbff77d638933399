"""The envelope of the source: short files, short functions, annotated, documented (see CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
import statistics
from typing import TYPE_CHECKING

from tests.source import PACKAGE, ROOT, files, functions, own_lines, short, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_LINES = 400
TEST_FILE_LINES = 600  # a list of cases is read in parts
FUNCTION_LINES = 60
FUNCTION_LINES_P95 = 35
DOCUMENTED = 0.95


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_files_are_short() -> None:
    scripts = [path for path in PACKAGE.rglob("*.js") if "node_modules" not in path.parts]
    long = {short(path): n for path in [*files(), *scripts] if (n := _lines(path)) > FILE_LINES}
    long |= {short(path): n for path in files(ROOT / "tests") if (n := _lines(path)) > TEST_FILE_LINES}
    assert long == {}


def test_functions_are_short() -> None:
    lengths = {f"{short(path)}:{name}": own_lines(f) for path in files() for name, f in functions(path)}
    assert {name: n for name, n in lengths.items() if n > FUNCTION_LINES} == {}
    assert statistics.quantiles(lengths.values(), n=20)[-1] <= FUNCTION_LINES_P95


def test_the_loop_fits_one_screen() -> None:
    (run,) = [f for name, f in functions(PACKAGE / "core" / "loop.py") if name == "run"]
    assert own_lines(run) <= 50


def test_every_function_says_what_it_returns() -> None:
    bare = [f"{short(path)}:{name}" for path in files() for name, f in functions(path) if f.returns is None]
    bare = [name for name in bare if not name.endswith("__init__")]
    assert bare == []


def _public(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """What a reader may use of a file: its module, public classes, functions and methods (not nested functions)."""
    yield short(path), tree(path)
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{short(path)}:{node.name}", node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith("_"):
                    yield f"{short(path)}:{node.name}.{inner.name}", inner


def _is_overload(node: ast.AST) -> bool:
    return any(ast.unparse(d).endswith("overload") for d in getattr(node, "decorator_list", []))


def test_what_is_public_is_documented() -> None:
    public = [(name, node) for path in files() for name, node in _public(path) if not _is_overload(node)]
    bare = [name for name, node in public if ast.get_docstring(node) is None]  # type: ignore[arg-type]  # all have docs
    assert len(bare) <= (1 - DOCUMENTED) * len(public), bare


def test_every_module_says_what_it_is_for() -> None:
    bare = [short(path) for path in files() if len(ast.get_docstring(tree(path)) or "") < 30]
    assert bare == []


def test_every_ignored_type_has_its_reason() -> None:
    pattern = re.compile(r"#\s*(?:type: ignore|pyright: ignore)(?:\[[^\]]*\])?\s*$")
    bare = [
        f"{short(path)}:{number}"
        for path in files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert bare == []
