"""What a profile says: a line a column, what is suspicious about it, what could be a key, what is there twice.

Pure functions of counts; how they are taken is `tables.py`'s. Read `judged`, then `rendered`.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.tools.data.moments import Findings, moment, of_times, share
from nbagent.tools.data.numbers import number, of_numbers
from nbagent.tools.data.reading import Column, Table
from nbagent.tools.data.sampling import Plan
from nbagent.tools.data.tally import Tally
from nbagent.tools.data.texts import of_texts, quoted
from nbagent.tools.describe import short

_MOST_COLUMNS = 40
_MOST_TEXT = 9_000
_CLEAN = 10  # of many columns, how many are told at least
_FINDINGS = 6
_COMMON = 5
_NAMES = 60


@dataclass(frozen=True, slots=True)
class Judged:
    """What is said of one column. `key`: it could identify rows; `weight` how suspicious it is."""

    column: Column
    said: str
    findings: tuple[str, ...] = ()
    weight: int = 0
    key: bool = False


def judged(column: Column, tally: Tally, plan: Plan, today: dt.date) -> Judged:
    """Return what is said of a column by its counts."""
    if column.secret:
        return Judged(column, "values hidden: its name looks like a secret's")
    odd: Findings = [(3, text) for text in column.odd]
    if column.take is None:
        return Judged(column, "not looked into: its values are no plain ones", tuple(text for _, text in odd))
    said, found, blank = _of_kind(column, tally, plan, today)
    odd += _of_types(tally)
    if tally.distinct == 1 and tally.present == tally.rows > 1:
        odd.append((4, f"constant: {shown(next(iter(tally.counts)), column, times=tally.times)}"))
    elif not tally.present and tally.rows:
        odd.append((5, "nothing in it"))
    found = sorted([*odd, *found], key=lambda item: -item[0])
    key = _is_key(tally) and not column.scale
    parts = [_missing(tally, blank), *([said] if said else []), _different(tally), *_common(column, tally)]
    if key:
        parts.append("key candidate")
    text = "; ".join(part for part in parts if part)
    text = text if tally.rows else "no rows"
    return Judged(column, text, tuple(text for _, text in found[:_FINDINGS]), sum(weight for weight, _ in found), key)


def _of_kind(column: Column, tally: Tally, plan: Plan, today: dt.date) -> tuple[str, Findings, int]:
    if column.unit or tally.times:
        said, found = of_times(tally, column.unit or 1, column.zone, whole=plan.whole, today=today)
        return said, found, 0
    texts = Counter({value: n for value, n in tally.counts.items() if type(value) is str})
    if texts:
        said, found, blank = of_texts(texts)
        if tally.overflow:
            found = [(weight, f"{text} (among the first {tally.most:,} different texts)") for weight, text in found]
        return said, found, blank
    if set(tally.kinds) <= {"bool"}:
        return "", [], 0
    said, found = of_numbers(tally, column.scale)
    return said, found, 0


def _of_types(tally: Tally) -> Findings:
    kinds = {name: n for name, n in tally.kinds.items() if n} | dict(tally.strange)
    if set(kinds) <= {"int", "float"}:
        return []
    if len(kinds) > 1:
        named = ", ".join(f"{name} ({n:,})" for name, n in sorted(kinds.items(), key=lambda item: -item[1])[:5])
        return [(8, f"mixed types: {named}")]
    return [(3, f"holds {name} objects, which were not looked into") for name in tally.strange]


def _missing(tally: Tally, blank: int) -> str:
    lost = tally.missing.total()
    if not lost:
        return "no missing" if not blank else f"{share(blank, tally.rows)} blank or a word for nothing"
    kinds = ", ".join(f"{name} {n:,}" if len(tally.missing) > 1 else name for name, n in tally.missing.items() if n)
    more = f", and {blank:,} blank or a word for nothing" if blank else ""
    return f"missing {lost:,} ({share(lost, tally.rows)}: {kinds}){more}"


def _different(tally: Tally) -> str:
    if tally.overflow:
        return "all different" if _is_key(tally) else f"more than {tally.most:,} different"
    if tally.present and tally.distinct == tally.present > 1:
        return "all different"
    return f"{tally.distinct:,} different" + (f" in the first {200} characters" if tally.cut else "")


def _common(column: Column, tally: Tally) -> list[str]:
    if not tally.counts or tally.distinct in {tally.present, 1}:
        return []
    top = tally.counts.most_common(_COMMON)
    if tally.distinct > 30 and top[0][1] < 0.02 * tally.present:
        return []
    return [
        "most common "
        + ", ".join(f"{shown(value, column, times=tally.times)} ({share(n, tally.rows)})" for value, n in top)
    ]


def shown(value: Any, column: Column, *, times: bool) -> str:
    """Return one value as text."""
    if type(value) is str:
        return quoted(value)
    if times and type(value) is int:
        return moment(value, column.unit or 1, column.zone)
    return f"{value * column.scale / 1e9:g} s" if column.scale else number(value)


def _is_key(tally: Tally) -> bool:
    """Whether every row has a value and no two have the same: of whole numbers, texts and times."""
    if tally.missing.total() or tally.strange or tally.rows < 2:
        return False
    if any("float" in name for name, n in tally.kinds.items() if n):
        return False
    return tally.rising and tally.kinds.keys() == {"int"} if tally.overflow else tally.distinct == tally.rows


# ── the whole answer ─────────────────────────────────────────────────────────────────────────────────────────────────


def rendered(name: str, table: Table, plan: Plan, columns: Sequence[Judged], more: Sequence[str]) -> str:
    """Return the answer: size and sample, what holds for the table, then the columns, of many the most suspicious first."""
    most = _MOST_COLUMNS
    count = sum(not one.column.index for one in columns)
    lines = [f"{name}: {table.kind}, {table.rows:,} rows x {count:,} columns", plan.said(), *more, ""]
    ordered = list(columns)
    if len(columns) > _MOST_COLUMNS:
        ordered = sorted(columns, key=lambda one: -one.weight)
        most = min(most, max(_CLEAN, sum(one.weight > 0 for one in columns)))
    size = sum(map(len, lines))
    told = 0
    for one in ordered[:most]:
        block = _block(one)
        size += sum(map(len, block))
        if told and size > _MOST_TEXT:
            break
        lines += block
        told += 1
    return "\n".join([*lines, *_rest(ordered[told:])])


def _block(one: Judged) -> list[str]:
    head = f"{'index ' if one.column.index else ''}{one.column.label}  {one.column.dtype}: {one.said}"
    return [short(head, 420), *(f"    ! {short(text, 300)}" for text in one.findings)]


def _rest(left: Sequence[Judged]) -> list[str]:
    if not left:
        return []
    kinds = Counter(one.column.dtype for one in left)
    types = ", ".join(f"{n:,} {dtype}" for dtype, n in kinds.most_common(8))
    odd = [one for one in left if one.weight]
    names = ", ".join(short(one.column.label, 30) for one in (odd or left)[:_NAMES])
    more = ", …" if len(odd or left) > _NAMES else ""
    what = (
        f"{len(odd):,} of them with something suspicious: {names}{more}"
        if odd
        else f"nothing suspicious in them: {names}{more}"
    )
    return [
        "",
        f"… and {len(left):,} more columns ({short(types, 300)}), {what}. inspect_variable with column= shows one.",
    ]
