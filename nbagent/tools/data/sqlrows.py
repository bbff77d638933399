"""The rows of a query as text: a small Markdown table with types, cut to a size that a model can read.

Must not know how the rows came about. Read `fetched`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.messages import clean
from nbagent.core.shown import visible_plain
from nbagent.tools.secrets import mask, secret_name

_COLUMNS = 40
_CELL = 120
_ALL = 9_000
"""Characters of all rows."""
_COUNTING = 0.3
"""Seconds for which rows are counted that are not shown."""
_HIDDEN = "<hidden>"
_LONG = 20_000
"""Characters of a text that are fetched; more than are shown, so that a key in it is known as one."""
_ITEMS = 200
"""Items of a list that are fetched."""
_SCALARS = re.compile(r"[A-Z_0-9]+(?:\(\d+,\d+\))?\[\]")
_FETCHED = 200_000
"""Values that are fetched at once where rows are counted."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What the model reads of a result, and the line for people."""

    text: str
    summary: str


def shortened(statement: str, labels: Sequence[str], types: Sequence[str]) -> str:
    """Return a SELECT whose long values are cut by DuckDB: `list(x)` of a big table would be a Python object each in the kernel."""
    columns = [_shortened(at, kind) for at, kind in enumerate(types, 1)]
    if all(column == f"#{at}" for at, column in enumerate(columns, 1)):
        return statement
    named = ", ".join(
        f'{column} AS "{label.replace(chr(34), chr(34) * 2)}"' for column, label in zip(columns, labels, strict=True)
    )
    return f"SELECT {named} FROM (\n{statement}\n)"  # noqa: S608  (names are quoted; the statement is one SELECT by DuckDB's parser)


def _shortened(at: int, kind: str) -> str:
    if kind in {"VARCHAR", "JSON"}:
        return f"CASE WHEN strlen(#{at}) > {_LONG} THEN left(#{at}, {_LONG}) ELSE #{at} END"
    if kind == "BLOB":
        return f"format('{{:,}} bytes', octet_length(#{at}))"
    if _SCALARS.fullmatch(kind) and not kind.startswith(("VARCHAR", "JSON", "BLOB", "VARIANT")):
        return f"#{at}[1:{_ITEMS}]"
    nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "TUPLE", "VARIANT", "VARCHAR", "JSON"))
    return f"left(CAST(#{at} AS VARCHAR), {_LONG})" if nested else f"#{at}"


def fetched(
    cursor: Any, limit: int, notes: Sequence[str], stopped: Callable[[], bool], types: Sequence[str] | None = None
) -> Rows:
    """Fetch up to `limit` rows of a cursor and count the others, as far as that is quick; `types`: where the cursor has others."""
    described: list[Any] = list(cursor.description or ())
    labels = [str(column[0]) for column in described]
    types = [str(column[1]) for column in described] if types is None else list(types)
    rows: list[tuple[Any, ...]] = cursor.fetchmany(limit)
    total, ended = len(rows), len(rows) < limit
    until = time.monotonic() + _COUNTING
    while not ended and not stopped() and time.monotonic() < until:
        more = len(cursor.fetchmany(max(1, min(10_000, _FETCHED // max(1, len(labels))))))
        total, ended = total + more, more == 0
    if labels in (["explain_key", "explain_value"], ["explain_value"]) and rows:
        return Rows(clean(str(rows[0][-1]))[:_ALL], "plan")
    shown = [_row(row, labels) for row in rows]
    return _told(labels, types, shown, total, notes, ended=ended)


def _told(
    labels: list[str], types: list[str], rows: list[list[str]], total: int, notes: Sequence[str], *, ended: bool
) -> Rows:
    width = min(len(labels), _COLUMNS)
    lines = [
        _line([f"{_cell(label)} {kind}" for label, kind in zip(labels[:width], types, strict=False)]),
        _line(["---"] * width),
    ]
    size = sum(map(len, lines))
    fitting = 0
    for row in rows:
        line = _line(row[:width])
        size += len(line) + 1
        if size > _ALL and fitting:
            break
        lines.append(line)
        fitting += 1
    many = f"{total:,}" if ended else f"more than {total:,}"
    count = f"{many} row{'s' * (total != 1)}"
    head = count if fitting == total and ended else f"the first {fitting:,} of {count}"
    if width < len(labels):
        head += f", the first {width} of {len(labels):,} columns"
    told = (
        [head + ":", "", *lines]
        if labels and rows
        else [f"{count}. Columns: {', '.join(f'{a} {b}' for a, b in zip(labels, types, strict=False))}"]
    )
    if notes:
        told += ["", "Left out or to know: " + "; ".join(dict.fromkeys(notes)) + "."]
    return Rows("\n".join(told), f"{count} × {len(labels):,}")


def _row(row: Sequence[Any], labels: Sequence[str]) -> list[str]:
    named = str(row[labels.index("column_name")]) if "column_name" in labels else ""
    about_secret = secret_name(named)  # SUMMARIZE tells the smallest and largest value of each column
    return [
        _HIDDEN if value is not None and (secret_name(label) or (about_secret and label in {"min", "max", "q25", "q50", "q75", "avg"}))
        else _cell(value)
        for label, value in zip(labels, row, strict=True)
    ]  # fmt: skip


def _cell(value: Any) -> str:
    """Return one value on one line, in which no bar ends the cell; a text that is cut says so."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        text = f"{value:.10g}"
    elif isinstance(value, bytes):
        text = f"{len(value):,} bytes"
    else:
        text = mask(str(value)[:20_000])
    text = visible_plain(clean(text).replace("\n", "⏎").replace("\t", " ").replace("|", "\\|"))
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
