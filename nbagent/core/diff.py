"""What changed between two texts, line by line and word by word: rows with line numbers, for every surface to draw.

The cost is linear in the texts, whatever they are: lines that both have once are matched first, what is left between
them is compared only as far as a budget goes, and beyond it shown as plain old and new. Pure: knows nothing of HTML or
terminals. Read `rows`, then `_match`.
"""

from __future__ import annotations

import bisect
import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from nbagent.core.shown import visible_plain

CONTEXT: Final = 3
"""Unchanged lines that are shown before and after a change."""

_BUDGET: Final = 1_500_000  # comparisons of one diff: about a quarter of a second
_DEPTH: Final = 8  # times that what lies between two matched lines is itself searched for lines to match
_ALIKE: Final = 0.4  # share of a line that must have stayed for its changed words to be marked
_PAIRED: Final = 40  # lines of a changed block within which a line looks for its like
_PART = re.compile(r"# ── .+ ──")
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a diff: `sign` says whether it stays, goes or comes; `old` and `new` are its numbers, from 1.

    `marks` are the stretches of `text` that changed, as (start, end); empty where the whole line did.
    """

    sign: Literal[" ", "-", "+"]
    text: str
    old: int | None
    new: int | None
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class _Budget:
    left: int = _BUDGET

    def takes(self, cost: int) -> bool:
        """Whether there is enough left for `cost`; if so it is spent."""
        if cost > self.left:
            return False
        self.left -= cost
        return True


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends; an empty text has none."""
    return text.split("\n") if text else []


def part_line(label: str) -> str:
    """Return the line with which a text of several cells says where the next one begins: parts are compared one by one."""
    return f"# ── {label} ──"


def rows(old: str, new: str) -> list[Row]:
    """Return every line of both texts, in order: what goes stands before what comes in its place."""
    before, after = lines_of(old), lines_of(new)
    budget = _Budget()
    result: list[Row] = []
    i = j = 0
    for at, to in [*_pairs(before, after, budget), (len(before), len(after))]:
        gone = [Row("-", before[n], n + 1, None) for n in range(i, at)]
        come = [Row("+", after[n], None, n + 1) for n in range(j, to)]
        if gone and come:
            _mark_words(gone, come, budget)
        result += gone
        result += come
        if at < len(before):
            result.append(Row(" ", before[at], at + 1, to + 1))
        i, j = at + 1, to + 1
    return result


def stretches(every: Sequence[Row], context: int = CONTEXT) -> Iterator[tuple[bool, Sequence[Row]]]:
    """Yield the rows in stretches, each with whether it is to be seen: far from any change it can be left out.

    A stretch of one or two lines is not left out: saying so would take as much room.
    """
    shown = [False] * len(every)
    seen = -context - 1
    for place, row in enumerate(every):
        seen = place if row.sign != " " else seen
        shown[place] = place - seen <= context
    seen = len(every) + context
    for place in range(len(every) - 1, -1, -1):
        seen = place if every[place].sign != " " else seen
        shown[place] = shown[place] or seen - place <= context
    start = 0
    for place in range(1, len(every) + 1):
        if place < len(every) and (shown[place] == shown[start] or (not shown[place] and _short(shown, place))):
            shown[place] = shown[start] or shown[place]
            continue
        yield shown[start] or place - start < 3, every[start:place]
        start = place


def _short(shown: Sequence[bool], place: int) -> bool:
    """Whether a stretch that would be left out, beginning at `place`, has less than three lines."""
    end = next((n for n in range(place, min(place + 3, len(shown))) if shown[n]), None)
    return (end if end is not None else min(place + 3, len(shown))) - place < 3


