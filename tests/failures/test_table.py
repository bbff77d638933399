"""Every row of groups (b) kernel, (c) notebooks and (d) variables of the failure cases has a test that says its number.

The cases themselves are not part of this repository: `ROWS` holds their numbers and short names. A test names the rows
that it stands for at the start of its docstring, as `Row 45:` or `Rows 45, 46:`; so may a module for all of its tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source import ROOT, files, short, tree

ROWS = {
    27: "buttons dead while a cell runs", 29: "a click runs on another thread", 30: "output of hooks dropped",
    31: "dead subshell", 33: "nested loop", 34: "nest_asyncio present", 35: "late interrupt while awaiting",
    37: "the agent carries on after Stop", 38: "zombie task", 39: "output of threads in the wrong cell",
    41: "figures not captured", 42: "errors not in captured text", 43: "raw file descriptors",
    45: "shell waits for stdin", 46: "children survive", 47: "exit() kills the kernel",
    49: "late effects after a timeout", 50: "fork", 51: "history and counters", 53: "braces in prompts",
    54: "empty body and odd front ends", 55: "%reset, del, restart", 57: "shadowed names",
    58: "dead widgets in a reopened notebook", 59: "approval open at a kernel restart", 61: "huge output",
    62: "swallowed error of a callback", 63: "bloat of widget state", 65: "generator closed in another task",
    66: "progress bars", 67: "nobody there to click", 69: "recursion",
    70: "invented cell ids", 71: "insert at the top", 73: "edits that are not there", 74: "unsaved edits in the editor",
    75: "file changed on disk", 77: "path unknown or wrong", 78: "wrong notebook", 79: "a 4.4 file gets ids",
    81: "unreadable files", 82: "a surrogate empties the notebook", 83: "encoding and line ends",
    85: "data lost by rewriting", 86: "outputs eat the context", 87: "image replaced by an error text",
    89: "stale outputs", 90: "expensive re-run", 91: "hidden state",
    93: "repr raises", 94: "looking has effects", 95: "lazy data computed", 97: "recursive containers",
    98: "odd column labels and values", 99: "a shortened print taken as whole", 101: "kept alive",
}  # fmt: skip

WAIVED: dict[int, str] = {}
"""Rows without a test, at most three, each with its reason."""

_SAYS = re.compile(r"\bRows? (\d+(?:(?:, | and | to )\d+)*)")


def numbers(docstring: str) -> set[int]:
    """Return the rows that a docstring names: `Row 45:`, `Rows 45, 46 and 50:`, `Rows 70 to 73:`."""
    found: set[int] = set()
    for text in _SAYS.findall(docstring):
        parts = re.split(r", | and ", text)
        for part in parts:
            first, _, last = part.partition(" to ")
            found.update(n for n in range(int(first), int(last or first) + 1) if n in ROWS or not last)
    return found


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a file's tests, and of the module where it has tests."""
    tests = [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    if tests and path != Path(__file__):
        yield short(path), ast.get_docstring(tree(path)) or ""
        yield from ((f"{short(path)}:{test.name}", ast.get_docstring(test) or "") for test in tests)


def told() -> dict[int, list[str]]:
    """Return the names of the tests of each row."""
    by_row: dict[int, list[str]] = {}
    for path in files(ROOT / "tests"):
        for name, docstring in _docstrings(path):
            for number in numbers(docstring):
                by_row.setdefault(number, []).append(name)
    return by_row


@pytest.mark.slow
def test_every_row_has_a_test_that_names_it() -> None:
    tests = told()
    missing = {number: name for number, name in ROWS.items() if number not in tests and number not in WAIVED}
    assert missing == {}


@pytest.mark.slow
def test_at_most_three_rows_are_waived_each_with_its_reason() -> None:
    assert len(WAIVED) <= 3
    assert all(number in ROWS and len(reason) > 30 for number, reason in WAIVED.items())
    assert not set(WAIVED) & set(told()), "a row with a test is not waived"


def test_a_docstring_names_rows_in_any_of_the_usual_ways() -> None:
    assert numbers("Row 45: x") == {45}
    assert numbers("Rows 27 and 29 end to end.") == {27, 29}
    assert numbers("Rows 1, 35, 37, 38: wherever a run is stopped") == {1, 35, 37, 38}
    assert numbers("Rows 70 to 74.") == {70, 71, 73, 74}
    assert numbers("Rows of a table, 12 columns") == set()
