"""What fingerprints take of tables and arrays: pandas, polars, numpy, pyarrow, scipy, torch, all told by their types' names.

Nothing is imported for them: an object of a library is only there when the library is. Only classes of the library
itself are looked into; what a person's subclass overrides would be their code. Read `feed`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nbagent.tools.data.kinds import class_name, find_own

_COLUMNS = 1_000
_ROWS = 2_000


class Taker(Protocol):
    """What a fingerprint is made with (`fingerprints.Digest`)."""

    def tag(self, text: str) -> None:
        """Take a text of the value's form."""
        ...

    def data(self, view: memoryview) -> None:
        """Take bytes."""
        ...

    def sampled(self) -> None:
        """Say that not all was looked at."""
        ...

    def opaque(self, value: object) -> None:
        """Take a value by its type only."""
        ...

    def values(self, items: Sequence[Any], depth: int) -> None:
        """Take the items of a sequence."""
        ...


def feed(made: Taker, value: Any) -> bool:
    """Take the value if it is a table or an array of a known library; return whether it is."""
    found = find_own(value, _FEED)
    if found is None:
        return False
    found(made, value)
    return True


def sizes(value: Any) -> dict[str, int] | None:
    """Return rows and columns, or the length of each axis, of a table or an array; None for any other value."""
    found = find_own(value, _SIZES)
    return None if found is None else found(value)


