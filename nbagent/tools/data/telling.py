"""How what was found of a data file is written down: columns with types and examples, the first rows, the call that reads it.

Read `columns_text`, then `call_text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.tools.describe import short
from nbagent.tools.secrets import HIDDEN, mask, secret_name

_COLUMNS = 60
_SHOWN_COLUMNS = 16
_CELL = 40
MOST_ROWS = 50
"""Rows that are shown at most."""


@dataclass(frozen=True, slots=True)
class ColumnSaid:
    """One column of a file: label, type in words, what else there is to say, some values."""

    label: str
    kind: str
    more: str = ""
    examples: tuple[str, ...] = ()


def columns_text(columns: Sequence[ColumnSaid], what: str = "columns") -> list[str]:
    """Return a line a column; nothing of the values of one whose name looks like a secret's."""
    lines = [f"{len(columns):,} {what}:"]
    for column in columns[:_COLUMNS]:
        if secret_name(column.label):
            lines.append(f"  {short(repr(column.label), 80)}  {HIDDEN}")
            continue
        examples = ", ".join(short(mask(text), _CELL) for text in column.examples)
        parts = [column.kind, *([column.more] if column.more else []), *([f"e.g. {examples}"] if examples else [])]
        lines.append(short(f"  {short(repr(column.label), 80)}  {'; '.join(part for part in parts if part)}", 300))
    if len(columns) > _COLUMNS:
        lines.append(f"  … and {len(columns) - _COLUMNS:,} more")
    return lines


def rows_text(labels: Sequence[str], rows: Sequence[Sequence[Any]], wanted: int) -> list[str]:
    """Return the first rows, in short, as a table that says that it is a part."""
    shown = [list(row)[:_SHOWN_COLUMNS] for row in rows[: max(0, min(wanted, MOST_ROWS))]]
    if not shown:
        return []
    hidden = [secret_name(label) for label in labels[:_SHOWN_COLUMNS]]
    width = f", {_SHOWN_COLUMNS} of {len(labels):,} columns" if len(labels) > _SHOWN_COLUMNS else ""
    lines = [
        f"first {len(shown)} rows{width}:",
        "  " + " | ".join(short(label, _CELL) for label in labels[:_SHOWN_COLUMNS]),
    ]
    for row in shown:
        cells = ["…" if place < len(hidden) and hidden[place] else cell_text(value) for place, value in enumerate(row)]
        lines.append("  " + " | ".join(cells))
    return lines


def cell_text(value: Any) -> str:
    """Return one value in short, on one line."""
    if value is None:
        return "None"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value):,} bytes"
    if isinstance(value, dict):
        value = {key: "…" if secret_name(str(key)) else item for key, item in value.items()}
    if isinstance(value, dict | list | tuple):
        return short(mask(short(repr(value)[:400], 300)), _CELL)
    return short(mask(str(value)[:400].replace("\n", "⏎").replace("\r", "")), _CELL)


def call_text(function: str, path: str, options: Sequence[tuple[str, Any]] = ()) -> str:
    """Return a call as code: `pd.read_csv("a.csv", sep=";")`."""
    given = [_code(path), *(f"{name}={_code(value)}" for name, value in options)]
    return f"{function}({', '.join(given)})"


def _code(value: Any) -> str:
    if value is str:
        return "str"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_code(k)}: {_code(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_code, value)) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(_code, value)) + "]"
    if type(value) is str and "\\" not in value and '"' not in value and value.isprintable():
        return f'"{value}"'
    return repr(value)
