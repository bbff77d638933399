"""Describes xarray's objects by their dimensions, types and attributes. What is not in memory stays where it is.

Values are only looked at where a variable holds an array of numpy or an index of pandas. Must not import xarray. Read
`dataset`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from nbagent.tools.data.kinds import is_a, library
from nbagent.tools.data.of_pandas import index_words
from nbagent.tools.data.tabular import kind_of, size_of
from nbagent.tools.describe import brief, brief_of, label_of, short

_VARIABLES = 60
_ATTRIBUTES = 12


def slot(value: Any, name: str) -> Any:
    """Return what an object of xarray holds in a slot, past whatever a subclass makes of it; None where it is not set."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


def variables_of(value: Any) -> dict[Any, Any]:
    """Return the variables of a Dataset by name, coordinates too."""
    found = slot(value, "_variables")
    return found if type(found) is dict else {}


def dataset(value: Any) -> Iterator[str]:
    """Describe a Dataset."""
    variables, coordinates = variables_of(value), slot(value, "_coord_names") or set()
    data = [name for name in variables if name not in coordinates]
    yield f"{kind_of(value, 'xarray Dataset')} {_sizes(_dims(variables.values()))}, {len(data):,} variables: {_labels(data)}"
    yield f"size {size_of(sum(_bytes(v) for v in variables.values()))} if all of it were in memory"
    yield "variables (name, dimensions, type, where the values are):"
    for name in data[:_VARIABLES]:
        yield f"  {_variable_words(name, variables[name])}"
    if len(data) > _VARIABLES:
        yield f"  … and {len(data) - _VARIABLES:,} more variables"
    yield from _coordinates({name: variables[name] for name in variables if name in coordinates})
    yield from _attributes(slot(value, "_attrs"))


def array(value: Any) -> Iterator[str]:
    """Describe a DataArray."""
    name, inside = slot(value, "_name"), slot(value, "_variable")
    named = "" if name is None else f" {label_of(name)}"
    yield f"{kind_of(value, 'xarray DataArray')}{named} {_sizes(_dims([inside]))}, {_dtype(inside)}, {_where(inside)}"
    yield f"size {size_of(_bytes(inside))}"
    yield from _first(inside)
    found = slot(value, "_coords")
    yield from _coordinates(found if type(found) is dict else {})
    yield from _attributes(slot(inside, "_attrs"))


def variable(value: Any) -> Iterator[str]:
    """Describe a Variable."""
    yield f"{kind_of(value, 'xarray Variable')} {_sizes(_dims([value]))}, {_dtype(value)}, {_where(value)}"
    yield from _first(value)
    yield from _attributes(slot(value, "_attrs"))


def tree(value: Any) -> Iterator[str]:
    """Describe a DataTree by its groups."""
    children = slot(value, "_children")
    found = dict(itertools.islice(children.items(), 40)) if _is_mapping(children) else {}
    yield f"{kind_of(value, 'xarray DataTree')} with {len(found):,} groups: {_labels(list(found))}"
    own = slot(value, "_data_variables")
    if _is_mapping(own):
        for name, one in itertools.islice(own.items(), _VARIABLES):
            yield f"  {_variable_words(name, one)}"
    for name, child in found.items():
        inside = slot(child, "_data_variables")
        yield f"  group {label_of(name)}: {len(inside) if _is_mapping(inside) else 0:,} variables"


def _is_mapping(found: Any) -> bool:
    return isinstance(found, Mapping) and library(type(found)) in {"builtins", "xarray", "collections"}


def grouped(value: Any) -> Iterator[str]:
    """Name what groupby, resample and rolling give; nothing is grouped yet."""
    yield f"xarray {type(value).__name__}, not computed"
    whole = slot(value, "_obj")
    if whole is None:
        whole = slot(value, "obj")
    if whole is not None:
        yield f"of: {brief(whole, 1)}"


# ── of one variable ──────────────────────────────────────────────────────────────────────────────────────────────────


