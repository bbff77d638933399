"""What Parquet and Arrow files hold, from what they say of themselves and their first rows; folders of Parquet files too.

pyarrow is imported when such a file is looked at, and not needed before. Read `parquet`.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from nbagent.core.errors import ToolError
from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.opening import size_text
from nbagent.tools.data.records import columns_of
from nbagent.tools.data.telling import ColumnSaid, call_text, cell_text, columns_text, rows_text

_COLUMNS = 16
_GROUPS = 200
_FILES = 5_000
_OPENED = 12
_CHUNK = 400_000_000  # bytes that a file may claim for a column's chunk and still be looked into
_BATCH = 200_000_000
_MANY = 5_000_000


def parquet(file: BinaryIO, asked: Asked) -> list[str]:
    """Return what a Parquet file is. Raises `ToolError` for a broken one."""
    if not _there():
        return _needs("Parquet", asked)
    import pyarrow as pa  # noqa: PLC0415  (only for such files)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        opened = pq.ParquetFile(file)
        return _parquet(opened, asked)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ToolError(f"it begins as a Parquet file, but can't be read: {str(error)[:200]}") from None


def _there() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def _needs(what: str, asked: Asked) -> list[str]:
    return [f"{what}. To look into it the package pyarrow must be installed", f"{size_text(asked.size)} on disk"]


def _parquet(opened: Any, asked: Asked) -> list[str]:
    meta, schema = opened.metadata, opened.schema_arrow
    groups = meta.num_row_groups
    packed = meta.row_group(0).column(0).compression.lower() if groups and meta.num_columns else "none"
    rows = _first_rows(opened, max(asked.rows, 20))
    labels = list(schema.names)
    facts = _facts(meta) if meta.num_columns == len(labels) else {}
    found = columns_of(labels[:_COLUMNS], rows) if rows else []
    examples = {column.label: column.examples for column in found}
    columns = [
        ColumnSaid(name, str(schema.field(place).type), facts.get(place, ""), examples.get(name, ()))
        for place, name in enumerate(labels)
    ]
    wide = meta.num_rows > _MANY
    chosen: list[tuple[str, Any]] = [("columns", labels[:3])] if wide and len(labels) > 3 else []
    return [
        f"Parquet, {meta.num_rows:,} rows x {len(labels):,} columns, {groups:,} row groups, packed by {packed}",
        f"{size_text(asked.size)} on disk, {size_text(_unpacked(meta))} before packing; written by {str(meta.created_by)[:60]}",
        *columns_text(columns),
        *(
            rows_text(list(map(repr, labels[:_COLUMNS])), rows, asked.rows)
            or ["its rows were not looked at"] * bool(meta.num_rows)
        ),
        "",
        "To read it" + (" (with the columns that are needed: it is large):" if chosen else ":"),
        "df = " + call_text("pd.read_parquet", asked.path, chosen),
    ]


def _unpacked(meta: Any) -> int:
    return sum(meta.row_group(place).total_byte_size for place in range(min(meta.num_row_groups, 10_000)))


def _first_rows(opened: Any, rows: int) -> list[list[Any]]:
    """Return the first rows of the first columns; [] where a chunk claims to be too large to be looked into."""
    meta, names = opened.metadata, list(opened.schema_arrow.names)[:_COLUMNS]
    if not meta.num_row_groups or not names or len(set(names)) < len(names):
        return []
    group = meta.row_group(0)
    if any(
        group.column(place).total_uncompressed_size > _CHUNK for place in range(min(group.num_columns, _COLUMNS * 4))
    ):
        return []
    for batch in opened.iter_batches(batch_size=rows, row_groups=[0], columns=names, use_threads=False):
        return [list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    return []


def _facts(meta: Any) -> dict[int, str]:
    """Return for each column what the file's statistics say: missing values and range."""
    if not 0 < meta.num_row_groups <= _GROUPS:
        return {}
    found: dict[int, str] = {}
    for place in range(min(meta.num_columns, 60)):
        stats = [meta.row_group(group).column(place).statistics for group in range(meta.num_row_groups)]
        said = []
        if all(stat is not None and stat.has_null_count for stat in stats):
            lost = sum(stat.null_count for stat in stats)
            said.append(f"{lost:,} missing" if lost else "none missing")
        if all(stat is not None and stat.has_min_max for stat in stats):
            said.append(_range(stats))
        found[place] = ", ".join(part for part in said if part)
    return found


def _range(stats: list[Any]) -> str:
    try:
        low, high = min(stat.min for stat in stats), max(stat.max for stat in stats)
    except (TypeError, ValueError, OverflowError):  # of different types, or a date beyond Python's
        return ""
    return f"{cell_text(low)} … {cell_text(high)}" if not isinstance(low, bytes) else ""


# ── a folder of Parquet files ────────────────────────────────────────────────────────────────────────────────────────


