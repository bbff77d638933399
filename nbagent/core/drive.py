"""Drives a run in a task of its own, so that it can be stopped at once, and always ends with a `RunEnded`.

The task that opens the generator closes it. Stop, the time limit and a cancellation from outside (the kernel's
interrupt) all end in the same way: the task is cancelled, the generator completes the transcript, and the last event
is made here.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from nbagent.core.endings import Ending
from nbagent.core.events import CallStarted, Event, Reason, RunEnded, State
from nbagent.core.messages import Usage
from nbagent.core.run import Agent, Stop
from nbagent.core.session import Session
from nbagent.core.timelimit import TimeLimit

Middleware = Callable[[AsyncGenerator[Event]], AsyncGenerator[Event]]
"""Wraps a stream of events: it may look at, add, hold back or pace events. It must close what it wraps."""

_TICK = 0.1
_NAMED = 8
"""Calls that the end of a run that was cut off names."""


async def drive(
    events: AsyncGenerator[Event],
    show: Callable[[Event], None],
    *,
    agent: Agent,
    session: Session,
    stop: Stop,
    middleware: Sequence[Middleware] = (),
    limit: TimeLimit | None = None,
) -> RunEnded:
    """Take every event of `events`, keep it in the session's log and `show` it; return the last one.

    `stop.now()` and `agent.limits.seconds` end the run at once. Never raises a cancellation that a stop has caused.
    `middleware` wraps the stream, the first one innermost. `limit` is used in the place of `agent.limits.seconds`, by who
    may hold it.
    """
    for wrap in middleware:
        events = wrap(events)
    last = _Last(session, show)
    consumer = asyncio.create_task(_consume(events, last))
    stop.bind(consumer.cancel)
    limit = limit or TimeLimit(agent.limits.seconds)
    limit.start(lambda: stop.now(Reason.TIMEOUT))
    ticker = asyncio.create_task(_tick())
    try:
        await consumer
    except asyncio.CancelledError:
        if not consumer.done():  # we were cancelled, not the run: stop it, then end as it ends
            await _end(consumer)
    finally:
        stop.bind(None)
        ticker.cancel()
        limit.end()
    return last.ended(stop)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and see it end: a second interrupt (people press twice) must not leave it behind."""
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()


async def _consume(events: AsyncGenerator[Event], last: _Last) -> None:
    pid = os.getpid()
    async with aclosing(events):
        async for event in events:
            if os.getpid() != pid:  # a tool forked and its child came back: it must not go on as a second agent
                os._exit(0)
            last.take(event)


async def _tick() -> None:
    """Keep the loop waking: an interrupt of an idle loop was seen 4.6 s late, 0.03 s with this."""
    while True:
        await asyncio.sleep(_TICK)


class _Last:
    """What the events said last, so that a run which is cut off can still be summed up."""

    def __init__(self, session: Session, show: Callable[[Event], None]) -> None:
        self._session = session
        self._show = show
        self._before = (session.usage, session.cost)
        self._began = time.monotonic()
        self._event: Event | None = None
        self._text = ""
        self._cells: dict[str, None] = {}
        self._ran: list[str] = []

    def take(self, event: Event) -> None:
        """Take one event."""
        self._event = event
        if event.type == "reply_ended":
            texts = [b["text"] for b in getattr(event, "content", ()) if b.get("type") == "text"]
            self._text = "\n\n".join(texts) or self._text
        self._cells.update(dict.fromkeys(getattr(event, "cells", ())))
        if isinstance(event, CallStarted):
            self._ran.append(event.title or event.name)
        self._session = self._session.newest
        self._session.log(event)
        self._show(event)

    def ended(self, stop: Stop) -> RunEnded:
        """The run's own last event, or one made here where it was cut off."""
        if isinstance(self._event, RunEnded):
            return self._event
        ending = Ending(stop.reason or Reason.INTERRUPTED)
        if ending.reason is Reason.TIMEOUT and self._ran:
            ending = Ending(
                ending.reason, f"{ending.sentence} What had begun by then: {', '.join(self._ran[-_NAMED:])}."
            )
        usage, cost = self._before
        spent, now = self._session.usage, self._session.cost
        event = RunEnded(
            state=State.DONE,
            turn=self._event.turn if self._event else 0,
            at=round(time.monotonic() - self._began, 4),
            reason=ending.reason,
            sentence=ending.sentence,
            next_step=ending.next_step,
            text=self._text,
            turns=self._event.turn if self._event else 0,
            usage=Usage(
                spent.input - usage.input,
                spent.output - usage.output,
                spent.cache_write - usage.cache_write,
                spent.cache_read - usage.cache_read,
                spent.searches - usage.searches,
                spent.fetches - usage.fetches,
            ),
            cost=None if now is None or cost is None else now - cost,
            cells=tuple(self._cells),
        )
        self.take(event)
        return event
