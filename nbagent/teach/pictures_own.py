"""The picture of lesson 13: at which place of the loop a tool, a skill and a hook come in."""

from __future__ import annotations

from nbagent.teach.pictures import Picture

_INK, _GROUND, _LIT, _EDGE = "#263238", "#fbfbf8", "#cfe3f5", "#607d8b"


def _box(x: int, y: int, title: str, below: str, fill: str = "#ffffff") -> str:
    return (
        f'<rect x="{x - 86}" y="{y - 27}" width="172" height="54" rx="8" fill="{fill}" stroke="{_EDGE}"/>'
        f'<text x="{x}" y="{y - 2}" font-weight="bold">{title}</text><text x="{x}" y="{y + 16}" font-size="12">{below}</text>'
    )


def _arrow(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{_EDGE}" stroke-width="1.6" marker-end="url(#own)"/>'


def three_ways() -> Picture:
    """Return the loop's four steps and, below them, where a skill, a hook and a tool come in."""
    steps = (
        ("Think", "what to do next"),
        ("Call", "the model's wish"),
        ("Run", "your function"),
        ("Result", "goes back"),
    )
    ways = ("Skill", "how we do it here"), ("Hook", "a no, and why"), ("Tool", "what can be done")
    boxes = "".join(_box(100 + 190 * n, 50, *step) for n, step in enumerate(steps))
    below = "".join(_box(100 + 190 * n, 150, *way, fill=_LIT) for n, way in enumerate(ways))
    onward = "".join(_arrow(f"M{187 + 190 * n} 50H{202 + 190 * n}") for n in range(3))
    upward = "".join(_arrow(f"M{100 + 190 * n} 122V80") for n in range(3))
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 770 195" width="770" height="195" style="max-width:100%;height:auto">'
        '<defs><marker id="own" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{_EDGE}"/></marker></defs><rect width="770" height="195" rx="10" fill="{_GROUND}"/>'
        f'<g font-family="sans-serif" font-size="14" fill="{_INK}" text-anchor="middle">{boxes}{below}{onward}{upward}</g></svg>'
    )
    return Picture(
        svg,
        "Think → call → run → result. A skill comes in when the model thinks, a hook at the call, a tool is what runs.",
    )
