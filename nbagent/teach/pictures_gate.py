"""The picture of lesson 08: the stations that a call passes before it runs."""

from __future__ import annotations

from nbagent.teach.pictures import Picture

_INK, _GROUND, _EDGE = "#263238", "#fbfbf8", "#607d8b"
_LINE = f'stroke="{_EDGE}" stroke-width="1.6" fill="none" marker-end="url(#g)"'
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
    parts = [
        '<text x="62" y="52" font-weight="bold">A call</text><text x="62" y="71" font-size="13">a proposal</text>',
        f'<path d="M536 56H552V104H26V148H38" {_LINE}/>',
        '<text x="290" y="216" font-size="14">The first clear yes or no decides. Where the mode would ask,</text>',
        '<text x="290" y="236" font-size="14">an allow rule may answer in your place.</text>',
    ]
    for place, (title, words) in enumerate(_STATIONS):
        x, y = (190 + 145 * place, 56) if place < 3 else (100 + 145 * (place - 3), 148)
        fill = "#cfe3f5" if title == "You" else "#ffffff"
        parts += [
            f'<rect x="{x - 56}" y="{y - 29}" width="112" height="58" rx="8" fill="{fill}" stroke="{_EDGE}"/>',
            f'<text x="{x}" y="{y - 4}" font-weight="bold">{title}</text><text x="{x}" y="{y + 16}" font-size="13">{words}</text>',
        ]
        if place != 3:
            parts.append(f'<path d="M{x - 87} {y}H{x - 60}" {_LINE}/>')
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 580 256" width="580" height="256" style="max-width:100%;height:auto">'
        '<defs><marker id="g" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L10 5L0 10z" fill="{_EDGE}"/></marker></defs>'
        f'<rect width="580" height="256" rx="10" fill="{_GROUND}"/>'
        f'<g font-family="sans-serif" font-size="15" fill="{_INK}" text-anchor="middle">{"".join(parts)}</g></svg>'
    )
    return Picture(
        svg,
        "A call → hooks → deny rules → ask rules → the mode → allow rules → you. The first clear yes or no decides; where the mode would ask, an allow rule may answer in your place.",
    )
