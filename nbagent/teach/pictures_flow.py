"""The pictures of lessons 05 and 06: who drives whom, and three ways to end a run."""

from __future__ import annotations

from nbagent.teach.pictures import Picture
from nbagent.teach.pictures_loop import box, drawing, line


def who_drives() -> Picture:
    """Return push beside pull: an emitter calls its listeners, a generator is asked by its consumer."""
    svg = drawing(
        380, 300,
        '<text x="190" y="26" font-weight="bold">Push: the loop drives</text>',
        box(95, 70, "loop", "goes on", width=120), box(285, 70, "listener", "is called", width=120),
        line("M155 60H222"), line("M155 72H222"), line("M155 84H222"),
        '<text x="190" y="120" font-size="13">events wait in a queue that grows</text>',
        '<text x="190" y="172" font-weight="bold">Pull: the consumer drives</text>',
        box(95, 222, "generator", "rests at yield", width=130, lit=True), box(285, 222, "consumer", "asks for the next", width=140),
        line("M215 211H163", "next", 188, 203), line("M160 233H212", "event", 187, 251),
        '<text x="190" y="280" font-size="13">nothing waits: the next event does not exist yet</text>',
    )  # fmt: skip
    return Picture(
        svg,
        "Push: a loop calls its listeners and goes on. Pull: a generator rests at its yield until the consumer asks for the next event.",
    )


def three_ends() -> Picture:
    """Return the three cancellations: a flag between two calls, closing from the consumer, a time limit from outside."""
    svg = drawing(
        420, 240,
        box(100, 50, "1. A flag", "the loop looks at it", width=180), box(320, 50, "between two calls", "what runs is finished", lit=True, width=180),
        box(100, 120, "2. Closing", "the consumer has enough", width=180), box(320, 120, "at a yield", "finally runs; it is gone", lit=True, width=180),
        box(100, 190, "3. A time limit", "from outside", width=180), box(320, 190, "at any await", "what is awaited is cut", lit=True, width=180),
        line("M190 50H227"), line("M190 120H227"), line("M190 190H227"),
    )  # fmt: skip
    return Picture(
        svg, "A flag ends a run between two calls; closing ends it at a yield; a time limit ends it at any await."
    )
