"""Tools that look at the person's variables without computing, consuming or changing anything.

What a value is, in what detail, is told by `describe.py` and `details.py`. Read `tools` first.
"""

from __future__ import annotations

import difflib
import fnmatch
import itertools
from collections.abc import Mapping
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.ports import Kernel
from nbagent.core.tools import Call, Kind, Tool, tool
from nbagent.tools.data.kinds import names_of, type_name
from nbagent.tools.data.tables import profile_tool
from nbagent.tools.describe import FRAMES, brief, brief_of, label_of, safely
from nbagent.tools.details import SAMPLE_FOR_COUNTS, details, of_rows
from nbagent.tools.secrets import HIDDEN, secret_name
from nbagent.tools.veil import Told

_POLARS = "polars.dataframe.frame.DataFrame"
_VALUES = 10


def tools(kernel: Kernel) -> list[Tool]:
    """Return `list_variables`, `inspect_variable` and `profile_table` on the namespace of `kernel`, read fresh at each call."""

    @tool(kind=Kind.READ, title=lambda given: f"list variables {given['pattern']}".rstrip(" *"))
    async def list_variables(_call: Call, pattern: str = "*", limit: int = 200) -> str:
        """List the variables of the notebook's kernel, one line each: name, type, size, start of the value.

        Nothing is computed. Call it before you assume that a variable exists; the list is of this moment.

        Args:
            pattern: only names that match, e.g. "df*".
            limit: how many at most; the last defined ones are shown.
        """
        return describe_all(kernel.namespace(), pattern, limit)

    @tool(kind=Kind.READ, title=lambda given: f"inspect {given['name']} {given['column'] or ''}".strip())
    async def inspect_variable(_call: Call, name: str, column: str | None = None) -> str:
        """Show one variable in detail: a table's columns, dtypes and first rows; items; a signature; attributes.

        Rows and items shown are a sample, never all of them. Lazy objects are not computed.

        Args:
            name: the variable's name, not an expression.
            column: of a pandas or polars table: one column's values and counts instead.
        """
        namespace = kernel.namespace()
        if name not in namespace:
            raise ToolError(_unknown("variable", name, list(namespace)))
        value = namespace[name]
        if type(value) is Told:  # isinstance would ask the value
            return safely(lambda: value.more(column))
        return details(value, name) if column is None else column_of(name, value, column)

    return [list_variables, inspect_variable, profile_tool(kernel)]


_NAMES_TOLD = 20


def describe_all(namespace: Mapping[str, Any], pattern: str = "*", limit: int = 200) -> str:
    """Return a line for each variable whose name matches `pattern`, the last `limit` of them."""
    names = [name for name in namespace if fnmatch.fnmatchcase(name, pattern)]
    if not names:
        if not namespace:
            return "no variables yet"
        there = list(namespace)[-_NAMES_TOLD:]
        return f"no variable matches {pattern!r}; there are: {', '.join(there)}"
    shown = names[-max(1, limit) :]
    lines = [f"{name}: {brief_of(name, namespace[name])}" for name in shown]
    if len(shown) < len(names):
        lines.insert(0, f"the last {len(shown):,} of {len(names):,} variables (use pattern to see others):")
    return "\n".join(lines)


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
    if near:
        return f"no {what} is named {name!r}. Near: {', '.join(map(repr, near))}"
    if not known:
        return f"no {what} is named {name!r}: there are none yet"
    more = ", …" if len(known) > 10 else ""
    return f"no {what} is named {name!r}. There are: {', '.join(map(repr, known[-10:]))}{more}"


def column_of(name: str, value: Any, column: str) -> str:
    """Return what is told of one column of a table; raises `ToolError` for a value that is none, and for a wrong label."""
    kinds = set(names_of(type(value)))
    if not kinds & {*FRAMES, _POLARS}:
        raise ToolError(f"{name} is {type_name(value)}: `column` is for pandas and polars tables. Leave it out.")
    labels = list(itertools.islice(value.columns, 100_000))
    # labels need not be text: the model may write 2020 for the int, or a tuple as it was shown
    place = next((i for i, label in enumerate(labels) if column in (label_of(label), _as_text(label))), None)
    if place is None:
        raise ToolError(_unknown(f"column of {name}", column, [_as_text(label) for label in labels]))
    if secret_name(name) or secret_name(_as_text(labels[place])):
        return f"column {label_of(labels[place])}, {len(value):,} rows; values: {HIDDEN}"
    data = value.iloc[:, place] if kinds & FRAMES else value[labels[place]]
    return safely(lambda: _column_details(data, label_of(labels[place]), len(value)))


def _as_text(label: Any) -> str:
    return label if type(label) is str else label_of(label)


def _column_details(data: Any, label: str, rows: int) -> str:
    """Describe a column by its first rows: a count over all of a large table would block the kernel."""
    part = data.head(SAMPLE_FOR_COUNTS)
    values = part.to_list()
    polars = next(iter(names_of(type(data)))).startswith("polars.")
    missing = int(part.null_count()) if polars else int(part.isna().sum())
    counts: dict[str, int] = {}
    for value in values:
        text = brief(value, 1)
        counts[text] = counts.get(text, 0) + 1
    common = sorted(counts.items(), key=lambda item: -item[1])
    lines = [
        f"column {label}, {data.dtype}, {rows:,} rows; the rest is of {of_rows(len(values), rows)}:",
        f"missing: {missing:,}; distinct: {len(counts):,}",
    ]
    numbers = [v for v in values if type(v) in (int, float) and v == v]  # noqa: PLR0124  (NaN is not itself)
    if numbers:
        mean = sum(numbers) / len(numbers)
        lines.append(f"min {min(numbers):g}, mean {mean:g}, max {max(numbers):g}")
    if len(counts) <= 50 or not numbers:
        lines.append("most common: " + ", ".join(f"{text} ({count:,})" for text, count in common[:_VALUES]))
    lines.append("first: " + ", ".join(brief(value, 1) for value in values[:_VALUES]))
    return "\n".join(lines)
