"""Code that outlasts the call that began it, as far as the loop must know of it: it never outlasts the run.

The cells below an agent's cell, undo and the record of the run all count on what the run did being done when it ends.
So a run whose model is done waits for such code, tells the model how it ended, and lets it answer. A stop, an interrupt
and the time limit of the run end the code too. Must not know what runs. Read `outlasting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from nbagent.core.events import CodeAwaited, CodeEnded, Event, Noted, Reason
from nbagent.core.messages import Block

if TYPE_CHECKING:
    from nbagent.core.run import Run

_FOREVER = 1e9  # seconds
_WAITS = "{} still runs. The run ends when it has ended; Stop ends both."


How = Literal["ended", "failed", "stopped", "limit", "interrupted"]
"""How such code ends: by itself, with an error, stopped by the agent, at its time limit, or by the person."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Code that went on after the call `call_id` has ended; `seconds` is how long it ran in all."""

    call_id: str
    how: How
    seconds: float


class Lasting(Protocol):
    """The one piece of code of a run that may be under way while its model thinks."""

    @property
    def label(self) -> str:
        """What runs, or has ended untold, as people know it; "" where there is nothing of which the model must hear."""
        ...

    @property
    def running(self) -> str:
        """What runs now, as the model knows it; "" where nothing does."""
        ...

    @property
    def since(self) -> tuple[str, float]:
        """The call that began what runs now, and the seconds since; ("", 0.0) where nothing runs."""
        ...

    def endings(self) -> Sequence[Ended]:
        """Return, once, what has ended of the code that went on after its call, whoever waited for it."""
        ...

    def news(self) -> Sequence[str]:
        """Return, once, how code has ended that ended while no call waited for it."""
        ...

    async def ended(self) -> Sequence[Block]:
        """Wait for the code and return what the model is told of its end; raises `Interrupted` where a person ended it."""
        ...

    async def stop(self) -> None:
        """End the code and wait until it has ended; does nothing where none runs."""
        ...


class NothingLasts:
    """Where each call waits for its code."""

    label = running = ""
    since = ("", 0.0)

    def endings(self) -> Sequence[Ended]:
        """Return nothing."""
        return ()

    def news(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    async def ended(self) -> Sequence[Block]:
        """Return nothing."""
        return ()

    async def stop(self) -> None:
        """Do nothing."""


async def outlasting(run: Run) -> AsyncGenerator[Event]:
    """At the end of a run, wait for its code; where the model was done, take that end away once so that it hears of it."""
    ending, lasting = run.ending, run.agent.lasting
    if ending is None or run.stop.asked or ending.reason is Reason.INTERRUPTED or not lasting.label:
        return
    if lasting.running:
        yield run.event(Noted, text=_WAITS.format(lasting.label[:1].upper() + lasting.label[1:]), level="info")
        call_id, seconds = lasting.since
        yield run.event(CodeAwaited, call_id=call_id, label=lasting.label, seconds=round(seconds, 3))
    told = await _unless_stopped(run)
    for event in code_ended(run):
        yield event
    if told is None or ending.reason not in {Reason.END_TURN, Reason.MAX_TURNS}:
        return
    run.ending = None
    if ending.reason is Reason.MAX_TURNS or run.limit_reached() is not None:
        run.ending = ending
    if run.ending is None or ending.reason is Reason.MAX_TURNS:  # which lets the model sum up
        run.session.transcript.ask(list(told))


def code_ended(run: Run) -> list[Event]:
    """Return an event for each piece of code that has ended since the last time."""
    ended = run.agent.lasting.endings()
    return [run.event(CodeEnded, call_id=one.call_id, how=one.how, seconds=round(one.seconds, 3)) for one in ended]


async def _unless_stopped(run: Run) -> Sequence[Block] | None:
    """Return what the model is to hear of the code's end, None where the run is stopped first."""
    ended = asyncio.ensure_future(run.agent.lasting.ended())
    stopped = asyncio.ensure_future(run.stop.wait(_FOREVER))
    try:
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return ended.result() if ended.done() else None
    finally:
        for waiting in (ended, stopped):
            waiting.cancel()
