"""The loop as an event emitter: it goes on by itself and calls whoever has registered. Listeners are called, never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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

Listener = Callable[[Event], None]


class AgentLoop:
    """An emitter: `on` registers a listener, `off` takes it away, `run` goes through the loop."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.listeners: list[Listener] = []

    def on(self, listener: Listener) -> None:
        """Have `listener` called at every event."""
        self.listeners.append(listener)

    def off(self, listener: Listener) -> None:
        """Call `listener` no more. The loop goes on."""
        self.listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Call all listeners."""
        for listener in list(self.listeners):
            listener(event)

    async def run(self, messages: Messages, stopped: Stopped = never) -> None:
        """Go through the loop to its end, whether anybody listens or not."""
        async with self._job.connection():
            while True:
                if stopped():
                    return self.emit(("done", "aborted"))
                self.emit(("think", self._job.asked + 1))
                reply = await self._job.model(messages)
                self._job.keep(messages, said(reply))
                self.emit(("reply", reply))
                if not calls(reply):
                    return self.emit(("done", "end_turn"))
                blocks = [await self._job.tool(block) for block in calls(reply)]
                self._job.keep(messages, results(blocks))
                for block in blocks:
                    self.emit(("result", block))


async def consume(job: Job, on_event: OnEvent, stopped: Stopped = never, messages: Messages | None = None) -> None:
    """Use it as its users do: a listener that has something to await makes a task of it; one that has enough is taken away."""
    loop = AgentLoop(job)
    begun: set[asyncio.Task[None]] = set()

    async def handle(event: Event) -> None:
        if not await on_event(event) and listener in loop.listeners:
            loop.off(listener)

    def listener(event: Event) -> None:
        task = asyncio.ensure_future(handle(event))
        begun.add(task)
        task.add_done_callback(begun.discard)

    loop.on(listener)
    await loop.run(beginning() if messages is None else messages, stopped)
    while begun:
        await asyncio.wait(begun)
