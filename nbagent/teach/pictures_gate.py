"""The picture of lesson 08: the stations that a call passes before it runs."""

from __future__ import annotations

from nbagent.teach.pictures import Picture

_INK, _GROUND, _EDGE = "#263238", "#fbfbf8", "#607d8b"
_STATIONS = (
    ("Hooks", "your own code"),
    ("Deny rules", "never"),
    ("Ask rules", "always ask"),
    ("Mode", "the preset"),
    ("Allow rules", "never ask"),
    ("You", "yes or no"),
)


def the_gate() -> Picture:
    """Return the way of a call: hooks, deny rules, ask rules, the mode, allow rules, the person; then it runs or not."""
    parts: list[str] = []
    for place, (title, words) in enumerate(_STATIONS):
        x = 150 + 118 * place
        fill = "#cfe3f5" if title == "You" else "#ffffff"
        parts += [
            f'<rect x="{x - 50}" y="48" width="100" height="56" rx="8" fill="{fill}" stroke="{_EDGE}"/>',
            f'<text x="{x}" y="72" font-weight="bold">{title}</text><text x="{x}" y="91" font-size="12">{words}</text>',
            f'<path d="M{x - 68} 76H{x - 52}" stroke="{_EDGE}" stroke-width="1.6" fill="none" marker-end="url(#g)"/>',
        ]
    parts += [
        '<text x="40" y="72" font-weight="bold">A call</text><text x="40" y="91" font-size="12">a proposal</text>',
        f'<path d="M150 126V146H740V126" stroke="{_EDGE}" stroke-width="1.2" fill="none"/>',
        '<text x="445" y="168" font-size="13">The first clear yes or no decides. Where the mode would ask, an allow rule may answer in your place.</text>',
    ]
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 810 190" width="810" height="190" style="max-width:100%;height:auto">'
        '<defs><marker id="g" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{_EDGE}"/></marker></defs>'
        f'<rect width="810" height="190" rx="10" fill="{_GROUND}"/>'
        f'<g font-family="sans-serif" font-size="14" fill="{_INK}" text-anchor="middle">{"".join(parts)}</g></svg>'
    )
    return Picture(
        svg,
        "A call → hooks → deny rules → ask rules → the mode → allow rules → you. The first clear yes or no decides; where the mode would ask, an allow rule may answer in your place.",
    )
