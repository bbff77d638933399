"""Describes pandas' objects: frames, series, indexes, arrays of its own types; groups, windows and styles without computing.

A subclass of somebody else is read through pandas' own classes, so that what it overrides is not run; columns of
somebody else's type are told by their type only. Must not import pandas. Read `frame`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.kinds import find_own, held, is_a, library
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
from nbagent.tools.describe import brief, brief_of, has_plain_repr, label_of, short

_VETTED = frozenset({"pandas", "numpy", "geopandas", "pyarrow"})
_LABELS = 10_000
_OF_EACH = 3


def own_frame(value: Any) -> Any:
    """Return the frame itself, or, of a subclass, geopandas' too, the same data as a frame of pandas."""
    if find_own(value, {"pandas:DataFrame": True}):
        return value
    pandas = sys.modules["pandas"]
    return pandas.DataFrame._from_mgr(manager := object.__getattribute__(value, "_mgr"), manager.axes)  # noqa: SLF001


def own_series(value: Any) -> Any:
    """Return the series itself, or, of a subclass, geopandas' too, the same data as a series of pandas."""
    if find_own(value, {"pandas:Series": True}):
        return value
    pandas = sys.modules["pandas"]
    plain = pandas.Series._from_mgr(manager := object.__getattribute__(value, "_mgr"), manager.axes)  # noqa: SLF001
    plain._name = held(value).get("_name")  # noqa: SLF001  (no way in front sets it without a copy)
    return plain


def can_read(dtype: Any) -> bool:
    """Whether a column of this type is made of parts that are pandas' own or of a library that is known."""
    return library(type(dtype)) in _VETTED