def values_of(found: Any) -> Any:
    """Return the array of numpy, or index of pandas, that a variable holds in memory; None where it holds neither."""
    data = slot(found, "_data")
    if is_a(data, "xarray:PandasIndexingAdapter"):
        data = slot(data, "array")
    return data if library(type(data)) in {"numpy", "pandas"} else None


def _shape(found: Any) -> tuple[int, ...]:
    shape = getattr(slot(found, "_data"), "shape", ()) if _known(slot(found, "_data")) else ()
    return tuple(shape)


def _known(data: Any) -> bool:
    return library(type(data)) in {"numpy", "pandas", "dask", "xarray", "sparse", "cupy", "pint"}


def _dims(found: Any) -> dict[Any, int]:
    sizes: dict[Any, int] = {}
    for one in found:
        sizes.update(zip(slot(one, "_dims") or (), _shape(one), strict=False))
    return sizes


def _sizes(dims: dict[Any, int]) -> str:
    named = ", ".join(
        f"{short(str(name) if type(name) is str else brief(name, 1), 40)}: {n:,}"
        for name, n in itertools.islice(dims.items(), 10)
    )
    return f"({named}{', …' if len(dims) > 10 else ''})"


def _labels(names: list[Any]) -> str:
    return ", ".join(short(label_of(name), 60) for name in names[:6]) + (", …" if len(names) > 6 else "")


def _dtype(found: Any) -> str:
    data = slot(found, "_data")
    return short(str(data.dtype), 60) if _known(data) else type(data).__name__


def _bytes(found: Any) -> int:
    data = slot(found, "_data")
    cells = 1
    for n in _shape(found):
        cells *= n
    return cells * int(getattr(data.dtype, "itemsize", 8)) if _known(data) else 0


def _where(found: Any) -> str:
    data = slot(found, "_data")
    if values_of(found) is not None:
        return "in memory"
    if library(type(data)) == "dask":
        chunks = " x ".join(f"{max(along, default=0):,}" for along in data.chunks)
        return f"dask, lazy: not computed, chunks of {chunks}"
    return f"not loaded ({type(data).__name__})" if library(type(data)) == "xarray" else f"in {type(data).__name__}"


def _variable_words(name: Any, found: Any) -> str:
    units = _text(slot(found, "_attrs"), "units")
    return f"{short(label_of(name), 100)}  {_sizes(_dims([found]))}  {_dtype(found)}  {_where(found)}{f'  units {units}' if units else ''}"


def _text(attributes: Any, name: str) -> str:
    found = attributes.get(name) if type(attributes) is dict else None
    return short(found, 40) if type(found) is str else ""


def _first(found: Any) -> Iterator[str]:
    data = values_of(found)
    if data is None or not is_a(data, "numpy:ndarray"):
        return
    first = data.flat[:10].tolist()
    yield f"first {len(first)} of {data.size:,} values: {', '.join(brief(v, 1) for v in first)}"


def _coordinates(found: dict[Any, Any]) -> Iterator[str]:
    if found:
        yield "coordinates:"
    for name, given in itertools.islice(found.items(), 20):
        one = slot(given, "_variable") if is_a(given, "xarray:DataArray") else given
        data = values_of(one)
        ends = ""
        if is_a(data, "pandas:Index"):
            ends = f"  {index_words(data)}"
        elif is_a(data, "numpy:ndarray") and data.size:
            last = data.flat[data.size - 1 : data.size].tolist()[0]
            ends = f"  {brief_of(name, data.flat[:1].tolist()[0], 1)} … {brief_of(name, last, 1)}"
        yield f"  {_variable_words(name, one)}{ends}"


def _attributes(found: Any) -> Iterator[str]:
    if type(found) is not dict or not found:
        return
    yield f"attributes ({len(found):,}):"
    for name, item in itertools.islice(found.items(), _ATTRIBUTES):
        yield f"  {short(label_of(name), 60)}: {brief_of(name, item, 1)}"
