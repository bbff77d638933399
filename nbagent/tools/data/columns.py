"""Tables as far as they can be read without computing: labels, types, the first values of one column.

One adapter a library, found by `table_of`; nothing is imported for it. What is lazy has labels and types only. Who hides
columns, profiles tables or tells of one column begins here. Read `Table`, then `PandasTable`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any, Protocol

from nbagent.tools.data.kinds import find, held, is_a
from nbagent.tools.describe import short

LABELS = 100_000
"""Labels that are looked at."""
ROWS = 10_000
"""Rows of which a table without some columns consists, and values of a column that are looked at."""
_NESTED = 100


class Table(Protocol):
    """What is known of a table without computing anything. `rows` is None where it is not known."""

    rows: int | None

    def labels(self) -> list[Any]:
        """Return the labels of the columns, the first ones of very many, in order."""
        ...

    def dtype(self, place: int) -> str:
        """Return the type of the column at a place."""
        ...

    def values(self, place: int, count: int) -> tuple[list[Any], int] | None:
        """Return the first values of a column and how many of them are missing; None where it is not in memory."""
        ...

    def without(self, places: Collection[int]) -> Any:
        """Return the first rows as a table that has not these columns."""
        ...


def table_of(value: object) -> Table | None:
    """Return what reads a value that is a table with named columns; None for any other value."""
    made = find(value, _TABLES)
    return None if made is None else made(value)


class PandasTable:
    """A frame of pandas or geopandas."""

    def __init__(self, value: Any) -> None:
        from nbagent.tools.data.of_pandas import own_frame  # noqa: PLC0415  (loaded when the first frame is met)

        self.frame = own_frame(value)
        self.rows: int | None = len(self.frame)

    def labels(self) -> list[Any]:
        """Return the labels of the columns."""
        return list(itertools.islice(self.frame.columns, LABELS))

    def dtype(self, place: int) -> str:
        """Return the type of the column at a place."""
        return short(str(self.frame.dtypes.iloc[place]), 80)

    def values(self, place: int, count: int) -> tuple[list[Any], int] | None:
        """Return the first values and how many are missing; None where the type is somebody else's."""
        from nbagent.tools.data.of_pandas import can_read  # noqa: PLC0415  (loaded when the first frame is met)

        column = self.frame.iloc[:count, place]
        if not can_read(column.dtype):
            return None
        nested = is_a(column.dtype, "pandas:ArrowDtype") and "<" in str(column.dtype)
        part = column.iloc[:_NESTED] if nested else column
        return part.to_list(), int(part.isna().sum())

    def without(self, places: Collection[int]) -> Any:
        """Return the first rows of the other columns."""
        return self.frame.iloc[:ROWS, [n for n in range(self.frame.shape[1]) if n not in places]]


class PolarsTable:
    """A frame of polars."""

    def __init__(self, value: Any) -> None:
        from nbagent.tools.data.of_polars import own_frame  # noqa: PLC0415  (loaded when the first frame is met)

        self.frame = own_frame(value)
        self.rows: int | None = self.frame.height

    def labels(self) -> list[Any]:
        """Return the names of the columns."""
        return [self.frame.to_series(n).name for n in range(min(self.frame.width, LABELS))]

    def dtype(self, place: int) -> str:
        """Return the type of the column at a place."""
        return short(str(self.frame.to_series(place).dtype), 80)

    def values(self, place: int, count: int) -> tuple[list[Any], int] | None:
        """Return the first values and how many are missing."""
        from nbagent.tools.data.of_polars import first_values  # noqa: PLC0415  (loaded when the first frame is met)

        column = self.frame.to_series(place).head(count)
        part = column.head(_NESTED) if "(" in str(column.dtype) and "List" in str(column.dtype) else column
        return first_values(part, len(part)), int(part.null_count())

    def without(self, places: Collection[int]) -> Any:
        """Return the first rows of the other columns."""
        names = [name for n, name in enumerate(self.frame.columns) if n not in places]
        return self.frame.head(ROWS).select(names)


