"""The pictures of lessons 05 and 06: who drives whom, and three ways to end a run."""

from __future__ import annotations

from nbagent.teach.pictures import Picture
from nbagent.teach.pictures_loop import box, drawing, line


def who_drives() -> Picture:
    """Return push beside pull: an emitter calls its listeners, a generator is asked by its consumer."""
    svg = drawing(
        660, 190,
        '<text x="160" y="24" font-weight="bold">Push: the loop drives</text><text x="490" y="24" font-weight="bold">Pull: the consumer drives</text>',
        box(90, 70, "loop", "goes on", width=110), box(250, 70, "listener", "is called", width=110),
        line("M145 60H193"), line("M145 72H193"), line("M145 84H193"),
        '<text x="168" y="130" font-size="12">events wait in a queue that grows</text>',
        box(420, 70, "generator", "rests at yield", width=120, lit=True), box(580, 70, "consumer", "asks for the next", width=130),
        line("M515 58H482", "next", 498, 50), line("M480 82H513", "event", 497, 100),
        '<text x="495" y="130" font-size="12">nothing waits: the next event does not exist yet</text>',
        '<text x="330" y="170" font-size="12">A person who thinks about an approval for a minute is a slow consumer.</text>',
    )  # fmt: skip
    return Picture(
        svg,
        "Push: a loop calls its listeners and goes on. Pull: a generator rests at its yield until the consumer asks for the next event.",
    )


def three_ends() -> Picture:
    """Return the three cancellations: a flag between two calls, closing from the consumer, a time limit from outside."""
    svg = drawing(
        680, 200,
        box(110, 50, "1. A flag", "the loop looks at it"), box(340, 50, "2. Closing", "the consumer has enough"), box(570, 50, "3. A time limit", "from outside"),
        line("M110 76V118"), line("M340 76V118"), line("M570 76V118"),
        box(110, 145, "between two calls", "what runs is finished", lit=True, width=170),
        box(340, 145, "at a yield", "finally runs, then it is gone", lit=True, width=190),
        box(570, 145, "at any await", "what is awaited is cut", lit=True, width=170),
    )  # fmt: skip
    return Picture(
        svg, "A flag ends a run between two calls; closing ends it at a yield; a time limit ends it at any await."
    )
