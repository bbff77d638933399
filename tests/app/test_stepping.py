"""A page that nobody sits at does not hold a stepped run for ever; one that somebody works in does."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from nbagent.app.stepping import GONE, LEFT_ALONE, UNPRESSED, patient
from nbagent.core.event import Event, State
from nbagent.core.events import Noted
from nbagent.teach.pacer import Pacer


class Page:
    """The view's clock, and when the page was heard."""

    def __init__(self) -> None:
        self.time = self.heard = 0.0

    def now(self) -> float:
        return self.time


def pacer_at(page: Page, shown: list[Event]) -> tuple[Pacer, Any]:
    pacer, hand = Pacer(), patient(cast("Any", page), shown.append)
    pacer.seen.append(Noted(state=State.ACT, turn=2, at=1.0, text="here"))
    return pacer, hand


@pytest.mark.parametrize(
    ("touched", "heard", "time"), [(False, UNPRESSED, UNPRESSED), (True, 0.0, GONE), (False, 0.0, GONE)]
)
async def test_a_run_plays_on_where_nobody_ever_pressed_or_the_page_went_away(
    touched: bool, heard: float, time: float
) -> None:
    page, shown = Page(), list[Event]()
    pacer, hand = pacer_at(page, shown)
    pacer.touched, page.heard, page.time = touched, heard, time
    await asyncio.wait_for(hand(pacer), 5)
    assert pacer.playing
    assert [(event.state, event.turn, getattr(event, "text", "")) for event in shown] == [(State.ACT, 2, LEFT_ALONE)]


async def test_a_run_rests_as_long_as_somebody_is_there_who_has_pressed_before() -> None:
    page, shown = Page(), list[Event]()
    pacer, hand = pacer_at(page, shown)
    pacer.touched, page.heard, page.time = True, 10 * GONE, 10 * GONE + 1
    waits = asyncio.create_task(hand(pacer))
    assert await asyncio.wait([waits], timeout=0.05) == (set(), {waits})
    pacer.next()
    await asyncio.wait_for(waits, 5)
    assert not pacer.playing
    assert shown == []
