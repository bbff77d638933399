"""A table as a profile reads it: its columns, each of which gives the plain values of a stretch of rows.

One adapter a library, told by the names of types, so that nothing is imported for it. A stretch is a view of the table
until it becomes a short list: the table itself is never copied. Lazy tables are read elsewhere (`lazy.py`). Read `opened`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.tools.data.kinds import FRAMES, SERIES, names_of
from nbagent.tools.data.tabular import kind_of
from nbagent.tools.describe import label_of
from nbagent.tools.secrets import secret_name

Take = Callable[[int, int], list[Any]]
"""Gives the values of the rows from the first number up to (not with) the second."""

_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
_NAT = -(2**63)
_POLARS = ("polars.dataframe.frame.DataFrame", "polars.series.series.Series")
_ARROW = ("pyarrow.lib.Table", "pyarrow.lib.RecordBatch", "pyarrow.lib.ChunkedArray", "pyarrow.lib.Array")
_NESTED = (
    "list",
    "struct",
    "map",
    "union",
    "array",
    "extension",
    "object",
    "large_list",
    "fixed_size_list",
    "dense",
    "sparse",
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its label as code writes it, its type, and how its values are taken (None: they are not looked at).

    `unit`: the values are points in time, each an integer of so many nanoseconds since 1970; `zone` their time zone.
    `scale`: they are spans of time, each of so many nanoseconds. `width`: bytes that a row takes, about.
    """

    label: str
    dtype: str
    take: Take | None
    unit: int = 0
    zone: str = ""
    scale: int = 0
    width: float = 8.0
    index: bool = False
    secret: bool = False
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: what it is, how many rows it has, its columns (levels of an index first)."""

    kind: str
    rows: int
    columns: Sequence[Column]


def opened(value: Any) -> Table | None:
    """Return a table, or a single column as one, ready to be read; None for a value that is neither."""
    names = set(names_of(type(value)))
    if names & FRAMES:
        return _pandas(value)
    if names & SERIES:
        columns = [*_index_of(value.index), _pandas_column(value, _named(value.name))]
        return Table(kind_of(value), len(value), columns)
    if _POLARS[0] in names:
        columns = [_polars_column(series) for series in value.get_columns()]
        return Table(kind_of(value), value.height, columns)
    if _POLARS[1] in names:
        return Table(kind_of(value), len(value), [_polars_column(value)])
    if not names.isdisjoint(_ARROW[:2]):
        labels = value.schema.names
        columns = [_arrow_column(value.column(place), labels[place]) for place in range(value.num_columns)]
        return Table(kind_of(value), value.num_rows, columns)
    if not names.isdisjoint(_ARROW[2:]):
        return Table(kind_of(value), len(value), [_arrow_column(value, "values")])
    return _records(value) if type(value) is list else None


def of_rows(kind: str, labels: Sequence[str], dtypes: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return rows that were fetched, as of a database, as a table."""

    def taking(place: int) -> Take:
        return lambda start, stop: [row[place] for row in rows[start:stop]]

    columns = [_made(label, dtypes[place], taking(place)) for place, label in enumerate(labels)]
    return Table(kind, len(rows), columns)


def _made(label: Any, dtype: str, take: Take | None, **more: Any) -> Column:
    text = label if type(label) is str else label_of(label)
    secret = secret_name(text)
    return Column(label_of(label), dtype, None if secret else take, secret=secret, odd=_odd_label(label), **more)


def _named(label: Any) -> Any:
    return "values" if label is None else label


def _odd_label(label: Any) -> tuple[str, ...]:
    if type(label) is not str:
        return ()
    found = ["its label has blanks around it"] if label != label.strip() else []
    if label.startswith("Unnamed: "):
        found.append("its label is one that pandas made up: an index that was saved, or a header that is elsewhere?")
    return tuple(found)


# ── pandas ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pandas(value: Any) -> Table:
    labels = list(value.columns)
    columns = [_pandas_column(value.iloc[:, place], label) for place, label in enumerate(labels)]
    return Table(kind_of(value), len(value), [*_index_of(value.index), *columns])


def _index_of(index: Any) -> list[Column]:
    """Return the levels of an index as columns, none of one that only counts rows."""
    kind = type(index).__name__
    if kind == "RangeIndex":
        return []
    if kind != "MultiIndex":
        return [_pandas_column(index, _named(index.name), index=True)]

    def taking(level: int) -> Take:
        return lambda start, stop: index[start:stop].get_level_values(level).tolist()

    return [
        _made(name if name is not None else f"level {level}", str(index.levels[level].dtype), taking(level), index=True)
        for level, name in enumerate(index.names)
    ]


