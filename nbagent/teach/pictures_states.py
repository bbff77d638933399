"""The pictures of lesson 02: the four states, and a generator that stands at its `yield`."""

from __future__ import annotations

from nbagent.teach.pictures import Picture
from nbagent.teach.pictures_loop import box, drawing, line

_WARM = "#ffe9c7"


def four_states() -> Picture:
    """Return the four states and the ways between them."""
    svg = drawing(
        660, 220,
        box(110, 60, "Done", "one last event", width=170), box(330, 60, "Think", "the model replies", width=170, lit=True),
        box(550, 60, "Act", "its calls run", width=170), box(440, 170, "Observe", "the results are appended", width=190),
        line("M245 60H198", "no calls", 221, 50), line("M415 60H462", "calls", 439, 50),
        line("M550 86L505 142", "results", 556, 120), line("M395 144L345 88", "next turn", 330, 120),
    )  # fmt: skip
    return Picture(svg, "Think → (no calls: Done | calls: Act → Observe → Think, the next turn).")


def not_pulled() -> Picture:
    """Return who waits for whom in step mode: the loop stands at its yield, the pacer does not pull."""
    svg = drawing(
        660, 150,
        box(95, 75, "The loop", "stands at its yield", width=150, fill=_WARM),
        box(330, 75, "The pacer", "waits for Next", width=150, lit=True), box(565, 75, "The view", "shows the event", width=150),
        line("M170 62H252", "an event", 211, 54), line("M405 62H487", "the event", 446, 54),
        line("M255 90H173", "pulls", 214, 108), line("M490 90H408", "pulls", 449, 108),
        '<text x="330" y="138" font-size="12">Nobody pulls: nobody goes on. No lock, no timer, no message says “stop”.</text>',
    )  # fmt: skip
    return Picture(
        svg,
        "The view pulls from the pacer, the pacer from the loop. A pacer that does not pull holds the loop at its yield.",
    )
