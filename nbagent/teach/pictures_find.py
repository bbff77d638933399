"""The picture of lesson 14: the five questions, where they are on the loop."""

from __future__ import annotations

from nbagent.teach.pictures import Picture
from nbagent.teach.pictures_loop import box, drawing, line


def five_questions() -> Picture:
    """Return the loop with the five questions by which it is found in code."""
    svg = drawing(
        680, 250,
        box(130, 60, "1. The request", "who gets the conversation?", width=200, lit=True),
        box(390, 60, "2. Go on?", "what is looked at?", width=150, lit=True),
        box(590, 60, "The end", "", width=120),
        box(390, 170, "3. The append", "where do results go?", width=170, lit=True),
        box(130, 170, "4. The stop", "what if it never ends?", width=190, lit=True),
        line("M230 60H312"), line("M465 60H527"), line("M390 86V142", "calls", 412, 120), line("M305 170H228"),
        line("M130 144V88"), line("M130 196V228H666V60H653", "a limit is reached", 360, 243),
        '<text x="570" y="166" font-weight="bold">5. Who sees it?</text><text x="570" y="184" font-size="12">yield, callback, print</text>',
    )  # fmt: skip
    return Picture(
        svg,
        "Five questions on the loop: the request, what decides to go on, where results are appended, what stops it, who sees it.",
    )
