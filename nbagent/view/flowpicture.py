"""How the cells of a notebook depend on one another, as a picture: boxes in order, arrows for names; and the same as text.

An SVG made of text, without scripts, styles or anything from outside; its colours hold on light and dark, and no colour
says what words do not. All text of others is escaped. Must not know how dependencies are found. Read `picture_svg`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nbagent.core.shown import visible_plain
from nbagent.view.text import count, escape, one_line

BOXES = 60
"""Cells that are drawn; of a longer notebook those that something is said of come first."""
ARROWS = 150
_WIDTH, _ROW, _BOX, _LEFT = 640, 34, 24, 190
_COLORS = {"fails": "#d55e00", "differs": "#d55e00", "random": "#b8860b", "new": "#808080", "unknown": "#808080",
           "not run": "#808080", "skipped": "#808080", "same": "#009e73"}  # fmt: skip
"""To be told apart with any eyes; the mark and the words beside a box say the same."""
MARKS = {
    "fails": "✗",
    "differs": "≠",
    "random": "~",
    "new": "·",
    "unknown": "?",
    "not run": "–",
    "skipped": "–",
    "same": "✓",
}


@dataclass(frozen=True, slots=True)
class Box:
    """One cell of the picture; `state` is as in `tools.verdict`."""

    id: str
    label: str
    line: str
    state: str


Arrows = Sequence[tuple[str, str, str]]
"""(from, to, names) by ids of cells."""


def picture_svg(boxes: Sequence[Box], arrows: Arrows) -> str:
    """Return the picture as an `<svg>` element, "" where there are no cells."""
    shown = _chosen(boxes)
    if not shown:
        return ""
    places = {box.id: row for row, box in enumerate(shown)}
    drawn = [(places[a], places[b], names) for a, b, names in arrows if a in places and b in places][:ARROWS]
    height = len(shown) * _ROW + 10
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
            f'role="img" aria-label="{escape(_spoken(shown, drawn))}" style="max-width:100%;height:auto;color:inherit" '
            'font-family="sans-serif" font-size="12">'
        )
    ]
    parts += [_arrow(start, end, names, lane) for (start, end, names), lane in zip(drawn, _lanes(drawn), strict=True)]
    parts += [_drawn(box, row) for row, box in enumerate(shown)]
    return "".join([*parts, "</svg>"])


def _chosen(boxes: Sequence[Box]) -> list[Box]:
    if len(boxes) <= BOXES:
        return list(boxes)
    told = [box for box in boxes if box.state not in {"same", "skipped"}][:BOXES]
    rest = [box for box in boxes if box not in told][: BOXES - len(told)]
    return [box for box in boxes if box in told or box in rest]


def _said(text: str, limit: int = 60) -> str:
    return visible_plain(one_line(text, limit), spaces=False)


def _words(text: str, limit: int) -> str:
    return escape(_said(text, limit))


def _drawn(box: Box, row: int) -> str:
    """A box with the cell's number and first line, marked by what became of it."""
    top, color = 5 + row * _ROW, _COLORS.get(box.state, "#808080")
    mark = MARKS.get(box.state, "?")
    dash = ' stroke-dasharray="4 3"' if box.state in {"skipped", "not run", "new"} else ""
    width = _WIDTH - _LEFT - 6
    return (
        f"<g><title>{_words(f'{box.label}: {box.state}. {box.line}', 200)}</title>"
        f'<rect x="{_LEFT}" y="{top}" width="{width}" height="{_BOX}" rx="4" fill="{color}" fill-opacity=".13" '
        f'stroke="{color}" stroke-width="1.5"{dash}/>'
        f'<text x="{_LEFT + 8}" y="{top + 16}" fill="currentColor"><tspan font-weight="bold">{mark} {_words(box.label, 20)}</tspan>'
        f' <tspan font-family="monospace" font-size="11">{_words(box.line, 46)}</tspan></text></g>'
    )


def _lanes(arrows: Sequence[tuple[int, int, str]]) -> list[int]:
    """Return for each arrow how far left it runs: longer ones further out, none on another that it would cover."""
    order = sorted(range(len(arrows)), key=lambda n: abs(arrows[n][0] - arrows[n][1]))
    taken: list[list[tuple[int, int]]] = []
    lanes = [0] * len(arrows)
    for n in order:
        low, high = sorted(arrows[n][:2])
        lane = next((k for k, used in enumerate(taken) if all(high <= a or low >= b for a, b in used)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        lanes[n] = lane
    return lanes


def _arrow(start: int, end: int, names: str, lane: int) -> str:
    """A line from one box to another by way of its lane, with the names; one that goes up is dashed."""
    x = max(_LEFT - 14 - 13 * lane, 6)
    y1, y2 = 5 + start * _ROW + 17, 5 + end * _ROW + 8
    up = ' stroke-dasharray="3 3"' if end < start else ""
    line = f"M{_LEFT} {y1}H{x + 5}Q{x} {y1} {x} {y1 + (5 if y2 > y1 else -5)}V{y2 - (5 if y2 > y1 else -5)}Q{x} {y2} {x + 5} {y2}H{_LEFT - 5}"
    head = f"M{_LEFT - 6} {y2 - 4}L{_LEFT} {y2}L{_LEFT - 6} {y2 + 4}Z"
    said = f'<text x="{_LEFT - 8}" y="{y2 - 3}" text-anchor="end" font-size="9" fill="currentColor" fill-opacity=".8">{_words(names, 22)}</text>'
    return (
        f'<g fill="none" stroke="currentColor" stroke-opacity=".55"><title>{_words(names, 200)}</title>'
        f'<path d="{line}"{up}/><path d="{head}" fill="currentColor" fill-opacity=".7" stroke="none"/></g>{said}'
    )


def _spoken(boxes: Sequence[Box], arrows: Sequence[tuple[int, int, str]]) -> str:
    needs = [f"{_said(boxes[b].label)} needs {_said(names)} of {_said(boxes[a].label)}" for a, b, names in arrows[:40]]
    return f"{count(len(boxes), 'cell')} in order. {'; '.join(needs)}"


def picture_text(boxes: Sequence[Box], arrows: Arrows, *, most: int = 80) -> list[str]:
    """Return the picture as lines of text: each cell with what it needs, and from where."""
    labels: Mapping[str, str] = {box.id: box.label for box in boxes}
    lines: list[str] = []
    for box in _chosen(boxes)[:most]:
        needs = [f"{one_line(names, 40)} ← {labels[a]}" for a, b, names in arrows if b == box.id and a in labels][:4]
        lines.append(
            f"{MARKS.get(box.state, '?')} {box.label:<8} {one_line(box.line, 44):<44}  {'; '.join(needs)}".rstrip()
        )
    return [visible_plain(line, spaces=False) for line in lines]
