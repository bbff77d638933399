"""Describes arrays: numpy's plain, structured, masked, mapped and object ones, sparse matrices of scipy, tensors of torch.

A subclass of somebody else is read as a plain array, so that what it overrides is not run. A file that is mapped is not
read where it has become shorter than its array: that would end the kernel. Must not import any of them. Read `array`.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbagent.tools.data.kinds import class_name, find, held, is_a, library, type_name
from nbagent.tools.data.tabular import kind_of, size_of
from nbagent.tools.describe import brief, brief_of, label_of, short

_FIRST = 10
_FIELDS = 40
_LOOKED_AT = 1_000
_COUNTED = 100_000


def own_array(value: Any) -> Any:
    """Return an array without what a subclass of somebody else overrides; masked ones and those of numpy as they are."""
    if library(type(value)) == "numpy":
        return value
    numpy = sys.modules["numpy"]
    return numpy.ndarray.view(value, numpy.ndarray)


def array(value: Any) -> Iterator[str]:
    """Describe an array of numpy."""
    data = own_array(value)
    words, note = "array", _mapped(value)
    if is_a(value, "numpy:MaskedArray"):
        words = "masked array"
    elif is_a(value, "numpy:memmap"):
        words = "array mapped from a file,"
    elif data is not value:
        words = f"{class_name(type(value))} (an array)"
    shape, dtype = tuple(data.shape), _dtype(data.dtype)
    small = data.ndim == 0 or (data.size <= 6 and data.dtype.kind in "biufc")
    if small and words == "array":
        inside = repr(data.tolist()) if data.dtype.kind in "biufc" else _single(data)
        yield f"array {shape} {dtype}: {short(inside, 80)}"
    else:
        yield f"{words} {shape} {dtype}, {size_of(data.nbytes)}"
    if data.dtype.names:
        yield f"fields ({len(data.dtype.names):,}):"
        for name in data.dtype.names[:_FIELDS]:
            yield f"  {label_of(name)}  {data.dtype[name]}"
    if note is not None:
        yield note
        if not note.endswith("readable"):
            return
    yield from _masks(value)
    yield from _contents(data)


def _single(data: Any) -> str:
    found = data.tolist()
    return type_name(found) if data.dtype.kind in "OV" else brief(found, 1)


def _dtype(dtype: Any) -> str:
    return short(str(dtype), 80) if not dtype.names else f"of records with {len(dtype.names):,} fields"


def _contents(data: Any) -> Iterator[str]:
    """Yield the first values, and of an array of objects, what they are."""
    if not data.size:
        yield "no values"
        return
    numpy = sys.modules["numpy"]
    masked = is_a(data, "numpy:MaskedArray")  # what is masked comes as None
    first = (data if masked else numpy.ndarray.view(data, numpy.ndarray)).flat[:_FIRST]
    names = data.dtype.names
    if names:
        rows = [dict(zip(names[:_FIELDS], row, strict=False)) for row in first.tolist()[:3]]
        shown = "; ".join(", ".join(f"{n}={brief_of(n, v, 1)}" for n, v in list(row.items())[:12]) for row in rows)
        yield f"first {len(rows)} of {data.size:,} records: {short(shown, 600)}"
        return
    yield f"first {len(first)} of {data.size:,} values: {', '.join(brief(v, 1) for v in first.tolist())}"
    if data.dtype.kind == "O":
        kinds = Counter(type_name(v) for v in data.flat[:_LOOKED_AT].tolist())
        told = ", ".join(f"{name} ({n:,})" for name, n in kinds.most_common(10))
        yield f"types in the first {min(data.size, _LOOKED_AT):,}: {told}"


def _masks(value: Any) -> Iterator[str]:
    mask = held(value).get("_mask")
    if not is_a(value, "numpy:MaskedArray") or mask is None:
        return
    if not getattr(mask, "ndim", 0):
        yield "nothing is masked"
        return
    if mask.dtype.names:
        yield "masked field by field"
        return
    part = sys.modules["numpy"].ndarray.view(mask, sys.modules["numpy"].ndarray).flat[:_COUNTED]
    yield f"masked: {int(part.sum()):,} of the first {len(part):,} values"


def _mapped(value: Any) -> str | None:
    """Say of which file an array is a map; that it can't be read where the file has become too short for it."""
    if not is_a(value, "numpy:memmap"):
        return None
    inside = held(value)
    name, offset = inside.get("filename"), inside.get("offset")
    if name is None or type(offset) is not int:
        return "a part of a map, not read"
    try:
        size = Path(os.fspath(name)).stat().st_size
    except (OSError, TypeError):
        return f"file {brief(os.fspath(name), 1)} is not there any more: not read"
    where = f"file {brief(os.fspath(name), 1)}, mode {brief(inside.get('mode'), 1)}"
    return f"{where}, readable" if size >= offset + value.nbytes else f"{where}: shorter than its array, not read"