def _pandas_column(series: Any, label: Any, *, index: bool = False) -> Column:
    array, dtype = series.array, str(series.dtype)
    rows = len(array)
    width = float(array.nbytes) / rows if rows and hasattr(array, "nbytes") else 8.0
    if type(array).__module__.partition(".")[0] != "pandas":
        return _made(label, dtype, None, index=index)
    kind = type(array).__name__
    if kind in {"DatetimeArray", "TimedeltaArray"}:
        ticks, ns = array.asi8, _NS[array.unit]
        zone = str(array.tz) if kind == "DatetimeArray" and array.tz is not None else ""
        unit, scale = (ns, 0) if kind == "DatetimeArray" else (0, ns)
        return _made(
            label, dtype, lambda a, b: _dated(ticks[a:b].tolist()), unit=unit, scale=scale, zone=zone, index=index
        )
    if kind == "Categorical":
        codes, names = array.codes, array.categories.tolist()
        return _made(label, f"category of {len(names):,}", lambda a, b: [names[c] if c >= 0 else None for c in codes[a:b].tolist()],
                     index=index)  # fmt: skip
    if kind == "NumpyExtensionArray":
        plain = array.to_numpy()  # the array itself, not a copy
        return _made(label, dtype, lambda a, b: plain[a:b].tolist(), width=width, index=index)
    return _made(label, dtype, lambda a, b: array[a:b].to_numpy(dtype=object).tolist(), width=width, index=index)


def _dated(ticks: list[int]) -> list[int | None]:
    return [None if tick == _NAT else tick for tick in ticks] if _NAT in ticks else list(ticks)


# ── polars, pyarrow, plain records ───────────────────────────────────────────────────────────────────────────────────


def _polars_column(series: Any) -> Column:
    dtype = str(series.dtype)
    base = dtype.partition("(")[0].lower()
    if base in _NESTED:
        return _made(series.name, dtype, None)
    if base == "datetime":
        ns, zone = _NS[series.dtype.time_unit], series.dtype.time_zone or ""
        return _made(
            series.name, dtype, lambda a, b: series.slice(a, b - a).to_physical().to_list(), unit=ns, zone=zone
        )
    if base == "date":
        return _made(series.name, dtype, lambda a, b: series.slice(a, b - a).to_physical().to_list(), unit=_DAY)
    if base == "duration":
        ns = _NS[series.dtype.time_unit]
        return _made(series.name, dtype, lambda a, b: series.slice(a, b - a).to_physical().to_list(), scale=ns)
    width = series.estimated_size() / max(1, len(series))
    return _made(series.name, dtype, lambda a, b: series.slice(a, b - a).to_list(), width=width)


def _arrow_column(array: Any, label: str) -> Column:
    dtype = str(array.type)
    base = dtype.partition("<")[0].partition("[")[0]
    if base in _NESTED:
        return _made(label, dtype, None)

    def plain(kind: str) -> Take:
        return lambda a, b: array.slice(a, b - a).cast(kind).to_pylist()

    if base == "timestamp":
        return _made(label, dtype, plain("int64"), unit=_NS[array.type.unit], zone=array.type.tz or "")
    if base == "duration":
        return _made(label, dtype, plain("int64"), scale=_NS[array.type.unit])
    if base in {"date32", "date64"}:
        days = base == "date32"
        return _made(label, dtype, plain("int32" if days else "int64"), unit=_DAY if days else 10**6)
    width = array.nbytes / max(1, len(array))
    return _made(label, dtype, lambda a, b: array.slice(a, b - a).to_pylist(), width=width)


def _records(value: list[Any]) -> Table | None:
    """Return a list of dicts, as JSON gives them, as a table of the keys of the first thousand."""
    first = value[:1000]
    if not first or any(type(row) is not dict for row in first):
        return None
    keys = list(dict.fromkeys(key for row in first for key in dict.keys(row) if type(key) is str))

    def taking(key: str) -> Take:
        return lambda a, b: [dict.get(row, key) if type(row) is dict else None for row in value[a:b]]

    return Table("list of dicts", len(value), [_made(key, "", taking(key)) for key in keys])
