"""The pictures of the first lessons, and the boxes and arrows that all pictures are made of."""

from __future__ import annotations

from nbagent.teach.pictures import Picture

_INK, _GROUND, _LIT, _EDGE = "#263238", "#fbfbf8", "#cfe3f5", "#607d8b"
_STYLE = f'font-family="sans-serif" font-size="14" fill="{_INK}"'
_ARROW = (
    '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0L10 5L0 10z" fill="{_EDGE}"/></marker></defs>'
)


def box(
    x: int, y: int, title: str, below: str = "", *, width: int = 150, lit: bool = False, fill: str = "#ffffff"
) -> str:
    """Return a box around the point (x, y), in pixels, with a title and a smaller line below it; `lit` is where one should look."""
    fill = _LIT if lit else fill
    words = f'<text x="{x}" y="{y + (0 if below else 5)}" font-weight="bold">{title}</text>'
    words += f'<text x="{x}" y="{y + 18}" font-size="12">{below}</text>' if below else ""
    return f'<rect x="{x - width // 2}" y="{y - 26}" width="{width}" height="52" rx="8" fill="{fill}" stroke="{_EDGE}"/>{words}'


def line(path: str, words: str = "", x: int = 0, y: int = 0) -> str:
    """Return an arrow along an SVG path, with words at (x, y)."""
    said = f'<text x="{x}" y="{y}" font-size="12">{words}</text>' if words else ""
    return f'<path d="{path}" fill="none" stroke="{_EDGE}" stroke-width="1.6" marker-end="url(#a)"/>{said}'


def drawing(width: int, height: int, *parts: str, anchor: str = "middle") -> str:
    """Return the SVG of these parts on a pale ground, `width` by `height` pixels, narrower where the page is.

    `anchor` is the place in a text that its x means: start, middle or end.
    """
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" style="max-width:100%;height:auto">'
    return f'{head}{_ARROW}<rect width="{width}" height="{height}" rx="10" fill="{_GROUND}"/><g {_STYLE} text-anchor="{anchor}">{"".join(parts)}</g></svg>'


def the_loop() -> Picture:
    """Return the loop of lesson 01: the model is asked, its calls are run, their results go back; no calls: done."""
    svg = drawing(
        640, 210,
        box(90, 60, "Prompt", "what the person asks"),
        box(300, 60, "Ask the model", "all messages so far", lit=True),
        box(540, 60, "Done", "the answer", width=130),
        box(300, 165, "Run the calls", "one result for each"),
        line("M165 60H222"), line("M375 60H472", "no calls", 424, 52),
        line("M330 86V137", "calls", 352, 117), line("M270 139V88", "results", 240, 117),
    )  # fmt: skip
    return Picture(
        svg, "Prompt → ask the model → (calls: run them, hand the results back, ask again | no calls: done)."
    )


def the_checks() -> Picture:
    """Return the three places of lesson 03 at which a loop asks whether it may go on."""
    svg = drawing(
        700, 190,
        box(95, 60, "1. Before a turn", "turns, tokens, time left?", width=170, lit=True),
        box(330, 60, "2. After the reply", "any calls? cut? refused?", width=180, lit=True),
        box(580, 60, "3. After the results", "the same again and again?", width=190, lit=True),
        line("M180 60H237"), line("M420 60H482"),
        line("M580 86V150H95V90", "no reason to stop: the next turn", 340, 143),
        '<text x="95" y="178" font-size="12">limit</text><text x="330" y="178" font-size="12">answer, refusal, error</text>'
        '<text x="580" y="178" font-size="12">repeated</text>',
    )  # fmt: skip
    return Picture(
        svg,
        "Three checks: before a turn (limits), after the reply (calls or an ending), after the results (repetition).",
    )


def a_loop_in_a_call() -> Picture:
    """Return the picture of lesson 11: a call of the outer loop is a whole loop, and only its answer comes back."""
    inner = (
        f'<rect x="330" y="96" width="300" height="96" rx="8" fill="#eef5ea" stroke="{_EDGE}" stroke-dasharray="5 4"/>'
    )
    svg = drawing(
        660, 210,
        box(90, 50, "Ask the model", lit=True), box(310, 50, "Call: ask_helper"), box(560, 50, "Result: the answer", width=170),
        line("M165 50H232"), line("M310 76V144H342"), inner,
        box(410, 144, "Ask", "its own messages", width=130, lit=True), box(560, 144, "Run its calls", width=120),
        line("M475 134H498"), line("M500 156H478"), line("M560 118V78"), line("M475 36H170", "only the answer", 200, 26),
    )  # fmt: skip
    return Picture(
        svg,
        "A call of the outer loop starts an inner loop with messages of its own; only its answer comes back as the result.",
    )