def frame(value: Any) -> Iterator[str]:
    """Describe a DataFrame."""
    table = own_frame(value)
    rows, columns = table.shape
    yield head_line(kind_of(value, "pandas DataFrame"), rows, columns, table.columns)
    yield f"index: {index_words(table.index)}"
    shown = table.iloc[:, :COLUMNS]
    dtypes = list(shown.dtypes)
    part = min(rows, SAMPLE_FOR_COUNTS, max(1_000, 200_000 // max(1, sum(map(_costs, dtypes)))))
    missing = _missing(shown.head(part), dtypes)
    yield f"columns (label, dtype, missing in {of_rows(part, rows)}):"
    for place, (label, dtype) in enumerate(zip(shown.columns, dtypes, strict=True)):
        yield f"  {short(label_of(label), 200)}  {dtype_words(dtype)}  {missing[place]}"
    yield from more_columns(columns)
    if _repeats(table.columns):
        yield "  some labels occur more than once: df[label] gives all of them"

    def cell(row: int, place: int) -> Any:
        return table.iat[row, place] if can_read(dtypes[place]) else Unread(type(dtypes[place]).__name__)

    yield from sample_lines(shown.columns, rows, columns, cell)


def _costs(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") == "O"


def _missing(part: Any, dtypes: list[Any]) -> list[Any]:
    """Count the missing values of each column; "?" where the type is somebody else's."""
    known = [place for place, dtype in enumerate(dtypes) if can_read(dtype)]
    counted = part.isna() if len(known) == len(dtypes) else part.iloc[:, known].isna()
    counts = dict(zip(known, map(int, counted.to_numpy().sum(axis=0).tolist()), strict=True))
    return [counts.get(place, "?") for place in range(len(dtypes))]


def _repeats(labels: Any) -> bool:
    """Whether a label occurs twice among the first ones, as far as they can be compared without running anything."""
    plain = [label for label in labels[:_LABELS] if type(label) in {str, int, float} or _of_plain(label)]
    return len(set(plain)) < len(plain)


def _of_plain(label: Any) -> bool:
    return type(label) is tuple and all(type(part) in {str, int, float} for part in label)


def dtype_words(dtype: Any) -> str:
    """Return a column's type in short; of categories how many there are, and the first of them."""
    if not can_read(dtype):
        return f"{library(type(dtype))} {type(dtype).__name__}"
    if is_a(dtype, "pandas:CategoricalDtype"):
        categories = dtype.categories
        if categories is None:
            return "category"
        first = ", ".join(brief(c, 1) for c in categories[:_OF_EACH].tolist())
        more = ", …" if len(categories) > _OF_EACH else ""
        return f"{'ordered ' if dtype.ordered else ''}category of {len(categories):,}: {short(first, 80)}{more}"
    return short(str(dtype), 80)


def index_words(index: Any) -> str:
    """Return an index in short: its kind, its names, its ends, its frequency."""
    if is_a(index, "pandas:MultiIndex"):
        named = zip(index.names, index.levels, strict=True)
        levels = ", ".join(f"{_name(name)} ({len(level):,} values)" for name, level in itertools.islice(named, 10))
        return f"MultiIndex of {index.nlevels} levels: {levels}"
    name = "" if index.name is None else f" {label_of(index.name)}"
    if not len(index):
        return f"{type(index).__name__}{name}"
    if not can_read(index.dtype):
        return f"{type(index).__name__}{name} of {type(index.dtype).__name__}"
    ends = f" {brief_of(index.name, index[0], 2)} … {brief_of(index.name, index[-1], 2)}"
    frequency = held(getattr(index, "_data", None)).get("_freq")
    often = f", freq {frequency.freqstr}" if frequency is not None and has_plain_repr(type(frequency)) else ""
    return f"{type(index).__name__}{name}{ends}{often}"


def _name(name: Any) -> str:
    return "unnamed" if name is None else label_of(name)


def series(value: Any) -> Iterator[str]:
    """Describe a Series."""
    data = own_series(value)
    size = len(data)
    yield f"{kind_of(value, 'pandas Series')} {label_of(data.name)} of {size:,}, {dtype_words(data.dtype)}"
    yield f"index: {index_words(data.index)}"
    if can_read(data.dtype):
        head = data.head(SAMPLE_FOR_COUNTS)
        yield f"missing: {int(head.isna().sum())} in {of_rows(len(head), size)}"
        yield first_line(data.name, head.iloc[:10].tolist(), size)


def index(value: Any) -> Iterator[str]:
    """Describe an Index by itself."""
    if find_own(value, {"pandas:Index": True}) is None:
        yield kind_of(value, "pandas Index")
        return
    yield f"pandas {index_words(value)}, {len(value):,} labels, {dtype_words(value.dtype)}"
    if len(value) and can_read(value.dtype):
        yield first_line(
            value.name, [value[n] for n in range(min(10, len(value)))], len(value)
        )  # no tolist: it takes all of a level


def array(value: Any) -> Iterator[str]:
    """Describe an array of one of pandas' own types, or a Categorical."""
    if library(type(value)) not in _VETTED:
        yield kind_of(value, "pandas ExtensionArray")
        return
    yield f"{kind_of(value)} of {len(value):,}, {dtype_words(value.dtype)}"
    yield first_line("", list(value[:10]), len(value))


def grouped(value: Any) -> Iterator[str]:
    """Describe what groupby and resample give: by what and of what; how many groups there are is not worked out."""
    inside = held(value)
    keys, grouper = inside.get("keys"), inside.get("_timegrouper")
    by = brief(keys, 2) if keys is not None else f"level {brief(inside.get('level'), 2)}"
    if grouper is not None:
        frequency = held(grouper).get("freq")
        by = f"every {frequency.freqstr}" if has_plain_repr(type(frequency)) else "time"
    yield f"pandas {type(value).__name__} by {by}, groups not worked out"
    yield f"of: {brief(inside.get('obj'), 1)}"
    if (chosen := inside.get("_selection")) is not None:
        yield f"columns taken: {brief(chosen, 2)}"


def window(value: Any) -> Iterator[str]:
    """Describe what rolling, expanding and ewm give."""
    inside = held(value)
    names = ("window", "min_periods", "center", "on", "win_type", "com", "span", "halflife", "alpha")
    said = ", ".join(f"{name}={brief(inside[name], 1)}" for name in names if inside.get(name) is not None)
    yield f"pandas {type(value).__name__}({said}), not computed"
    yield f"of: {brief(inside.get('obj'), 1)}"


def styler(value: Any) -> Iterator[str]:
    """Describe a Styler, which is not rendered."""
    inside = held(value)
    caption = inside.get("caption")
    yield f"pandas Styler{f' {brief(caption, 1)}' if caption else ''} of {brief(inside.get('data'), 1)}"
    todo = inside.get("_todo")
    yield f"steps of style: {len(todo) if type(todo) is list else 0}; not rendered"
    if is_a(data := inside.get("data"), "pandas:DataFrame"):
        yield from itertools.islice(frame(data), 1, None)
