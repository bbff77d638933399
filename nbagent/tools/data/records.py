"""What the columns of a few records hold that came with types: of Excel, JSON, SQLite, Arrow. Read `columns_of`."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nbagent.tools.data.spelling import is_nothing, reading_of
from nbagent.tools.data.telling import ColumnSaid, cell_text

_NAMES: dict[type, str] = {
    bool: "boolean", int: "integer", float: "number", str: "text", bytes: "bytes", dict: "object", list: "list",
    dt.datetime: "datetime", dt.date: "date", dt.time: "time", dt.timedelta: "duration",
}  # fmt: skip


def columns_of(labels: Sequence[str], rows: Sequence[Sequence[Any]], declared: Sequence[str] = ()) -> list[ColumnSaid]:
    """Return what each column holds; `declared` are the types that the file itself says."""
    found: list[ColumnSaid] = []
    for place, label in enumerate(labels):
        values = [row[place] for row in rows if place < len(row)]
        kind, more = kind_of(values)
        examples = list(dict.fromkeys(cell_text(value) for value in values if value is not None))[:3]
        found.append(ColumnSaid(label, declared[place] if declared else kind, more, tuple(examples)))
    return found


def kind_of(values: Sequence[Any]) -> tuple[str, str]:
    """Return the type of some values in words, and what else there is to say of them."""
    there = [value for value in values if value is not None and value == value]  # noqa: PLR0124  (NaN)
    lost = (
        len(values)
        - len(there)
        + sum(type(value) is str and (not value.strip() or is_nothing(value)) for value in there)
    )
    more = [f"{lost:,} of {len(values):,} missing"] if lost else []
    kinds = Counter(_NAMES.get(type(value), type(value).__name__) for value in there)
    if kinds.keys() == {"integer", "number"}:
        return "number", ", ".join(more)
    if len(kinds) > 1:
        named = ", ".join(f"{name} ({n:,})" for name, n in kinds.most_common(4))
        return "mixed", ", ".join([*more, named])
    kind = next(iter(kinds), "empty")
    if kind == "text":
        read = reading_of(value for value in there if type(value) is str)
        said = (
            "codes (leading zeros)"
            if read.codes
            else f"{read.kind} as text"
            if read.kind not in {"text", "empty"}
            else ""
        )
        more += [said] if said else []
    return kind, ", ".join(more)
