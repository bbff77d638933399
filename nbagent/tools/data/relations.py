"""What a profile says of a table as a whole: rows and columns that are there twice, labels, keys of one or two columns, joins.

Works on the rows of the sample, as numbers: equal values have equal numbers. Read `relations`.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from nbagent.tools.data.moments import share
from nbagent.tools.data.profile import Judged
from nbagent.tools.data.sampling import Plan
from nbagent.tools.data.tally import Tally
from nbagent.tools.data.texts import plain_form, quoted

_PAIRED = 14  # columns of which pairs are tried
_TRIED = 2_000  # rows on which a pair is tried first
_NAMED = 6


def relations(columns: Sequence[Judged], tallies: Sequence[Tally], plan: Plan) -> list[str]:
    """Return the lines about the table as a whole."""
    where = "" if plan.whole else " in the sample"
    both = [(one, tally) for one, tally in zip(columns, tallies, strict=True) if not one.column.index]
    return [
        *_labels(columns),
        *_twice(both, plan, where),
        *_same_columns(both, where),
        *_keys(list(zip(columns, tallies, strict=True)), where),
    ]


def _labels(columns: Sequence[Judged]) -> list[str]:
    labels = Counter(one.column.label for one in columns if not one.column.index)
    lines = (
        [f"! labels that occur more than once: {_some([label for label, n in labels.items() if n > 1])}"]
        if max(labels.values(), default=0) > 1
        else []
    )
    groups: dict[str, list[str]] = defaultdict(list)
    for label in labels:
        groups[plain_form(label)].append(label)
    alike = [" / ".join(group) for group in groups.values() if len(group) > 1]
    return [*lines, *([f"! labels that differ by case, blanks or signs only: {_some(alike)}"] if alike else [])]


def _some(items: Sequence[str]) -> str:
    return ", ".join(items[:_NAMED]) + (f", … ({len(items):,})" if len(items) > _NAMED else "")


def _twice(both: Sequence[tuple[Judged, Tally]], plan: Plan, where: str) -> list[str]:
    """Count rows that are there more than once, and those that are the same but for a key."""
    kept = [(one, tally) for one, tally in both if tally.codes is not None and len(tally.codes) == plan.rows]
    if len(both) < 2 or not kept or plan.rows < 2:
        return []
    missed = len(both) - len(kept)
    but = f" (not counting {missed:,} {'column' if missed == 1 else 'columns'} not looked into)" if missed else ""
    many = _again([tally for _, tally in kept], plan.rows)
    if many:
        return [f"! {many:,} rows ({share(many, plan.rows)}) are there more than once{where}{but}"]
    lines = [f"no row is there twice{where}{but}"]
    keys, rest = [one.column.label for one, _ in kept if one.key], [tally for one, tally in kept if not one.key]
    alike = _again(rest, plan.rows) if keys and len(rest) > 1 else 0
    if 0 < alike < plan.rows * 0.2:
        lines.append(f"! {alike:,} rows are the same as another but for {_some(keys)}{where}")
    return lines


def _again(tallies: Sequence[Tally], rows: int) -> int:
    """Return how many rows are like one before, as far as these columns go."""
    if any(tally.distinct == rows for tally in tallies):
        return 0
    return rows - len(set(zip(*(tally.codes for tally in tallies if tally.codes is not None), strict=True)))


def _same_columns(both: Sequence[tuple[Judged, Tally]], where: str) -> list[str]:
    groups: dict[tuple[int, bytes], list[tuple[Judged, Tally]]] = defaultdict(list)
    for one, tally in both:
        if tally.codes is not None and tally.distinct > 1:
            groups[tally.distinct, tally.codes.tobytes()].append((one, tally))
    same = [
        f"{first.column.label} = {other.column.label}"
        for group in groups.values()
        for (first, mine), (other, theirs) in itertools.pairwise(group)
        if list(mine.counts) == list(theirs.counts) and mine.missing.total() == theirs.missing.total()
    ]
    return [f"! columns with the same values{where}: {_some(same)}"] if same else []


def _keys(both: Sequence[tuple[Judged, Tally]], where: str) -> list[str]:
    single = [one.column.label for one, _ in both if one.key]
    if single:
        return [f"key candidates: {_some(single)}{where}"]
    able = [(one.column.label, tally) for one, tally in both if _can_be_part(one, tally)]
    able = sorted(able, key=lambda item: -item[1].distinct)[:_PAIRED]
    pairs = [f"({a}, {b})" for (a, mine), (b, theirs) in itertools.combinations(able, 2) if _identify(mine, theirs)]
    if pairs:
        return [f"no single column is a key; pairs that are{where}: {_some(pairs)}"]
    return [f"no column and no pair of columns is a key{where}"] if able else []


def _can_be_part(one: Judged, tally: Tally) -> bool:
    whole = not tally.kinds.get("float") and not tally.strange and not tally.missing.total()
    return whole and tally.codes is not None and tally.distinct > 1 and one.column.take is not None


def _identify(mine: Tally, theirs: Tally) -> bool:
    a, b = mine.codes, theirs.codes
    if a is None or b is None or len(a) != len(b) or mine.distinct * theirs.distinct < len(a):
        return False
    first = min(_TRIED, len(a))
    return len(set(zip(a[:first], b[:first], strict=True))) == first and len(set(zip(a, b, strict=True))) == len(a)


# ── joins ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def joined(label: str, mine: Tally, other: str, theirs: Mapping[Any, int]) -> str | None:
    """Return how a column fits the column of the same label in another table, whose counts are `theirs`; None where it says nothing.

    Said is only what a join would want to know: whether the label is unique there, and which values have no partner.
    """
    if mine.distinct < 2 or len(theirs) < 2 or any(type(value) is float for value in itertools.islice(mine.counts, 50)):
        return None
    lost = {value: n for value, n in mine.counts.items() if value not in theirs}
    found = mine.present - sum(lost.values())
    if found < mine.present * 0.2 and not _mended(lost, theirs):
        kinds = {type(value).__name__ for value in itertools.islice(mine.counts, 50)} | {
            type(v).__name__ for v in itertools.islice(theirs, 50)
        }
        return (
            f"! join with {other} on {label}: {' against '.join(sorted(kinds))}, nothing would match"
            if {"int", "str"} <= kinds
            else None
        )
    unique = "unique there" if max(theirs.values()) == 1 else f"up to {max(theirs.values()):,} times there"
    if not lost:
        return f"join with {other} on {label} ({unique}): every value has a partner"
    mended = _mended(lost, theirs)
    more = f"; {mended:,} of them would match without case, blanks and signs" if mended else ""
    named = ", ".join(quoted(str(value)) for value in list(lost)[:4])
    return f"! join with {other} on {label} ({unique}): {len(lost):,} values ({share(sum(lost.values()), mine.present)} of rows) have no partner: {named}{', …' if len(lost) > 4 else ''}{more}"


def _mended(lost: Mapping[Any, int], theirs: Mapping[Any, int]) -> int:
    plain = {plain_form(value) for value in theirs if type(value) is str}
    return sum(type(value) is str and plain_form(value) in plain for value in lost)