def number(value: Any) -> Iterator[str]:
    """Describe a single value of numpy."""
    if is_a(value, "numpy:str_"):
        yield brief(str.__getitem__(value, slice(0, 5_000)))
    elif library(type(value)) == "numpy" and value.dtype.kind in "biufcmM":
        yield short(str(value))
    else:
        yield f"object of class {class_name(type(value))}"


def archive(value: Any) -> Iterator[str]:
    """Describe an open .npz file by the names in it; no array is read."""
    names = held(value).get("files")
    listed = names if type(names) is list else []
    yield f"open .npz file with {len(listed):,} arrays: {short(', '.join(map(str, listed[:20])), 200)}; none is read"


# ── sparse matrices ──────────────────────────────────────────────────────────────────────────────────────────────────


def sparse(value: Any) -> Iterator[str]:
    """Describe a sparse matrix or array of scipy: format, shape, stored values, density."""
    if library(type(value)) != "scipy":
        yield kind_of(value, "scipy sparse matrix")
        return
    kind, shape = type(value).__name__, tuple(value.shape)
    stored = None if kind.startswith("lil") and shape[0] > _COUNTED else int(value.nnz)
    cells = math.prod(shape)
    dense = f", density {stored / cells:.3g}" if stored is not None and cells else ""
    count = "values not counted" if stored is None else f"{stored:,} stored values"
    yield f"scipy {kind} {shape} {value.dtype}, {count}{dense}"
    inside = held(value)
    taken = [
        inside[name] for name in ("data", "indices", "indptr", "row", "col", "coords", "offsets") if name in inside
    ]
    arrays = [a for one in taken for a in (one if type(one) is tuple else (one,)) if is_a(a, "numpy:ndarray")]
    if arrays:
        yield f"format {value.format}, {size_of(sum(a.nbytes for a in arrays))}; dense it would be {size_of(cells * value.dtype.itemsize)}"
    if stored and is_a(data := inside.get("data"), "numpy:ndarray") and data.ndim == 1:
        yield f"first {min(_FIRST, len(data))} stored: {', '.join(brief(v, 1) for v in data[:_FIRST].tolist())}"


def frozen(value: Any) -> Iterator[str]:
    """Describe a distribution of scipy with its parameters."""
    inside = held(value)
    name = held(inside.get("dist")).get("name")
    args = [brief(a, 1) for a in inside.get("args") or ()]
    args += [f"{k}={brief(v, 1)}" for k, v in dict(inside.get("kwds") or {}).items()]
    yield f"scipy distribution {name if type(name) is str else ''}({', '.join(args[:10])})"


# ── torch ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tensor(value: Any) -> Iterator[str]:
    """Describe a tensor of torch; its values stay where they are."""
    yield f"tensor {tuple(value.shape)} {value.dtype} on {value.device}"
    if find(value, {"torch:Parameter": True}):
        yield f"a parameter, requires_grad={bool(value.requires_grad)}"
