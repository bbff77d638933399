"""Tells what a value is and how large, and nothing that is in it: for what is hidden. Read `outline`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbagent.tools.data.kinds import find, type_name


def outline(value: Any) -> str:
    """Return the type of a value with its size, shape and dtype; of no value anything that is in it, nor any label."""
    told = find(value, _OUTLINES)
    return f"{type_name(value)}{told(value)}" if told is not None else type_name(value)


def _rows(value: Any) -> str:
    return f" {value.shape[0]:,} rows x {value.shape[1]:,} columns"


def _long(value: Any) -> str:
    return f" of {len(value):,}, {value.dtype}"


def _shaped(value: Any) -> str:
    return f" {tuple(value.shape)} {value.dtype}"


def _sized(base: Any) -> Callable[[Any], str]:
    return lambda value: f" of {base.__len__(value):,}"


_OUTLINES: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("pandas:DataFrame", "polars:DataFrame", "pyarrow:Table", "pyarrow:RecordBatch"), _rows),
    **dict.fromkeys(("pandas:Series", "pandas:Index", "polars:Series"), _long),
    **dict.fromkeys(("numpy:ndarray", "torch:Tensor", "scipy:_spbase"), _shaped),
    **dict.fromkeys(("pyarrow:Array", "pyarrow:ChunkedArray"), lambda value: f" of {len(value):,}, {value.type}"),
    **{
        f"builtins:{base.__name__}": _sized(base) for base in (list, tuple, dict, set, frozenset, str, bytes, bytearray)
    },
}