def folder(path: Path, shown: str, rows: int, may_read: Callable[[Path], bool]) -> list[str]:
    """Return what a folder of Parquet files is; `may_read` tells of a file in it whether it may be opened."""
    files = list(_files(path))
    parts = [one for one in files if one.suffix.lower() in {".parquet", ".parq", ".pq"}]
    if not parts:
        kinds = Counter(one.suffix.lower() or "(no ending)" for one in files)
        named = ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common(8))
        return [f"a folder; no Parquet file is in it ({named or 'no file'}). Name one file"]
    readable = [one for one in parts if may_read(one)]
    if not readable:
        raise ToolError("none of the Parquet files in the folder may be read")
    sizes = {one: one.stat().st_size for one in readable}
    keys = _keys(path, readable)
    counted, first = _counted(readable, sizes, shown, rows)
    whole = len(readable) <= _OPENED
    known = sum(n for n, _ in counted)
    read = sum(size for _, size in counted)
    about = (
        f"{known:,} rows"
        if whole
        else f"about {known * sum(sizes.values()) / max(1, read):,.0f} rows (an estimate from {len(counted)} files)"
    )
    left = len(parts) - len(readable)
    lines = [
        f"a folder of {len(readable):,} Parquet files, {about}",
        f"{size_text(sum(sizes.values()))} on disk",
        *([f"! {left:,} files in it may not be read and were left out"] if left else []),
        *(
            [
                f"parts by folder: {', '.join(f'{key} ({len(values):,} values, e.g. {min(values)})' for key, values in keys.items())}"
            ]
            if keys
            else []
        ),
        *(
            ["! _delta_log is there: a Delta table, which may have dropped some of these files (package deltalake)"]
            if (path / "_delta_log").is_dir()
            else []
        ),
    ]
    return [
        *lines,
        f"The first file, {readable[0].relative_to(path).as_posix()}:",
        *first,
        "",
        "To read all:",
        "df = " + call_text("pd.read_parquet", shown),
    ]


def _files(path: Path) -> Iterator[Path]:
    count = 0
    for here, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in sorted(names):
            if not name.startswith((".", "_")):
                yield Path(here) / name
                count += 1
                if count >= _FILES:
                    return


def _keys(path: Path, files: list[Path]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in files:
        for part in one.relative_to(path).parts[:-1]:
            key, equals, value = part.partition("=")
            if equals:
                found.setdefault(key, set()).add(value)
    return found


def _counted(
    files: list[Path], sizes: dict[Path, int], shown: str, rows: int
) -> tuple[list[tuple[int, int]], list[str]]:
    """Return rows and bytes of some of the files, and what the first one is."""
    from nbagent.tools import paths  # noqa: PLC0415  (it is needed for folders only)

    with paths.opened(files[0]) as file:
        first = parquet(file, Asked(shown, rows, sizes[files[0]]))
    if not _there():
        return [], first[:1]
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    counted: list[tuple[int, int]] = []
    for one in files[:: max(1, len(files) // _OPENED)][:_OPENED]:
        try:
            with paths.opened(one) as file:
                counted.append((pq.ParquetFile(file).metadata.num_rows, sizes[one]))
        except (pa.ArrowException, OSError) as error:
            raise ToolError(f"{one.name} can't be read: {str(error)[:200]}") from None
    return counted, first[
        : next((place for place, line in enumerate(first) if line.startswith("To read it")), len(first)) - 1
    ]


# ── Arrow ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def arrow(file: BinaryIO, start: bytes, asked: Asked) -> list[str]:
    """Return what an Arrow or Feather file is. Raises `ToolError` for a broken one."""
    if not _there():
        return _needs("Arrow (Feather)", asked)
    if start.startswith(b"FEA1"):
        return [
            "Feather in its first version",
            f"{size_text(asked.size)} on disk",
            "",
            "To read it:",
            "df = " + call_text("pd.read_feather", asked.path),
        ]
    import pyarrow as pa  # noqa: PLC0415  (only for such files)
    from pyarrow import ipc  # noqa: PLC0415

    try:
        if start.startswith(b"ARROW1"):
            reader = ipc.open_file(file)
            count = reader.num_record_batches
            batch = reader.get_batch(0) if count and asked.size / count <= _BATCH else None
            return _arrow(reader.schema, batch, count, asked)
        stream = ipc.open_stream(file)
        batch = stream.read_next_batch() if asked.size <= _BATCH else None
        return _arrow(stream.schema, batch, 0, asked)
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise ToolError(f"it begins as an Arrow file, but can't be read: {str(error)[:200]}") from None


def _arrow(schema: Any, batch: Any, count: int, asked: Asked) -> list[str]:
    labels = list(schema.names)
    rows: list[list[Any]] = []
    if batch is not None and batch.num_columns:
        head = batch.slice(0, max(asked.rows, 20))
        rows = [list(row) for row in zip(*(column.to_pylist() for column in head.columns[:_COLUMNS]), strict=True)]
    said = "rows not counted"
    if batch is not None and count:
        said = (
            f"{batch.num_rows:,} rows"
            if count == 1
            else f"about {batch.num_rows * count:,} rows ({count:,} batches; an estimate by the first)"
        )
    call = call_text("pd.read_feather", asked.path) if count else f"pa.ipc.open_stream({asked.path!r}).read_pandas()"
    examples = {column.label: column.examples for column in columns_of(labels[:_COLUMNS], rows)} if rows else {}
    columns = [
        ColumnSaid(name, str(schema.field(place).type), "", examples.get(name, ())) for place, name in enumerate(labels)
    ]
    return [
        f"Arrow {'file (Feather)' if count else 'stream'}, {said}, {len(labels):,} columns",
        f"{size_text(asked.size)} on disk",
        *columns_text(columns),
        *rows_text(list(map(repr, labels[:_COLUMNS])), rows, asked.rows),
        "",
        "To read it:",
        *([] if count else ["import pyarrow as pa"]),
        f"df = {call}",
    ]
