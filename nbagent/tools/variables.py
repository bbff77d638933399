"""Tools that look at the person's variables without computing, consuming or changing anything.

What a value is, in what detail, is told by `describe.py` and `details.py`. Read `tools` first.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.ports import Kernel
from nbagent.core.tools import Call, Kind, Tool, tool
from nbagent.tools.data.columndetails import column_details
from nbagent.tools.data.columns import table_of
from nbagent.tools.data.describers import Describer, attempt, find_describer, lines_of
from nbagent.tools.data.kinds import type_name
from nbagent.tools.data.tables import profile_tool
from nbagent.tools.describe import brief_of, failed, label_of, safely
from nbagent.tools.details import details
from nbagent.tools.secrets import HIDDEN, secret_name
from nbagent.tools.veil import Told


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
            column: of a table: one column's values and counts instead.
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
    describer = find_describer(type(value))
    if describer is not None and (tell := describer.column) is not None:
        asked = replace(describer, describe=lambda found: tell(found, column))
        return _foreign_column(asked, name, value, column)
    table = table_of(value)
    if table is None:
        raise ToolError(f"{name} is {type_name(value)}: `column` is for tables. Leave it out.")
    labels = table.labels()
    # labels need not be text: the model may write 2020 for the int, or a tuple as it was shown
    place = next((i for i, label in enumerate(labels) if column in (label_of(label), _as_text(label))), None)
    if place is None:
        raise ToolError(_unknown(f"column of {name}", column, [_as_text(label) for label in labels]))
    label = label_of(labels[place])
    rows = "" if table.rows is None else f", {table.rows:,} rows"
    if secret_name(name) or secret_name(_as_text(labels[place])):
        return f"column {label}{rows}; values: {HIDDEN}"
    return safely(lambda: column_details(table, place, label))


def _foreign_column(describer: Describer, name: str, value: Any, column: str) -> str:
    if secret_name(name) or secret_name(column):
        return f"column {column!r}; values: {HIDDEN}"
    given = attempt(lambda: "\n".join(lines_of(describer, value)))
    return given if isinstance(given, str) and given else f"({failed(describer, given)})"


def _as_text(label: Any) -> str:
    return label if type(label) is str else label_of(label)