def unified(old: str, new: str, *, carets: bool = False, context: int = CONTEXT, line: int = 1) -> list[str]:
    """Return the diff as plain lines, hidden characters shown: a sign and the text, `@@ … @@` where lines are left out.

    `carets`: under a line with changed words a line that begins with ? points at them. `line` is the number of the first
    line in its file (0: not known, then none is said).
    """
    result: list[str] = []
    every = rows(old, new)
    if all(row.sign == " " for row in every):
        return ["(no change)"]
    for seen, part in stretches(every, context):
        if not seen:
            result.append(f"@@ {_many(len(part))} @@")
            continue
        at = (part[0].new or part[0].old or 1) + line - 1
        if line and (result or at != 1 or len(every) > 10):
            result.append(f"@@ from line {at} @@")
        for row in part:
            result.append(row.sign + visible_plain(row.text))
            if carets and row.marks:
                result.append("?" + _pointing(row))
    return _joined(result)


def _joined(lines: list[str]) -> list[str]:
    """Say in one line what was left out and where the next line stands."""
    result: list[str] = []
    for line in lines:
        if line.startswith("@@ from") and result and result[-1].startswith("@@ "):
            result[-1] = f"{result[-1].removesuffix(' @@')}, then{line.removeprefix('@@ from')}"
        else:
            result.append(line)
    return result


def _many(number: int) -> str:
    return f"{number:,} unchanged line{'' if number == 1 else 's'}"


def _pointing(row: Row) -> str:
    """A line of blanks with ^ under the changed words of a row."""
    line, at = "", 0
    for start, end in row.marks:
        line += _blank(row.text[at:start], " ") + _blank(row.text[start:end], "^")
        at = end
    return line


def _blank(text: str, mark: str) -> str:
    return "".join(
        char if char == "\t" else mark * (2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1)
        for char in visible_plain(text)
    )


# ── which lines are the same ─────────────────────────────────────────────────────────────────────────────────────────


def _pairs(a: Sequence[str], b: Sequence[str], budget: _Budget) -> list[tuple[int, int]]:
    """Return places of equal items, rising in both."""
    out: list[tuple[int, int]] = []
    i = j = 0
    for at, to in _parts(a, b):
        _match(a, b, (i, at), (j, to), budget, out, 0)
        out.append((at, to))
        i, j = at + 1, to + 1
    _match(a, b, (i, len(a)), (j, len(b)), budget, out, 0)
    return out


