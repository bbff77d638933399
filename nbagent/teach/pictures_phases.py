"""The pictures of lessons 07, 09 and 10: generators in generators, what they cost, a window that fills, text and blocks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import pairwise

from nbagent.teach.pictures import Picture
from nbagent.teach.pictures_loop import drawing, line
from nbagent.teach.stop_reasons import Filling

_EDGE, _SOFT = "#607d8b", "#b0bec5"
_MODEL, _RUNTIME, _ALARM, _FREE = "#cfe3f5", "#dcedc8", "#c62828", "#eceff1"


def _drawing(width: int, height: int, *parts: str) -> str:
    return drawing(width, height, *parts, anchor="start")


def _box(x: float, y: float, width: float, height: float, fill: str = "#ffffff", edge: str = _EDGE) -> str:
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" fill="{fill}" stroke="{edge}"/>'


def _said(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{html.escape(words)}</text>'


def nested() -> Picture:
    """Return lesson 07's picture: an event goes up through each generator, and closing goes down to the innermost."""
    small = 'font-size="12"'
    rows = (
        (20, 20, 600, 190, "cell: async for event in run(…)", "the consumer: sets the pace"),
        (40, 68, 400, 130, "run(…)", "async with aclosing(phase(this)) as events"),
        (60, 122, 360, 66, "think(this)", "the innermost: waits for the model"),
    )
    boxes = [_box(x, y, w, h, fill) + _said(x + 14, y + 21, a, 'font-weight="bold"') + _said(x + 14, y + 38, b, small)
             for (x, y, w, h, a, b), fill in zip(rows, ("#ffffff", _MODEL, _RUNTIME), strict=True)]  # fmt: skip
    svg = _drawing(
        640, 230, *boxes,
        line("M350 150V112"), line("M350 96V52"), _said(362, 104, "an event", small),
        line("M500 46V190"), _said(512, 92, "aclose():", 'font-weight="bold"'), _said(512, 112, "1. think's finally", small),
        _said(512, 130, "2. run's finally", small), _said(512, 148, "3. it returns", small),
    )  # fmt: skip
    return Picture(
        svg,
        "Three generators, one in the other. An event goes up through each of them; aclose() of the outer one runs the finally of the innermost first.",
    )


def costs(rows: Sequence[tuple[int, float, float]]) -> Picture:
    """Return what an event costs by depth, as bars: forwarded by each generator, and delegated (`composing.costs`)."""
    most = max(max(one, other) for _, one, other in rows)
    parts: list[str] = [_said(20, 26, "microseconds an event, by depth", 'font-weight="bold"')]
    for place, (depth, one, other) in enumerate(rows):
        y = 44 + 46 * place
        parts.append(_said(58, y + 21, str(depth), 'text-anchor="end"'))
        for row, (value, fill) in enumerate(((one, _MODEL), (other, _RUNTIME))):
            width = max(2.0, 420 * value / most)
            parts += [
                _box(70, y + 17 * row, width, 15, fill),
                _said(78 + width, y + 12 + 17 * row, f"{value:.2f}", 'font-size="12"'),
            ]
    y = 58 + 46 * len(rows)
    parts += [_box(70, y, 14, 14, _MODEL), _said(90, y + 12, "async for … yield in each", 'font-size="12"')]
    parts += [_box(270, y, 14, 14, _RUNTIME), _said(290, y + 12, "delegate and flat", 'font-size="12"')]
    told = "; ".join(f"depth {depth}: {one:.2f} and {other:.2f}" for depth, one, other in rows)
    return Picture(
        _drawing(600, y + 34, *parts),
        f"Microseconds an event takes, forwarded by each generator and delegated. {told}.",
    )


def two_forms() -> Picture:
    """Return lesson 10's picture: one reply as text, where words are marks, and as blocks, where the marks are outside the words."""
    lines = (
        ("Thought:", " I count the birds of 2008.", _MODEL),
        ("Action:", " count", _MODEL),
        ("Input:", " year == 2008", _MODEL),
        ("Observation:", " 114", _RUNTIME),
    )
    text = "".join(
        _box(20, 44 + 34 * n, 300, 30, fill)
        + f'<text x="32" y="{64 + 34 * n}"><tspan font-weight="bold">{label}</tspan>{html.escape(rest)}</text>'
        for n, (label, rest, fill) in enumerate(lines)
    )
    blocks = (
        ("text", "I count the birds of 2008.", _MODEL),
        ("tool_use  toolu_1  count", '{"where": "year == 2008"}', _MODEL),
        ("tool_result  toolu_1", "114", _RUNTIME),
    )
    shapes = "".join(
        _box(360, 44 + 46 * n, 310, 42, "#ffffff")
        + _box(360, 44 + 46 * n, 310, 17, _SOFT, _SOFT)
        + _said(370, 57 + 46 * n, kind, 'font-size="12" font-weight="bold"')
        + _box(366, 63 + 46 * n, 298, 20, fill, fill)
        + _said(372, 78 + 46 * n, words, 'font-size="13"')
        for n, (kind, words, fill) in enumerate(blocks)
    )
    svg = _drawing(
        690, 226,
        _said(20, 30, "ReAct: marks and words are one text", 'font-weight="bold"'), text,
        _said(360, 30, "Tool blocks: the marks are outside", 'font-weight="bold"'), shapes,
        _box(20, 198, 14, 14, _MODEL), _said(40, 210, "written by the model", 'font-size="12"'),
        _box(190, 198, 14, 14, _RUNTIME), _said(210, 210, "by the program", 'font-size="12"'),
        _box(360, 198, 14, 14, _SOFT), _said(380, 210, "structure that no word can imitate", 'font-size="12"'),
    )  # fmt: skip
    return Picture(
        svg,
        "Left: Thought, Action, Input and Observation are words in one text. Right: blocks of the kinds text, tool_use and tool_result, whose kind, id and name stand outside the words.",
    )


def filling(found: Filling) -> Picture:
    """Return lesson 09's picture: the size of each request in the window, with the line at which it is summed up."""
    top = max(found.window, *found.sizes) * 1.08
    width = 560 / len(found.sizes)

    def height(tokens: float) -> float:
        return 200 * tokens / top

    floor, limit, mark = 240, 240 - height(found.window), 240 - height(found.window * found.at)
    parts = [_box(50, limit, 570, height(found.window), _FREE, _FREE)]
    for place, size in enumerate(found.sizes):
        over = size > found.window
        fill = _ALARM if over else _RUNTIME if place in found.summed else _MODEL
        parts.append(_box(56 + width * place, floor - height(size), width - 6, height(size), fill))
        parts.append(_said(53 + width * (place + 0.5), 256, str(place + 1), 'font-size="11" text-anchor="middle"'))
    lines = [
        (limit, f"window: {found.window:,} tokens"),
        *[(mark, f"summed up from {found.at:.0%}")] * bool(found.summed),
    ]
    for y, words in lines:
        parts.append(f'<path d="M50 {y:.0f}H620" stroke="{_ALARM}" stroke-width="1.4" stroke-dasharray="6 4"/>')
        parts.append(_said(54, y - 5, words, 'font-size="12"'))
    parts.append(_said(335, 274, "request", 'font-size="12" text-anchor="middle"'))
    grown = sum(after > before for before, after in pairwise(found.sizes))
    alt = f"{len(found.sizes)} requests in a window of {found.window:,} tokens; {grown} are larger than the one before, {len(found.summed)} begin with a summary."
    return Picture(_drawing(640, 284, *parts), alt)
