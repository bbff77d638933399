"""The pictures of lesson 02: the four states, and a generator that stands at its `yield`."""

from __future__ import annotations

from nbagent.teach.pictures import Picture

_INK, _GROUND, _LIT, _EDGE, _WARM = "#263238", "#fbfbf8", "#cfe3f5", "#607d8b", "#ffe9c7"
_STYLE = f'font-family="sans-serif" font-size="14" fill="{_INK}" text-anchor="middle"'
_ARROW = (
    '<defs><marker id="s" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0L10 5L0 10z" fill="{_EDGE}"/></marker></defs>'
)


def _drawing(width: int, height: int, *parts: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" style="max-width:100%;height:auto">'
    return f'{head}{_ARROW}<rect width="{width}" height="{height}" rx="10" fill="{_GROUND}"/><g {_STYLE}>{"".join(parts)}</g></svg>'


def _box(x: int, y: int, title: str, below: str, *, width: int = 170, fill: str = "#ffffff") -> str:
    return (
        f'<rect x="{x - width // 2}" y="{y - 26}" width="{width}" height="52" rx="8" fill="{fill}" stroke="{_EDGE}"/>'
        f'<text x="{x}" y="{y}" font-weight="bold">{title}</text><text x="{x}" y="{y + 18}" font-size="12">{below}</text>'
    )


def _line(path: str, words: str, x: int, y: int) -> str:
    arrow = f'<path d="{path}" fill="none" stroke="{_EDGE}" stroke-width="1.6" marker-end="url(#s)"/>'
    return f'{arrow}<text x="{x}" y="{y}" font-size="12">{words}</text>'


def four_states() -> Picture:
    """Return the four states and the ways between them."""
    svg = _drawing(
        660, 220,
        _box(110, 60, "Done", "one last event"), _box(330, 60, "Think", "the model replies", fill=_LIT),
        _box(550, 60, "Act", "its calls run"), _box(440, 170, "Observe", "the results are appended", width=190),
        _line("M245 60H198", "no calls", 221, 50), _line("M415 60H462", "calls", 439, 50),
        _line("M550 86L505 142", "results", 556, 120), _line("M395 144L345 88", "next turn", 330, 120),
    )  # fmt: skip
    return Picture(svg, "Think → (no calls: Done | calls: Act → Observe → Think, the next turn).")


def not_pulled() -> Picture:
    """Return who waits for whom in step mode: the loop stands at its yield, the pacer does not pull."""
    svg = _drawing(
        660, 150,
        _box(95, 75, "The loop", "stands at its yield", width=150, fill=_WARM),
        _box(330, 75, "The pacer", "waits for Next", width=150, fill=_LIT), _box(565, 75, "The view", "shows the event", width=150),
        _line("M170 62H252", "an event", 211, 54), _line("M405 62H487", "the event", 446, 54),
        _line("M255 90H173", "pulls", 214, 108), _line("M490 90H408", "pulls", 449, 108),
        '<text x="330" y="138" font-size="12">Nobody pulls: nobody goes on. No lock, no timer, no message says “stop”.</text>',
    )  # fmt: skip
    return Picture(
        svg,
        "The view pulls from the pacer, the pacer from the loop. A pacer that does not pull holds the loop at its yield.",
    )