def _parts(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Return where the same parts begin in both, nothing where they have not the same: a line that moved would hide them."""
    in_a, in_b = ([place for place, line in enumerate(lines) if _PART.fullmatch(line)] for lines in (a, b))
    return list(zip(in_a, in_b, strict=True)) if [a[n] for n in in_a] == [b[n] for n in in_b] else []


def _match(
    a: Sequence[str], b: Sequence[str], of_a: tuple[int, int], of_b: tuple[int, int], budget: _Budget,
    out: list[tuple[int, int]], depth: int,
) -> None:  # fmt: skip
    """Match a stretch of `a` and one of `b`: equal begin and end, then items that both have once, then difflib."""
    (i, end_a), (j, end_b) = of_a, of_b
    while i < end_a and j < end_b and a[i] == b[j]:
        out.append((i, j))
        i, j = i + 1, j + 1
    tail = 0
    while i < end_a - tail and j < end_b - tail and a[end_a - tail - 1] == b[end_b - tail - 1]:
        tail += 1
    end_a, end_b = end_a - tail, end_b - tail
    if i < end_a and j < end_b:
        anchors = _anchors(a, b, (i, end_a), (j, end_b)) if depth < _DEPTH else []
        for at, to in anchors:
            if at < i or to < j:
                continue  # the stretch before has matched it already
            _match(a, b, (i, at), (j, to), budget, out, depth + 1)
            out.append((at, to))
            i, j = at + 1, to + 1
        if anchors:
            _match(a, b, (i, end_a), (j, end_b), budget, out, depth + 1)
        elif budget.takes(_cost(a[i:end_a], b[j:end_b])):
            for block in difflib.SequenceMatcher(None, a[i:end_a], b[j:end_b], autojunk=False).get_matching_blocks():
                out += [(i + block.a + n, j + block.b + n) for n in range(block.size)]
    out += [(end_a + n, end_b + n) for n in range(tail)]


def _anchors(a: Sequence[str], b: Sequence[str], of_a: tuple[int, int], of_b: tuple[int, int]) -> list[tuple[int, int]]:
    """Return places of items that both stretches have exactly once, as many as stand in the same order in both."""
    once_a, once_b = Counter(a[slice(*of_a)]), Counter(b[slice(*of_b)])
    place_b = {b[n]: n for n in range(*of_b) if once_b[b[n]] == 1}
    common = [(n, place_b[a[n]]) for n in range(*of_a) if once_a[a[n]] == 1 and a[n] in place_b]
    ends: list[int] = []  # the longest rising run, by patience sorting
    tops: list[int] = []
    before: list[int] = [-1] * len(common)
    for index, (_, to) in enumerate(common):
        pile = bisect.bisect_left(ends, to)
        before[index] = tops[pile - 1] if pile else -1
        ends[pile : pile + 1] = [to]
        tops[pile : pile + 1] = [index]
    chain: list[tuple[int, int]] = []
    at = tops[-1] if tops else -1
    while at >= 0:
        chain.append(common[at])
        at = before[at]
    return chain[::-1]


def _cost(a: Sequence[str], b: Sequence[str]) -> int:
    """At most so many comparisons does difflib make: for each block that matches, all pairs of equal items."""
    in_b = Counter(b)
    equal = sum(number * in_b[item] for item, number in Counter(a).items())
    return len(a) + len(b) + equal * min(len(a), len(b))


# ── which words changed ──────────────────────────────────────────────────────────────────────────────────────────────


def _mark_words(gone: list[Row], come: list[Row], budget: _Budget) -> None:
    """Mark the changed words of each line that has its like among the lines that come in its place."""
    same_number = len(gone) == len(come)
    if not same_number and len(gone) * len(come) > _PAIRED * _PAIRED:
        return
    least = 0
    for n, row in enumerate(gone):
        places = (n,) if same_number else range(least, len(come))
        found = [(pair, m) for m in places if (pair := _compared(row, come[m], budget)) is not None]
        if found:
            pair, m = max(found, key=lambda item: item[0].share)
            gone[n], come[m] = replace(row, marks=pair.old), replace(come[m], marks=pair.new)
            least = m + 1


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two lines that are alike: the share of them that stayed, and the stretches that changed."""

    share: float
    old: tuple[tuple[int, int], ...]
    new: tuple[tuple[int, int], ...]


def _compared(old: Row, new: Row, budget: _Budget) -> _Pair | None:
    """Return what changed in a line, None for two different lines: marking nearly all words would only be noise."""
    left, right = _WORD.findall(old.text), _WORD.findall(new.text)
    if not budget.takes(4 * (len(left) + len(right))):
        return None
    pairs = _pairs(left, right, budget)
    size = sum(len(word) for word in [*left, *right] if not word.isspace())
    stayed = 2 * sum(len(left[i]) for i, _ in pairs if not left[i].isspace())
    if not size or stayed < _ALIKE * size:
        return None
    return _Pair(stayed / size, _marks(left, {i for i, _ in pairs}), _marks(right, {j for _, j in pairs}))


def _marks(words: Sequence[str], same: set[int]) -> tuple[tuple[int, int], ...]:
    """The stretches of the words that are not `same`; blanks between two changed words belong to them."""
    marks: list[tuple[int, int]] = []
    at = 0
    open_gap = False  # whether only blanks stand between here and the last mark
    for place, word in enumerate(words):
        end = at + len(word)
        if place not in same:
            start = marks.pop()[0] if marks and open_gap else at
            marks.append((start, end))
            open_gap = True
        elif not word.isspace():
            open_gap = False
        at = end
    return tuple(marks)
