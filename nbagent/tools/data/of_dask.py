"""Describes dask's collections by what is known before anything is computed: types, names, partitions, chunks.

How many partitions a frame has is only told where it is known without work: of files it would read metadata, after
set_index it would compute the divisions. Must not import dask. Read `frame`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.kinds import held, is_a, names_of
from nbagent.tools.data.of_pandas import dtype_words
from nbagent.tools.data.tabular import COLUMNS, more_columns, size_of
from nbagent.tools.describe import brief, label_of, short

_NODES = 200
_IN_MEMORY = ("FromPandas", "FromArray", "FromGraph", "FromDelayed")


def frame(value: Any) -> Iterator[str]:
    """Describe a DataFrame, a Series or an Index of dask by its empty example; nothing is computed."""
    expression = held(value).get("_expr")
    example = held(expression).get("_meta")
    kind = f"dask {type(value).__name__}"
    if is_a(example, "pandas:DataFrame"):
        columns = example.shape[1]
        names = ", ".join(short(label_of(label), 60) for label in itertools.islice(example.columns, 6))
        yield f"{kind} {columns:,} columns, lazy: not computed: {names}{', …' if columns > 6 else ''}"
        yield _partitions(expression)
        yield "columns (label, dtype):"
        shown = example.iloc[:, :COLUMNS]
        for label, dtype in zip(shown.columns, shown.dtypes, strict=True):
            yield f"  {short(label_of(label), 200)}  {dtype_words(dtype)}"
        yield from more_columns(columns)
    elif is_a(example, "pandas:Series", "pandas:Index"):
        yield f"{kind} {label_of(example.name)}, {dtype_words(example.dtype)}, lazy: not computed"
        yield _partitions(expression)
    else:
        yield f"{kind}, lazy: not computed"
        yield "its type is not worked out yet"


def _partitions(expression: Any) -> str:
    """Say how many partitions there are, where all that leads there is in memory and keeps them as they are."""
    stack, seen = [expression], 0
    while stack:
        one = stack.pop()
        seen += 1
        names = {name.rpartition(".")[2] for name in names_of(type(one))}
        known = bool(names & {*_IN_MEMORY}) or ("Blockwise" in names and "IO" not in names)
        if seen > _NODES or not known:
            return "number of partitions not told: it would be work"
        if not names & {*_IN_MEMORY}:
            stack += [operand for operand in held(one).get("operands") or () if is_a(operand, "dask:Expr")]
    return f"{expression.npartitions:,} partitions"


def array(value: Any) -> Iterator[str]:
    """Describe an Array by its chunks; nothing is computed."""
    chunks, shape = value.chunks, tuple(value.shape)
    told = ", ".join("?" if _unknown(n) else f"{n:,}" for n in shape)
    yield f"dask Array ({told}{',' if len(shape) == 1 else ''}) {value.dtype}, lazy: not computed"
    blocks = math.prod(len(along) for along in chunks)
    largest = " x ".join("?" if any(map(_unknown, along[:100])) else f"{max(along, default=0):,}" for along in chunks)
    yield f"{blocks:,} chunks of up to {largest}"
    if not any(map(_unknown, shape)):
        yield f"computed it would be {size_of(math.prod(shape) * value.dtype.itemsize)}"
    yield _layers(value.dask)


def _unknown(size: Any) -> bool:
    return type(size) is not int and not is_a(size, "numpy:integer")


def _layers(graph: Any) -> str:
    layers = held(graph).get("layers")
    return f"{len(layers):,} steps to compute it" if type(layers) is dict else "its steps are not looked at"


def bag(value: Any) -> Iterator[str]:
    """Describe a Bag; no item is computed."""
    inside = held(value)
    yield f"dask Bag of {brief(inside.get('npartitions'), 1)} partitions, lazy: not computed"
    yield _layers(inside.get("dask"))


def delayed(value: Any) -> Iterator[str]:
    """Describe a Delayed by its key; it is not called."""
    key = object.__getattribute__(value, "_key")
    yield f"dask {type(value).__name__} {short(brief(key, 1), 80)}, lazy: not computed"
    yield _layers(object.__getattribute__(value, "_dask"))


def future(value: Any) -> Iterator[str]:
    """Describe a Future of distributed: its key and how it stands; nothing is waited for."""
    inside = held(value)
    state = held(inside.get("_state"))
    status = state.get("status")
    yield f"dask Future {short(brief(inside.get('key'), 1), 80)}, {status if type(status) is str else 'not asked'}"


def grouped(value: Any) -> Iterator[str]:
    """Name what groupby and rolling give; nothing is computed."""
    yield f"dask {type(value).__name__}, lazy: not computed"
    whole = held(value).get("obj")
    if whole is not None:
        yield f"of: {brief(whole, 1)}"
