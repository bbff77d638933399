"""The picture of lesson 04: the way of one call from the model's wish to its one result."""

from __future__ import annotations

from nbagent.teach.pictures import Picture

_INK, _GROUND, _LIT, _EDGE, _BAD = "#263238", "#fbfbf8", "#cfe3f5", "#607d8b", "#b3541e"
_DOWN = (90, 270, 450, 590)
"""Where the ways out of the four steps go down."""


def _box(x: int, y: int, title: str, below: str, fill: str = "#ffffff") -> str:
    return (
        f'<rect x="{x - 76}" y="{y - 27}" width="152" height="54" rx="8" fill="{fill}" stroke="{_EDGE}"/>'
        f'<text x="{x}" y="{y - 2}" font-weight="bold">{title}</text><text x="{x}" y="{y + 16}" font-size="12">{below}</text>'
    )


def _arrow(path: str, color: str = _EDGE) -> str:
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.6" marker-end="url(#{"b" if color == _BAD else "t"})"/>'


def _head(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{color}"/></marker>'
    )


def a_call() -> Picture:
    """Return the way of a call: known tool? valid? allowed? run; each way out of it is a result, an error too."""
    steps = [
        ("Known?", "is there such a tool"),
        ("Valid?", "does the schema fit"),
        ("Allowed?", "mode, rules, person"),
        ("Run", "your function"),
    ]
    boxes = "".join(
        _box(90 + 180 * place, 60, *step, fill=_LIT if place == 3 else "#ffffff") for place, step in enumerate(steps)
    )
    onward = "".join(_arrow(f"M{168 + 180 * place} 60H{190 + 180 * place}") for place in range(3))
    errors = "".join(_arrow(f"M{_DOWN[place]} 88V148", _BAD) for place in range(4))
    said = "".join(
        f'<text x="{_DOWN[place] + 6}" y="122" font-size="12" text-anchor="start" fill="{_BAD}">{words}</text>'
        for place, words in enumerate(("no such tool", "wrong arguments", "not allowed", "it raised"))
    )
    below = (
        f'<rect x="14" y="152" width="692" height="40" rx="8" fill="#ffffff" stroke="{_EDGE}"/>'
        '<text x="360" y="177"><tspan font-weight="bold">One result for each call, in the order of the calls</tspan>: what came out, or an error</text>'
    )
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 206" width="720" height="206" style="max-width:100%;height:auto">'
        f'<defs>{_head("t", _EDGE)}{_head("b", _BAD)}</defs><rect width="720" height="206" rx="10" fill="{_GROUND}"/>'
        f'<g font-family="sans-serif" font-size="14" fill="{_INK}" text-anchor="middle">{boxes}{onward}{errors}{said}'
        f'{_arrow("M680 88V148")}{below}</g></svg>'
    )  # fmt: skip
    return Picture(
        svg,
        "A call: is the tool known? do the arguments fit? is it allowed? run. Each no, and each exception, becomes an error result; every call has one result.",
    )
