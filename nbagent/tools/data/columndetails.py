"""Says more of one column of a table: its range, how many values are missing and distinct, which are common.

Of the first rows only, and says so: a count over all of a large table would block the kernel. Read `column_details`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from nbagent.tools.data.columns import ROWS, Table
from nbagent.tools.data.numbers import number
from nbagent.tools.data.tabular import of_rows
from nbagent.tools.describe import brief, short

_VALUES = 10
_DISTINCT = 50
_ODD = 1_000  # values that are told one by one, since nothing is known of their ==
_LONG = 1_000
_EQUAL = frozenset({int, float, bool, type(None)})


def column_details(table: Table, place: int, label: str) -> str:
    """Return several lines about the column at a place of a table; that nothing is known of values that are not at hand."""
    given, dtype = table.values(place, ROWS), table.dtype(place)
    rows = "" if table.rows is None else f", {table.rows:,} rows"
    if given is None:
        return f"column {label}, {dtype}{rows}; its values are not in memory or of a kind that is not looked into"
    values, missing = given
    of = of_rows(len(values), table.rows) if table.rows is not None else f"the first {len(values):,} values"
    counts, counted = _counts(values)
    note = f" (of the first {counted:,})" if counted < len(values) else ""
    lines = [
        f"column {label}, {dtype}{rows}; the rest is of {of}:",
        f"missing: {missing:,}; distinct: {len(counts):,}{note}",
    ]
    numbers = [v for v in values if type(v) in (int, float) and v == v]  # noqa: PLR0124  (NaN is not itself)
    if numbers:
        lines.append(f"min {number(min(numbers))}, mean {_mean(numbers)}, max {number(max(numbers))}")
    if len(counts) <= _DISTINCT or not numbers:
        common = ", ".join(f"{text} ({count:,})" for text, count in counts.most_common(_VALUES))
        lines.append(f"most common{note}: {common}")
    lines.append("first: " + ", ".join(short(brief(value, 1), 120) for value in values[:_VALUES]))
    return "\n".join(lines)


def _mean(numbers: list[Any]) -> str:
    try:
        return number(float(sum(numbers)) / len(numbers))
    except OverflowError:  # whole numbers beyond a float's
        return "too large for a float"


def _counts(values: list[Any]) -> tuple[Counter[str], int]:
    """Count values by what is told of them; return how many were looked at, too."""
    plain: Counter[Any] = Counter()
    told: Counter[str] = Counter()
    odd = looked = 0
    for value in values:
        cls = type(value)
        if cls in _EQUAL or (cls is str and len(value) <= _LONG):
            plain[cls, value if value == value else "nan"] += 1  # noqa: PLR0124  (each NaN is another key)
        elif odd < _ODD:
            odd += 1
            told[short(brief(value, 1), 120)] += 1
        else:
            break
        looked += 1
    for (cls, value), count in plain.items():
        told["nan" if cls is float and value == "nan" else (brief(value, 1) if len(told) < _ROOM else repr(value))] += (
            count
        )
    return told, looked


_ROOM = 20_000
