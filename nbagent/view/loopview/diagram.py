"""The four states as a picture: the one that the loop is in is lit, the ways walked are thick and say how often, the path is below.

An SVG on a pale ground of its own, so that it reads the same on a light and on a dark page; no colour says what words do not.
Read `diagram_svg`; `words` says the same without a picture.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from nbagent.core.events import State
from nbagent.view.text import count, escape

if TYPE_CHECKING:
    from nbagent.view.loopview.seen import LoopSeen, Step

STEPS = 36
"""Steps of the path that are drawn, the last ones."""

COLOURS = {State.THINK: "#3f51b5", State.ACT: "#b3470b", State.OBSERVE: "#1b6e4a", State.DONE: "#4a4f57"}
"""Of a state, dark enough for white words on it."""

_INK, _PALE, _GROUND = "#2b2f36", "#c9ccd3", "#fbfaf6"
_WIDTH, _HEIGHT = 640, 250
_BOX = (112, 46)
_AT = {State.DONE: (72, 52), State.THINK: (296, 52), State.ACT: (540, 52), State.OBSERVE: (418, 156)}
_SAYS = {
    State.THINK: "the model replies",
    State.ACT: "its calls run",
    State.OBSERVE: "results go back",
    State.DONE: "one last event",
}
_WAYS = {
    (State.THINK, State.ACT): ((352, 52), (480, 52), (416, 43), "it calls"),
    (State.ACT, State.OBSERVE): ((525, 75), (455, 131), (515, 112), "results"),
    (State.OBSERVE, State.THINK): ((381, 131), (312, 77), (322, 112), "next turn"),
    (State.THINK, State.DONE): ((240, 52), (136, 52), (186, 43), "no call"),
}
"""From where to where an arrow goes, and where its words stand."""


def diagram_svg(seen: LoopSeen) -> str:
    """Return the picture as an `<svg>` element."""
    walked = ways(seen.path)
    marks = "".join(
        f'<marker id="nbl-{name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="{size}" markerHeight="{size}" orient="auto">'
        f'<path d="M0 0 10 5 0 10z" fill="{colour}"/></marker>'
        for name, size, colour in (("on", 5, _INK), ("off", 7, _PALE))
    )
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
            f'aria-label="{escape(words(seen))}" style="max-width:100%;height:auto" font-family="sans-serif" font-size="13">'
            f"<title>{escape(words(seen))}</title><defs>{marks}</defs>"
            f'<rect x="1" y="1" width="{_WIDTH - 2}" height="{_HEIGHT - 2}" rx="8" fill="{_GROUND}" stroke="{_PALE}"/>'
        )
    ]
    parts += [_way(way, walked[way]) for way in _WAYS]
    parts += [_box(state, lit=bool(seen.path) and state is seen.state) for state in _AT]
    other = sum(number for way, number in walked.items() if way not in _WAYS)
    if other:
        said = f"left the circle elsewhere: {count(other, 'time')}"
        parts.append(f'<text x="24" y="128" fill="{_INK}" font-size="12">{said}</text>')
    return "".join([*parts, *_strip(seen.path), "</svg>"])


def ways(path: tuple[Step, ...]) -> Counter[tuple[State, State]]:
    """Return how often each way from one state to another was walked."""
    pairs = itertools.pairwise(path)
    return Counter((a.state, b.state) for a, b in pairs if a.state is not b.state)


def words(seen: LoopSeen) -> str:
    """Return what the picture shows, in words."""
    if not seen.path:
        return "The four states of the loop: Think, Act, Observe, Done. Nothing has happened yet."
    turns = max((step.turn for step in seen.path), default=0)
    now = "The run is over" if seen.ended is not None else f"The loop is in {seen.state}, turn {seen.turn}"
    return f"{now}. Walked so far, in {count(turns, 'turn')}: {path_words(seen.path)}."


def path_words(path: tuple[Step, ...], limit: int = 12) -> str:
    """Return the path in words, the last `limit` steps of it: "Think → Act → Observe → Think → Done"."""
    shown = [_name(step) for step in path[-limit:]]
    left = len(path) - len(shown)
    return (f"… {left:,} before … → " if left else "") + " → ".join(shown)


def _name(step: Step) -> str:
    """Return what a step is called: before the first turn the run only starts."""
    return str(step.state) if step.turn or step.state is State.DONE else "Start"


def _way(way: tuple[State, State], number: int) -> str:
    (x1, y1), (x2, y2), (x, y), said = _WAYS[way]
    ink, width, mark = (_INK, 3, "on") if number else (_PALE, 1.5, "off")
    anchor = {(State.ACT, State.OBSERVE): "start", (State.OBSERVE, State.THINK): "end"}.get(way, "middle")
    text = f"{said} ×{number}" if number else said
    colour = _INK if number else "#6a6f78"
    bold = ' font-weight="600"' if number else ""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{ink}" stroke-width="{width}" marker-end="url(#nbl-{mark})"/>'
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}" font-size="12"{bold}>{text}</text>'
    )


def _box(state: State, *, lit: bool) -> str:
    (x, y), (wide, high), colour = _AT[state], _BOX, COLOURS[state]
    fill, ink = (colour, "#ffffff") if lit else ("#ffffff", colour)
    ring = (
        f'<rect x="{x - wide / 2 - 5}" y="{y - high / 2 - 5}" width="{wide + 10}" height="{high + 10}" rx="12" '
        f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="5 3"/>'
        if lit
        else ""
    )
    return (
        f'{ring}<rect x="{x - wide / 2}" y="{y - high / 2}" width="{wide}" height="{high}" rx="8" fill="{fill}" '
        f'stroke="{colour}" stroke-width="2"/>'
        f'<text x="{x}" y="{y - 2}" text-anchor="middle" fill="{ink}" font-size="16" font-weight="700">{state}</text>'
        f'<text x="{x}" y="{y + 14}" text-anchor="middle" fill="{ink}" font-size="10">{_SAYS[state]}</text>'
    )


def _strip(path: tuple[Step, ...]) -> list[str]:
    """The path, a box a step with the letter of its state, the turn's number below where it begins."""
    shown = path[-STEPS:]
    parts = [f'<text x="24" y="206" fill="{_INK}" font-size="12">path</text>']
    if left := len(path) - len(shown):
        parts.append(f'<text x="24" y="222" fill="#6a6f78" font-size="10">{left:,} before</text>')
    turn = None
    for place, step in enumerate(shown):
        x, name = 74 + place * 15, _name(step)
        colour = COLOURS[step.state] if name != "Start" else "#8a8f98"
        last = ' stroke="#000000" stroke-width="2"' if place == len(shown) - 1 else ""
        parts.append(
            f'<rect x="{x}" y="193" width="13" height="18" rx="2" fill="{colour}"{last}/>'
            f'<text x="{x + 6.5}" y="206" text-anchor="middle" fill="#ffffff" font-size="10">{name[0]}</text>'
        )
        if step.turn != turn:
            turn = step.turn
            parts.append(f'<text x="{x}" y="226" fill="#6a6f78" font-size="10">{turn or ""}</text>')
    return parts
