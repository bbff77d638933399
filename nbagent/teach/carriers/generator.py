"""The loop as an async generator: it reads from above to below, and stands still at each `yield` until its consumer wants more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from nbagent.teach.carriers.job import (
    Event,
    Job,
    Messages,
    OnEvent,
    Stopped,
    beginning,
    calls,
    never,
    results,
    said,
)


async def loop(job: Job, messages: Messages, stopped: Stopped = never) -> AsyncGenerator[Event]:
    """Ask, run the calls, and go round again, yielding every event."""
    async with job.connection():
        while not stopped():
            yield "think", job.asked + 1
            reply = await job.model(messages)
            job.keep(messages, said(reply))
            yield "reply", reply
            if not calls(reply):
                yield "done", "end_turn"
                return
            blocks = [await job.tool(block) for block in calls(reply)]
            job.keep(messages, results(blocks))
            for block in blocks:
                yield "result", block
        yield "done", "aborted"


async def consume(job: Job, on_event: OnEvent, stopped: Stopped = never, messages: Messages | None = None) -> None:
    """Use it as its users do: `async for` inside `aclosing`, and `break` when it is enough."""
    async with aclosing(loop(job, beginning() if messages is None else messages, stopped)) as events:
        async for event in events:
            if not await on_event(event):
                break
