"""Describes pyarrow's objects: tables, batches, columns, schemas, data sets and open Parquet files, which are not read.

Values are taken one by one, and none that could be huge. Must not import pyarrow. Read `table`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.kinds import is_a
from nbagent.tools.data.tabular import (
    COLUMNS,
    SAMPLE_FOR_COUNTS,
    Unread,
    first_line,
    head_line,
    more_columns,
    of_rows,
    sample_lines,
)
from nbagent.tools.describe import brief, label_of, short

_LONG = 20_000  # bytes of a text that is not taken out of its column
_NESTED = ("list", "large_list", "fixed_size_list", "struct", "map", "dense_union", "sparse_union", "extension")
_FILES = 5


def table(value: Any) -> Iterator[str]:
    """Describe a Table or a RecordBatch."""
    rows, columns, schema = value.num_rows, value.num_columns, value.schema
    names = (schema.field(place).name for place in range(columns))
    yield head_line(f"pyarrow {type(value).__name__}", rows, columns, names)
    part = min(rows, SAMPLE_FOR_COUNTS)
    yield f"columns (name, type, missing in {of_rows(part, rows)}):"
    shown = [(schema.field(place), value.column(place)) for place in range(min(columns, COLUMNS))]
    for field, column in shown:
        yield f"  {_field(field)}  {column.slice(0, part).null_count}"
    yield from more_columns(columns)
    cells = [first_values(column, 3) for _, column in shown[:12]]
    yield from sample_lines([f.name for f, _ in shown], rows, columns, lambda row, place: cells[place][row])


def _field(field: Any) -> str:
    needed = "" if field.nullable else " not null"
    return f"{short(label_of(field.name), 200)}  {short(str(field.type), 80)}{needed}"


def first_values(column: Any, count: int) -> list[Any]:
    """Return the first values; what could be huge inside is left where it is."""
    return [_value(column[place]) for place in range(min(count, len(column)))]


def _value(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    if str(scalar.type).partition("<")[0] in _NESTED:
        return Unread(str(scalar.type))
    if is_a(scalar, "pyarrow:BinaryScalar"):
        size = scalar.as_buffer().size
        return Unread(f"{size:,} bytes") if size > _LONG else scalar.as_py()
    return scalar.as_py()


def column(value: Any) -> Iterator[str]:
    """Describe an Array or a ChunkedArray."""
    size = len(value)
    chunks = f" in {value.num_chunks:,} chunks" if is_a(value, "pyarrow:ChunkedArray") else ""
    yield f"pyarrow {type(value).__name__} of {size:,}{chunks}, {short(str(value.type), 80)}"
    part = min(size, SAMPLE_FOR_COUNTS)
    yield f"missing: {value.slice(0, part).null_count} in {of_rows(part, size)}"
    yield first_line("", first_values(value, 10), size)


def scalar(value: Any) -> Iterator[str]:
    """Describe a single value."""
    yield f"pyarrow {type(value).__name__}: {brief(_value(value), 1)}"


def schema(value: Any) -> Iterator[str]:
    """Describe a Schema."""
    columns = len(value)
    names = ", ".join(label_of(value.field(place).name) for place in range(min(6, columns)))
    yield f"pyarrow Schema of {columns:,} columns: {names}{', …' if columns > 6 else ''}"
    yield from _schema_lines(value)


def _schema_lines(found: Any) -> Iterator[str]:
    for place in range(min(len(found), COLUMNS)):
        yield f"  {_field(found.field(place))}"
    yield from more_columns(len(found))


def small(value: Any) -> Iterator[str]:
    """Describe a data type or a field."""
    yield f"pyarrow {type(value).__name__} {short(str(value), 120)}"


def dataset(value: Any) -> Iterator[str]:
    """Describe a data set of files by its schema; no row is read or counted."""
    columns = len(value.schema)
    files = value.files if is_a(value, "pyarrow:FileSystemDataset") else None
    many = "" if files is None else f" of {len(files):,} files ({value.format.default_extname})"
    yield f"pyarrow {type(value).__name__}{many}, {columns:,} columns, not read"
    for name in itertools.islice(files or (), _FILES):
        yield f"  file {brief(name, 1)}"
    yield "columns (name, type):"
    yield from _schema_lines(value.schema)


def stream(value: Any) -> Iterator[str]:
    """Describe a reader of batches, of which none is taken, or a scanner."""
    found = value.projected_schema if is_a(value, "pyarrow:Scanner") else value.schema
    yield f"pyarrow {type(value).__name__}, {len(found):,} columns, nothing of it read"
    yield from _schema_lines(found)


def parquet(value: Any) -> Iterator[str]:
    """Describe an open Parquet file by the metadata that were read when it was opened."""
    stored = value.metadata
    yield f"open Parquet file, {stored.num_rows:,} rows x {stored.num_columns:,} columns, {stored.num_row_groups:,} row groups, no data read"
    yield f"written by {short(str(stored.created_by), 80)}"
    yield from _schema_lines(value.schema_arrow)
