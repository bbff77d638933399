"""What holds for the notebook of every task, and how a checker looks into tables whose shape nobody prescribed.

Nothing here looks at words of the agent: only at cells, values, outputs and files. Read `well_kept` and `says`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from tests.analysis.desk import Work, hashes, is_ours

LONGEST_CELL = 18
"""Lines with code in a cell of one step."""
_LOOKS = {"head", "tail", "info", "describe", "sample", "keys", "unique", "nunique", "value_counts", "isna", "print"}
_DRAWS = re.compile(r"\.(plot|bar|barh|hist|scatter|boxplot|violinplot|subplots|lineplot|barplot)\b")
_LOADS = re.compile(r"\.(read_csv|read_excel|read_parquet|scan_parquet|ParquetFile|read_table|read_json)\b")


def well_kept(work: Work, *results: str, figures: int = 0) -> None:
    """Assert that the notebook can be kept: it runs from a clean kernel, has the `results`, is in order, and touched nothing else."""
    assert not work.error, f"it does not run from a clean kernel: {work.error}"
    for name in results:
        assert name in work.live, f"there is no {name!r} in the kernel"
        assert name in work.clean, f"there is no {name!r} after a run from a clean kernel"
        assert same(work.live[name], work.clean[name]), f"{name!r} is another one after a run from a clean kernel"
    assert hashes(work.folder) == dict(work.before), "the data files are not as they were"
    _originals_stay(work)
    added = [
        cell for cell in work.notebook.cells if cell.id not in {one.id for one in work.start} and not is_ours(cell)
    ]
    _ran(added)
    _in_order(added, results)
    drawn = [axes for axes in work.axes if axes.drawn]
    assert len(drawn) >= figures, f"{figures} figures were wanted, there are {len(drawn)}"
    assert all(axes.x.strip() and axes.y.strip() for axes in drawn), "an axis has no name"
    pictures = [out for cell in added for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) >= min(figures, 1), "no figure is in the notebook"


def _originals_stay(work: Work) -> None:
    cells = {cell.id: cell.source for cell in work.notebook.cells}
    for cell in work.start:
        assert cells.get(cell.id) == cell.source, f"the person's cell was changed: {cell.source}"


def _ran(added: Sequence[NotebookNode]) -> None:
    for cell in added:
        if cell.cell_type == "code":
            assert cell.execution_count is not None, f"a cell never ran: {cell.source}"
            assert not any(out.output_type == "error" for out in cell.outputs), f"a cell failed: {cell.source}"


def _in_order(added: Sequence[NotebookNode], results: Sequence[str]) -> None:
    """Assert: one step a cell, imports together, a heading, nothing left over."""
    code = [cell.source for cell in added if cell.cell_type == "code"]
    assert code, "no cell was added"
    assert any(cell.cell_type == "markdown" and cell.source.lstrip().startswith("#") for cell in added), (
        "there is no heading"
    )
    trees = [tree_of(source) for source in code]
    importing = [
        tree for tree in trees if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))
    ]
    assert len(importing) <= 1, "imports stand in more than one cell"
    assert len(set(code)) == len(code), "a cell is there twice"
    for source, tree in zip(code, trees, strict=True):
        lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert lines, "a cell is empty"
        assert len(lines) <= LONGEST_CELL, f"a cell has more than one step:\n{source}"
        assert not (_LOADS.search(source) and _DRAWS.search(source)), f"a cell loads and draws:\n{source}"
        assert not _only_looks(tree), f"a look was left over: {source}"
        for line in source.splitlines():
            assert not _was_code(line), f"code that was commented out is left over: {line}"
    made = {
        node.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    read = {
        node.id
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    left = {name for name in made - read - set(results) if not name.startswith("_")}
    # ax = df.plot(); fig, ax = … : the figure itself is what counts
    assert not left - {"ax", "axes", "fig"}, f"names that nothing uses are left over: {sorted(left)}"


def tree_of(source: str) -> ast.Module:
    """Return the syntax tree of a cell, magics included."""
    return ast.parse(TransformerManager().transform_cell(source))


def _only_looks(tree: ast.Module) -> bool:
    if not tree.body or not all(isinstance(node, ast.Expr) for node in tree.body):
        return False
    last: Any = [node.value for node in tree.body if isinstance(node, ast.Expr)][-1]
    if isinstance(last, ast.Attribute):
        return last.attr in {"shape", "columns", "dtypes", "index"}
    if not isinstance(last, ast.Call):
        return False
    called: Any = last.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in _LOOKS


def _was_code(line: str) -> bool:
    text = line.strip()
    if not text.startswith("#"):
        return False
    try:
        body = ast.parse(text.lstrip("# ")).body
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.Assign | ast.Import | ast.ImportFrom) for node in body) or any(
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) for node in body
    )


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def same(one: Any, other: Any) -> bool:
    """Whether two values of two runs are equal: tables by their cells, which threads may have added up in another order."""
    if isinstance(one, pd.DataFrame | pd.Series):
        if not isinstance(other, type(one)):
            return False
        compare: Any = (
            pd.testing.assert_frame_equal if isinstance(one, pd.DataFrame) else pd.testing.assert_series_equal
        )
        try:
            compare(one, other, rtol=1e-9)
        except AssertionError:
            return False
        return True
    try:
        return bool(one == other) or (one != one and other != other)  # noqa: PLR0124
    except (TypeError, ValueError):
        return repr(one) == repr(other)


def frame(work: Work, name: str) -> pd.DataFrame:
    """Return a result as a pandas table, whatever made it."""
    value = work.clean[name]
    if isinstance(value, pd.Series):
        return value.to_frame(value.name if value.name is not None else "value")
    if isinstance(value, dict):
        return pd.Series(value).to_frame("value")
    if hasattr(value, "to_pandas"):
        return value.to_pandas()
    assert isinstance(value, pd.DataFrame), f"{name!r} is no table, it is {type(value).__name__}"
    return value


def says(found: pd.DataFrame, keys: Sequence[object], number: float, *, within: float = 1e-3, what: str = "") -> None:
    """Assert that a table, long or wide, has `number` where `keys` meet: labels of its row or column (relative error `within`)."""
    wanted = {label(key) for key in keys}
    there = [value for labels, value in numbers(found) if wanted <= labels]
    assert there, f"the table has nothing for {sorted(wanted)}{what and ': '}{what}"
    assert any(math.isclose(value, number, rel_tol=within, abs_tol=1e-9) for value in there), (
        f"for {sorted(wanted)} it should be {number:g}, it says {there[:8]}{what and ': '}{what}"
    )


def sums_to(found: pd.DataFrame, total: float, what: str) -> None:
    """Assert that one column of numbers, or all numbers of a wide table, add up to `total`."""
    numeric = found.select_dtypes("number")
    sums = [*(float(numeric[column].sum()) for column in numeric), float(numeric.to_numpy().sum())]
    assert any(math.isclose(one, total, rel_tol=1e-6) for one in sums), (
        f"{what}: should be {total:g} in all, it is {sums}"
    )


def numbers(found: pd.DataFrame) -> Iterator[tuple[set[str], float]]:
    """Yield each number of a table with the labels of its row (index and texts) and its column."""
    columns = [
        {label(part) for part in (column if isinstance(column, tuple) else (column,))} for column in found.columns
    ]
    for index, row in zip(found.index, found.itertuples(index=False, name=None), strict=True):
        own = {label(part) for part in (index if isinstance(index, tuple) else (index,))}
        own |= {label(value) for value in row}
        for value, column in zip(row, columns, strict=True):
            if isinstance(value, int | float) or hasattr(value, "__float__"):
                yield own | column, float(value)


def label(value: object) -> str:
    """Return what a label is compared by: times as dates, numbers without their type, missing as "?"."""
    if value is None or (isinstance(value, float) and value != value) or value is pd.NaT or value is pd.NA:  # noqa: PLR0124
        return "?"
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")  # pyright: ignore[reportAttributeAccessIssue]
    return f"{value:g}" if isinstance(value, float) else str(value)