def _spread(size: int, count: int) -> int:
    """The step by which at most `count` of `size` items are taken."""
    return max(1, -(-size // count))


# ── numpy, torch, scipy ──────────────────────────────────────────────────────────────────────────────────────────────


def _array(made: Taker, value: Any) -> None:
    made.tag(f"{value.dtype!s}{tuple(value.shape)}")
    if value.dtype.hasobject:
        made.values(value.reshape(-1).tolist() if value.dtype.kind == "O" else [str(value.dtype)], 4)
        return
    if not value.flags.c_contiguous:  # how it lies in memory is not what it holds
        if (step := _spread(value.nbytes, 1 << 26)) > 1:
            made.sampled()
        value = value[::step].copy(order="C")
    made.data(memoryview(value.reshape(-1).view("u1")) if value.size else memoryview(b""))


def _masked(made: Taker, value: Any) -> None:
    _array(made, value.filled())
    made.tag(str(value.mask.ndim))
    _array(made, value.mask)


def _number(made: Taker, value: Any) -> None:
    made.tag(str(value.dtype))
    made.data(memoryview(value.tobytes()))


def _tensor(made: Taker, value: Any) -> None:
    made.tag(f"{value.dtype!s}{tuple(value.shape)}")
    if value.device.type != "cpu" or value.layout is not sys.modules["torch"].strided:
        made.opaque(value)  # to look would move it through the bus
        return
    part = value.detach().reshape(-1)
    if (step := _spread(part.numel() * part.element_size(), 1 << 26)) > 1:
        made.sampled()
        part = part[::step]
    made.data(memoryview(part.contiguous().view(sys.modules["torch"].uint8).numpy()))


def _sparse(made: Taker, value: Any) -> None:
    inside = object.__getattribute__(value, "__dict__")
    made.tag(repr(tuple(value.shape)))
    for name in sorted(inside):
        if name in {"data", "indices", "indptr", "coords", "row", "col", "offsets", "rows"}:
            arrays = inside[name] if type(inside[name]) is tuple else (inside[name],)
            for array in arrays:
                _array(made, array)


# ── pandas ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _frame(made: Taker, value: Any) -> None:
    rows, columns = value.shape
    made.tag(f"{rows} x {columns}")
    _index(made, value.columns)
    _index(made, value.index)
    if (step := _spread(columns, _COLUMNS)) > 1:
        made.sampled()
    for place in range(0, columns, step):
        _column(made, value.iloc[:, place].array)


def _series(made: Taker, value: Any) -> None:
    made.values([value.name], 3)
    _index(made, value.index)
    _column(made, value.array)


def _index(made: Taker, index: Any) -> None:
    made.tag(class_name(type(index)))
    made.values(list(index.names), 3)
    if class_name(type(index)).endswith("RangeIndex"):
        made.tag(repr((index.start, index.stop, index.step)))
    elif class_name(type(index)).endswith("MultiIndex"):
        for level in index.levels:
            _index(made, level)
        for codes in index.codes:
            _array(made, codes)
    else:
        _column(made, index.array)


def _column(made: Taker, array: Any) -> None:
    """Take a column by its kind of array, each by the numpy or arrow arrays that it consists of."""
    made.tag(str(array.dtype))
    if type(array).__module__.partition(".")[0] != "pandas":  # geometry, units: made of objects of their own
        made.tag(str(len(array)))
        made.opaque(array)
        return
    inside = {name: getattr(array, name, None) for name in ("_mask", "_codes", "_left", "_pa_array", "_sparse_values")}
    if inside["_pa_array"] is not None:
        _arrow(made, inside["_pa_array"])
    elif inside["_mask"] is not None:
        _array(made, inside["_mask"])
        _array(made, array._data[~inside["_mask"]])  # noqa: SLF001  (what lies under the mask is anything)
    elif inside["_codes"] is not None:
        _array(made, inside["_codes"])
        _index(made, array.categories)
    elif inside["_left"] is not None:
        _column(made, _as_array(array.left))
        _column(made, _as_array(array.right))
    elif inside["_sparse_values"] is not None:
        _array(made, array.sp_values)
        _array(made, array.sp_index.indices)
    elif (plain := getattr(array, "_ndarray", None)) is not None:
        _array(made, plain)
    else:
        step = _spread(len(array), _ROWS)
        made.values(list(array[::step]), 4)
        made.sampled()


def _as_array(side: Any) -> Any:
    return getattr(side, "array", side)


# ── polars, pyarrow ──────────────────────────────────────────────────────────────────────────────────────────────────


def _polars_frame(made: Taker, value: Any) -> None:
    made.tag(f"{value.height} x {value.width}")
    if (step := _spread(value.width, _COLUMNS)) > 1:
        made.sampled()
    for column in itertools.islice(value.get_columns(), 0, None, step):
        _polars_series(made, column)


def _polars_series(made: Taker, value: Any) -> None:
    made.tag(f"{value.name}:{value.dtype}:{len(value)}")
    if str(value.dtype) == "Object":
        made.opaque(value)
        return
    hashed = value.hash()
    made.tag(str(hashed.sum()))  # every value counts, wherever it stands; the sample tells an order
    made.values(hashed.gather_every(_spread(len(value), _ROWS)).to_list(), 2)


def _arrow(made: Taker, value: Any) -> None:
    """Take an arrow array; what lies in its buffers under a null is anything, so such a one is taken by samples."""
    made.tag(f"{value.type}:{len(value)}:{value.null_count}")
    chunks = value.chunks if hasattr(value, "chunks") else [value]
    kind = str(value.type)
    if value.null_count or kind == "bool" or "<" in kind:
        step = _spread(len(value), _ROWS)
        if step > 1:
            made.sampled()
        made.values([value[place].as_py() for place in range(0, len(value), step)], 4)
        return
    for chunk in chunks:
        made.tag(f"{chunk.offset}:{len(chunk)}")
        for buffer in chunk.buffers():
            made.data(memoryview(buffer) if buffer is not None else memoryview(b""))


def _arrow_table(made: Taker, value: Any) -> None:
    made.tag(f"{value.num_rows} x {value.num_columns}")
    made.values([str(name) for name in value.schema.names], 2)
    for place in range(0, value.num_columns, _spread(value.num_columns, _COLUMNS)):
        _arrow(made, value.column(place))


_FEED: dict[str, Callable[[Taker, Any], None]] = {
    "numpy:ndarray": _array,
    "numpy:generic": _number,
    "numpy:MaskedArray": _masked,
    "torch:Tensor": _tensor,
    "scipy:_spbase": _sparse,
    "pandas:DataFrame": _frame,
    "pandas:Series": _series,
    "pandas:Index": _index,
    "pandas:ExtensionArray": _column,
    "polars:DataFrame": _polars_frame,
    "polars:Series": _polars_series,
    "pyarrow:Table": _arrow_table,
    "pyarrow:RecordBatch": _arrow_table,
    "pyarrow:Array": _arrow,
    "pyarrow:ChunkedArray": _arrow,
}


def _shape_of_table(value: Any) -> dict[str, int]:
    rows, columns = value.shape
    return {"rows": int(rows), "columns": int(columns)}


def _length(value: Any) -> dict[str, int]:
    return {"values": len(value)}


def _axes(value: Any) -> dict[str, int]:
    shape = tuple(value.shape)
    names = ("rows", "columns") if len(shape) == 2 else tuple(f"items along axis {n}" for n in range(len(shape)))
    return dict(zip(names, map(int, shape), strict=True)) if len(shape) != 1 else {"items": int(shape[0])}


_SIZES: dict[str, Callable[[Any], dict[str, int]]] = {
    **dict.fromkeys(("numpy:ndarray", "torch:Tensor", "scipy:_spbase"), _axes),
    **dict.fromkeys(("pandas:DataFrame", "polars:DataFrame", "pyarrow:Table", "pyarrow:RecordBatch"), _shape_of_table),
    **dict.fromkeys(
        ("pandas:Series", "pandas:Index", "polars:Series", "pyarrow:Array", "pyarrow:ChunkedArray"), _length
    ),
}
