"""References to lines of cells in a text, `In[4]:3` with the piece of code that is to stand there, and whether they hold.

A model may name a cell that is not there, a line that it made up, or code that nobody wrote: each reference is looked up.
Pure. Must not know who wrote the text or how it is shown. Read `checked`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nbagent.core.ports import Cell

_REFERENCE = re.compile(
    r"(?P<open>`?)(?P<cell>In\[(?P<number>\d+)\]|cell (?P<id>[\w-]{4,64}))(?::(?P<line>\d+)(?:[-–](?P<last>\d+))?)(?P=open)"
    r"(?:[ \t]*[:,–-]?[ \t]*`(?!(?:In\[\d+\]|cell [\w-]+):\d)(?P<quote>[^`\n]+)`)?"
)
_HEADING = re.compile(r"^#{2,4} *(?:\d+[.)] *)?\**(?P<weight>high|medium|low)\b\**", re.IGNORECASE)
_ANY_HEADING = re.compile(r"^#{2,4} ")
_NUMBERED = re.compile(r"^(#{2,4} *)(?:\d+[.)] *)?")
_CHECK = re.compile(r"\**Check\b")
_WEIGHTS = {"high": 0, "medium": 1, "low": 2}
NEAR = 2
"""Lines above and below in which a quote may stand, where it does not stand in the very line."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference. `problem` says why it does not hold, "" where it does; `at` is the line where the quote stands."""

    cell: str
    line: int
    quote: str
    problem: str
    id: str = ""
    at: int = 0


def checked(text: str, cells: Sequence[Cell], link: Callable[[Reference], str]) -> tuple[str, list[Reference]]:
    """Return `text` with each reference as `link` writes it, and behind one that does not hold why; and the references.

    A quote counts wherever it stands in the named cell; the reference then names the line where it does.
    """
    found: list[Reference] = []

    def marked(match: re.Match[str]) -> str:
        one = look_up(match, cells)
        found.append(one)
        quote = f" `{one.quote}`" if one.quote else ""
        if one.problem:
            return f"{one.cell}:{one.line}{quote} **(not found: {one.problem})**"
        return f"{link(one)}{quote}"

    return _REFERENCE.sub(marked, text), found


def look_up(match: re.Match[str], cells: Sequence[Cell]) -> Reference:
    """Return a reference as it holds in `cells`."""
    name, line, quote = match["cell"], int(match["line"]), (match["quote"] or "").strip()
    last = int(match["last"] or line)
    cell = _cell(match, cells)
    if cell is None:
        return Reference(name, line, quote, "there is no such cell")
    lines = cell.source.split("\n")
    if not 0 < line <= len(lines):
        there = f"{len(lines)} line{'s' * (len(lines) != 1)}"
        if not quote or not (at := _standing(quote, lines, 1, len(lines))):
            return Reference(name, line, quote, f"the cell has {there}", cell.id)
        return Reference(name, at, quote, "", cell.id, at)
    if not quote:
        return Reference(name, line, "", "", cell.id, line)
    at = _standing(quote, lines, line - NEAR, last + NEAR, line) or _standing(quote, lines, 1, len(lines), line)
    if not at:
        return Reference(name, line, quote, "this code is not in the cell", cell.id)
    return Reference(name, at, quote, "", cell.id, at)


def _cell(match: re.Match[str], cells: Sequence[Cell]) -> Cell | None:
    if match["number"]:
        same = [cell for cell in cells if cell.number == int(match["number"])]
        return same[-1] if same else None
    begun = [cell for cell in cells if cell.id.startswith(match["id"])]
    return begun[0] if len(begun) == 1 else None


def _standing(quote: str, lines: Sequence[str], first: int, last: int, near: int = 1) -> int:
    """Return the line, from `first` to `last`, that `quote` stands in, the nearest to `near`; 0 for none. Spaces don't count."""
    wanted = _bare(quote.removesuffix("…").removesuffix("..."))
    if not wanted:
        return 0
    order = sorted(range(max(1, first), min(len(lines), last) + 1), key=lambda n: (abs(n - near), n))
    return next((n for n in order if wanted in _bare(lines[n - 1])), 0)


def _bare(text: str) -> str:
    return "".join(text.split())


def _spaced(lines: Sequence[str]) -> list[str]:
    """Return a finding with its reference and its check as paragraphs of their own: one line break is none in Markdown."""
    spaced: list[str] = []
    fenced = False
    for place, line in enumerate(lines):
        after = spaced[-1] if spaced else ""
        cited = after.startswith("`") and not after.startswith("```") and place == 2
        if not fenced and place > 1 and after.strip() and line.strip() and (cited or _CHECK.match(line)):
            spaced.append("")
        fenced ^= line.lstrip().startswith("```")
        spaced.append(line)
    return spaced


def summed_up(found: Sequence[Reference]) -> str:
    """Return one sentence on what came of the references."""
    if not found:
        return "It names no line of a cell, so nothing could be looked up."
    wrong = [one for one in found if one.problem]
    looked = f"{len(found)} reference{'s' * (len(found) != 1)} to lines looked up"
    if not wrong:
        return f"{looked}: {'all stand' if len(found) > 1 else 'it stands'} there."
    named = ", ".join(f"{one.cell}:{one.line} ({one.problem})" for one in wrong[:5])
    return f"{looked}; {len(wrong)} not found: {named}."


def by_weight(text: str) -> str:
    """Return a review with its findings (a heading each: `### 1. high: …`) numbered in the order high, medium, low.

    What stands before the first finding stays first, what comes after the last one stays last.
    """
    head: list[str] = []
    tail: list[str] = []
    parts: list[tuple[int, list[str]]] = []
    into = head
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and (heading := _HEADING.match(line)):
            into = [line]
            parts.append((_WEIGHTS[heading["weight"].lower()], into))
        elif not fenced and parts and _ANY_HEADING.match(line):
            into = tail
            tail.append(line)
        else:
            into.append(line)
    ordered = sorted(parts, key=lambda part: part[0])  # stable: of one weight as they came
    for number, (_, lines) in enumerate(ordered, 1):
        lines[0] = _NUMBERED.sub(lambda m, n=number: f"{m[1]}{n}. ", lines[0], count=1)
    bodies = ["\n".join(_spaced(lines)).strip("\n") for _, lines in ordered]
    return "\n\n".join(text for text in ("\n".join(head).strip("\n"), *bodies, "\n".join(tail).strip("\n")) if text)
