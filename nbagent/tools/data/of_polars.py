"""Describes polars' objects: frames, series, and lazy frames, of which a schema is only told where it is free.

A lazy frame made straight from a frame in memory has its schema at hand, and one whose schema the person has asked for
already. To resolve any other plan may open files, ask servers or call functions of the person's, and polars has no way
to tell beforehand which: it is left to them.
Must not import polars. Read `frame`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.kinds import find_own, held
from nbagent.tools.data.tabular import (
    COLUMNS,
    SAMPLE_FOR_COUNTS,
    Unread,
    first_line,
    head_line,
    kind_of,
    more_columns,
    of_rows,
    sample_lines,
)
from nbagent.tools.describe import brief, label_of, short

_LONG = 20_000  # bytes of a text that is not taken out of its column
NOT_RESOLVED = (
    "its columns are not told: to resolve the plan may read files or ask servers. they are told once .collect_schema() "
    "was called"
)


def own_frame(value: Any) -> Any:
    """Return the frame itself, or, of somebody's subclass, the same data as a frame of polars."""
    if find_own(value, {"polars:DataFrame": True}):
        return value
    return sys.modules["polars"].DataFrame._from_pydf(held(value)["_df"])  # noqa: SLF001


def own_series(value: Any) -> Any:
    """Return the series itself, or, of somebody's subclass, the same data as a series of polars."""
    if find_own(value, {"polars:Series": True}):
        return value
    return sys.modules["polars"].Series._from_pyseries(object.__getattribute__(value, "_s"))  # noqa: SLF001


def frame(value: Any) -> Iterator[str]:
    """Describe a DataFrame."""
    table = own_frame(value)
    rows, columns = table.shape
    names = (table.to_series(place).name for place in range(columns))
    yield head_line(kind_of(value, "polars DataFrame"), rows, columns, names)
    shown = [table.to_series(place) for place in range(min(columns, COLUMNS))]
    part = min(rows, SAMPLE_FOR_COUNTS)
    yield f"columns (name, dtype, missing in {of_rows(part, rows)}):"
    for column in shown:
        yield f"  {short(label_of(column.name), 200)}  {short(str(column.dtype), 80)}  {column.head(part).null_count()}"
    yield from more_columns(columns)
    labels = [column.name for column in shown]
    cells = [first_values(column, 3) for column in shown[:12]]
    yield from sample_lines(labels, rows, columns, lambda row, place: cells[place][row])


def first_values(column: Any, count: int) -> list[Any]:
    """Return the first values; what could be huge inside is left as a series, or as words for it."""
    head, kind = column.head(count), str(column.dtype)
    if kind.startswith("List"):
        return [head[place] for place in range(len(head))]  # a series each: nothing is copied
    if kind.startswith(("Struct", "Array")):
        return [Unread(kind)] * len(head)
    if kind in {"String", "Binary", "Categorical"} and kind != "Categorical":
        sizes = (head.str.len_bytes() if kind == "String" else head.bin.size()).to_list()
        return [Unread(f"{n:,} bytes") if n and n > _LONG else head[place] for place, n in enumerate(sizes)]
    return head.to_list()


def series(value: Any) -> Iterator[str]:
    """Describe a Series."""
    data = own_series(value)
    size = len(data)
    yield f"{kind_of(value, 'polars Series')} {label_of(data.name)} of {size:,}, {short(str(data.dtype), 80)}"
    part = min(size, SAMPLE_FOR_COUNTS)
    yield f"missing: {data.head(part).null_count()} in {of_rows(part, size)}"
    yield first_line(data.name, first_values(data, 10), size)


RESOLVED = frozenset({"DataFrameScan", "IR"})
"""Last steps of plans whose schema is no work: data in memory, and plans that were resolved before."""


def last_step(plan: Any) -> str:
    """Return what a lazy frame's plan ends with, "" where this polars can't tell."""
    return str(plan._node_name()) if hasattr(type(plan), "_node_name") else ""  # noqa: SLF001  (no other way to ask)


def lazy_frame(value: Any) -> Iterator[str]:
    """Describe a LazyFrame: its schema where that is no work; else what the plan ends with."""
    plan = held(value).get("_ldf")
    last = last_step(plan)
    if last not in RESOLVED:
        step = f", last step {short(last, 40)}" if last else ""
        yield f"{kind_of(value)}, lazy: not computed{step}"
        yield NOT_RESOLVED
        return
    schema = plan.collect_schema()
    names = ", ".join(short(label_of(name), 60) for name in itertools.islice(schema, 6))
    yield f"{kind_of(value)} {len(schema):,} columns, lazy: not computed: {names}{', …' if len(schema) > 6 else ''}"
    for name, dtype in itertools.islice(schema.items(), COLUMNS):
        yield f"  {short(label_of(name), 200)}  {short(str(dtype), 80)}"
    yield from more_columns(len(schema))


def grouped(value: Any) -> Iterator[str]:
    """Describe what group_by gives; nothing is grouped yet."""
    inside = held(value)
    by = ", ".join(brief(key, 1) for key in itertools.islice(inside.get("by") or (), 10))
    yield f"polars {type(value).__name__}{f' by {by}' if by else ''}, groups not worked out"
    if "df" in inside:
        yield f"of: {brief(inside['df'], 1)}"


def expression(_value: Any) -> Iterator[str]:
    """Name an expression; its text would walk through all of it."""
    yield "polars Expr, an expression: it has no values"