class ArrowTable:
    """A table or a batch of pyarrow."""

    def __init__(self, value: Any) -> None:
        self.table = value
        self.rows: int | None = value.num_rows

    def labels(self) -> list[Any]:
        """Return the names of the columns."""
        return [self.table.schema.field(n).name for n in range(min(self.table.num_columns, LABELS))]

    def dtype(self, place: int) -> str:
        """Return the type of the column at a place."""
        return short(str(self.table.schema.field(place).type), 80)

    def values(self, place: int, count: int) -> tuple[list[Any], int] | None:
        """Return the first values and how many are missing."""
        from nbagent.tools.data.of_arrow import first_values  # noqa: PLC0415  (loaded when the first table is met)

        part = self.table.column(place).slice(0, min(count, ROWS))
        return first_values(part, len(part)), part.null_count

    def without(self, places: Collection[int]) -> Any:
        """Return the first rows of the other columns."""
        return self.table.slice(0, ROWS).select([n for n in range(self.table.num_columns) if n not in places])


class DatasetTable:
    """A Dataset of xarray: its variables and coordinates are the columns, of any number of dimensions."""

    def __init__(self, value: Any) -> None:
        from nbagent.tools.data.of_xarray import variables_of  # noqa: PLC0415  (loaded when the first one is met)

        self.dataset, self.variables = value, variables_of(value)
        self.rows: int | None = None

    def labels(self) -> list[Any]:
        """Return the names of variables and coordinates."""
        return list(itertools.islice(self.variables, LABELS))

    def _variable(self, place: int) -> Any:
        return self.variables[self.labels()[place]]

    def dtype(self, place: int) -> str:
        """Return the type of the variable at a place."""
        return short(str(self._variable(place).dtype), 80)

    def values(self, place: int, count: int) -> tuple[list[Any], int] | None:
        """Return the first values in the order of memory, and how many are missing; None where they are not loaded."""
        from nbagent.tools.data.of_xarray import values_of  # noqa: PLC0415  (loaded when the first one is met)

        data = values_of(self._variable(place))
        if data is None:
            return None
        first = data[:count].tolist() if is_a(data, "pandas:Index") else data.flat[:count].tolist()
        return first, sum(1 for v in first if v is None or (type(v) is float and v != v))  # noqa: PLR0124  (NaN is not itself)

    def without(self, places: Collection[int]) -> Any:
        """Return the data set without these variables; nothing is loaded."""
        return self.dataset.drop_vars([name for n, name in enumerate(self.labels()) if n in places])


class LazyTable:
    """What has names and types of columns, and no values yet."""

    def __init__(self, value: Any, pairs: list[tuple[Any, str]]) -> None:
        self.value, self.pairs = value, pairs
        self.rows: int | None = None

    def labels(self) -> list[Any]:
        """Return the labels of the columns; none where to know them would be work."""
        return [label for label, _ in self.pairs]

    def dtype(self, place: int) -> str:
        """Return the type of the column at a place."""
        return self.pairs[place][1]

    def values(self, place: int, count: int) -> tuple[list[Any], int] | None:  # noqa: ARG002  (the protocol's)
        """Return None: nothing is computed."""
        return None

    def without(self, places: Collection[int]) -> Any:  # noqa: ARG002  (the protocol's)
        """Return the value itself: of it names and types are told, and no values."""
        return self.value


def _relation(value: Any) -> LazyTable:
    return LazyTable(value, [(n, str(t)) for n, t in zip(value.columns[:LABELS], value.types, strict=False)])


def _lazy_frame(value: Any) -> LazyTable:
    from nbagent.tools.data.of_polars import RESOLVED, last_step  # noqa: PLC0415  (loaded when the first one is met)

    plan = held(value).get("_ldf")
    known = last_step(plan) in RESOLVED
    return LazyTable(value, [(n, str(t)) for n, t in plan.collect_schema().items()] if known else [])


def _dask_frame(value: Any) -> LazyTable:
    example = held(held(value).get("_expr")).get("_meta")
    if not is_a(example, "pandas:DataFrame"):
        return LazyTable(value, [])
    return LazyTable(value, [(label, str(dtype)) for label, dtype in example.dtypes.items()])


def _dataset(value: Any) -> LazyTable:
    return LazyTable(value, [(one.name, str(one.type)) for one in value.schema])


_TABLES: dict[str, Callable[[Any], Table]] = {
    "pandas:DataFrame": PandasTable,
    "polars:DataFrame": PolarsTable,
    "pyarrow:Table": ArrowTable,
    "pyarrow:RecordBatch": ArrowTable,
    "pyarrow:Dataset": _dataset,
    "xarray:Dataset": DatasetTable,
    "polars:LazyFrame": _lazy_frame,
    "dask:FrameBase": _dask_frame,
    **dict.fromkeys(("duckdb:DuckDBPyRelation", "_duckdb:DuckDBPyRelation"), _relation),
}
