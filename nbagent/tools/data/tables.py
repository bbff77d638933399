"""The tool `profile_table`: what is in the columns of a table, and what is suspicious about them.

The table is read in pieces on the kernel's thread (views, some ten thousand cells at a time); what is made of them is
worked out on another thread, so that the kernel goes on and Stop works. Nothing lazy is computed unless it is asked for,
the table is never changed or copied. Read `profile_tool`, then `profiled`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import difflib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nbagent.core.errors import ToolError
from nbagent.core.ports import Kernel
from nbagent.core.tools import Call, Kind, Tool, tool
from nbagent.tools.data import lazy
from nbagent.tools.data.kinds import FRAMES, type_name
from nbagent.tools.data.profile import Judged, judged, rendered
from nbagent.tools.data.reading import Column, Table, opened
from nbagent.tools.data.relations import joined, relations
from nbagent.tools.data.sampling import ROWS, Plan, batches, planned
from nbagent.tools.data.tally import Tally
from nbagent.tools.describe import safely
from nbagent.tools.secrets import HIDDEN, secret_name
from nbagent.tools.veil import Told

_T = TypeVar("_T")
_LONGEST = 240.0  # seconds of a look at all rows
_DIFFERENT = 2_000_000  # different values that are kept of all columns
_OTHERS = 6  # tables that joins are looked for in
_JOINS = 4
_FRAMES = frozenset({*FRAMES, "polars.dataframe.frame.DataFrame", "pyarrow.lib.Table"})

Progress = Callable[[str], None]


def profile_tool(kernel: Kernel) -> Tool:
    """Return `profile_table` on the namespace of `kernel`, read fresh at each call."""

    @tool(kind=Kind.READ, title=lambda given: f"profile_table {given['name']}{' in full' if given['full'] else ''}")
    async def profile_table(call: Call, name: str, full: bool = False) -> str:
        """Profile a table or column: missing, ranges, common and suspicious values, keys, duplicates, time gaps.

        Of a sample of rows, whose size is said. The table is not changed.

        Args:
            name: the variable's name.
            full: true to read all rows (slow), or to run a lazy query for its first rows.
        """
        namespace = kernel.namespace()
        if name not in namespace:
            near = difflib.get_close_matches(name, list(namespace), n=5, cutoff=0.5)
            raise ToolError(
                f"no variable is named {name!r}." + (f" Near: {', '.join(map(repr, near))}" if near else "")
            )
        return await profiled(name, namespace, full=full, progress=call.progress)

    return profile_table


async def profiled(
    name: str,
    namespace: Mapping[str, Any],
    *,
    full: bool = False,
    progress: Progress = lambda _: None,
    today: dt.date | None = None,
) -> str:
    """Return the profile of the table under `name`; raises `ToolError` for a value that is none.

    `today` is the day after which dates are suspicious.
    """
    value = namespace[name]
    if type(value) is Told:
        return safely(lambda: value.more(None))
    if secret_name(name):
        return f"{name}: {HIDDEN}"
    if (later := lazy.not_yet(value)) is not None and not full:
        return f"{name}: {later}"
    table = (await lazy.fetched(value)) if later is not None else _certain(lambda: opened(value))
    if table is None:
        raise ToolError(
            f"{name} is {type_name(value)}, no table that can be profiled: use inspect_variable, or make a data frame of it"
        )
    plan = planned(table)
    day = today or dt.datetime.now(tz=dt.UTC).date()
    tallies = await _counted(table, plan, [_tally(column, plan.rows, rows=True) for column in table.columns])
    columns = await _judge(table, tallies, plan, day)
    more = await asyncio.to_thread(relations, columns, tallies, plan)
    more += await _joins(name, table, tallies, namespace)
    said = (
        [
            f"its first {table.rows:,} rows; the query was run for them"
            if table.rows >= ROWS
            else "the query was run for it"
        ]
        if later
        else []
    )
    if full and later is None and not plan.whole:
        more.append("(duplicates and keys: of the sample; the columns below: of the rows named above)")
        most = max(1_000, _DIFFERENT // max(1, len(table.columns)))
        table, plan, tallies = await _in_full(table, most, progress)
        columns = await _judge(table, tallies, plan, day)
    return rendered(name, table, plan, columns, [*said, *more])


def _certain(get: Callable[[], _T]) -> _T:
    """Return what `get` returns; what it raises becomes a `ToolError`: a subclass of a table may raise anything."""
    box: list[_T] = []
    failed = safely(lambda: box.append(get()) or "")
    if not box:
        raise ToolError(f"the table can't be read: {failed}")
    return box[0]


def _tally(column: Column, most: int, *, rows: bool) -> Tally:
    return Tally(most, times=bool(column.unit), rows=rows and column.take is not None)


async def _counted(
    table: Table, plan: Plan, tallies: list[Tally], until: Callable[[int], bool] = lambda _: True
) -> list[Tally]:
    """Feed the rows of the plan to the tallies; `until` is told how many rows were read, and says whether to go on."""
    done = 0
    for start, stop, goes_on in plan.pieces(len(table.columns)):
        for first, last in batches(len(table.columns), stop - start):
            pairs = [
                (column, tally)
                for column, tally in zip(table.columns[first:last], tallies[first:last], strict=True)
                if column.take
            ]
            taken = [(tally, _certain(_taking(column, start, stop))) for column, tally in pairs]
            await asyncio.to_thread(_feed, taken, goes_on=goes_on)
        done += stop - start
        if not until(done):
            break
    return tallies


def _taking(column: Column, start: int, stop: int) -> Callable[[], list[Any]]:
    return lambda: column.take(start, stop) if column.take is not None else []


def _feed(taken: list[tuple[Tally, list[Any]]], *, goes_on: bool) -> None:
    for tally, values in taken:
        tally.feed(values, goes_on=goes_on)


async def _in_full(table: Table, most: int, progress: Progress) -> tuple[Table, Plan, list[Tally]]:
    """Read all rows, as far as the time goes; the plan that is returned says how far that was."""
    began, read = time.monotonic(), 0
    every = max(1, table.rows // 100)

    def goes_on(done: int) -> bool:
        nonlocal read
        if done // every > read // every:
            progress(f"{done:,} of {table.rows:,} rows")
        read = done
        return time.monotonic() - began < _LONGEST

    tallies = await _counted(
        table, planned(table, full=True), [_tally(column, most, rows=False) for column in table.columns], goes_on
    )
    return table, Plan(((0, read),), read, table.rows), tallies


async def _judge(table: Table, tallies: list[Tally], plan: Plan, today: dt.date) -> list[Judged]:
    found: list[Judged] = []
    for column, tally in zip(table.columns, tallies, strict=True):
        found.append(
            judged(column, tally, plan, today)
            if tally.rows * 20 < ROWS
            else await asyncio.to_thread(judged, column, tally, plan, today)
        )
        if len(found) % 20 == 0:
            await asyncio.sleep(0)
    return found


async def _joins(name: str, table: Table, tallies: list[Tally], namespace: Mapping[str, Any]) -> list[str]:
    """Return how columns fit those of the same label in other tables, which are small enough to be read whole."""
    mine = {
        column.label: tally
        for column, tally in zip(table.columns, tallies, strict=True)
        if column.take and not column.unit
    }
    lines: list[str] = []
    for other, value in list(namespace.items())[-200:]:
        if other == name or other.startswith("_") or secret_name(other) or value is namespace[name]:
            continue
        theirs = _certain(lambda value=value: opened(value)) if _is_frame(value) else None
        shared = (
            [c for c in theirs.columns if c.label in mine and c.take]
            if theirs is not None and theirs.rows <= ROWS
            else []
        )
        for column in shared[:_JOINS]:
            counts: Counter[Any] = Counter()
            values = _certain(_taking(column, 0, theirs.rows if theirs is not None else 0))
            await asyncio.to_thread(_count_plain, counts, values)
            said = joined(column.label, mine[column.label], other, counts)
            lines += [said] if said else []
        if len(lines) >= _OTHERS:
            break
    return lines[:_OTHERS]


def _is_frame(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in {"pandas", "polars", "pyarrow"} and hasattr(
        type(value), "columns"
    )


def _count_plain(counts: Counter[Any], values: list[Any]) -> None:
    counts.update([value for value in values if type(value) in {int, str}])
