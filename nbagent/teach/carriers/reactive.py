"""The loop as a reactive pipeline: an observable that pushes its events into whatever is composed behind it (reactivex).

`reactivex` is the extra `nbagent[teach]`. It is imported when it is used: without it the other four carriers work.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from reactivex import Observable
    from reactivex.abc import DisposableBase, ObserverBase


def observable(job: Job, messages: Messages, stopped: Stopped = never) -> Observable[Event]:
    """Return the loop as a cold observable: each subscription runs it; disposing of it cancels the run."""
    import reactivex
    from reactivex.disposable import Disposable

    async def loop(observer: ObserverBase[Event]) -> None:
        async with job.connection():
            while not stopped():
                observer.on_next(("think", job.asked + 1))
                reply = await job.model(messages)
                job.keep(messages, said(reply))
                observer.on_next(("reply", reply))
                if not calls(reply):
                    observer.on_next(("done", "end_turn"))
                    break
                blocks = [await job.tool(block) for block in calls(reply)]
                job.keep(messages, results(blocks))
                for block in blocks:
                    observer.on_next(("result", block))
            else:
                observer.on_next(("done", "aborted"))
        observer.on_completed()

    def subscribe(observer: ObserverBase[Event], _: Any = None) -> DisposableBase:
        task = asyncio.create_task(_reported(loop(observer), observer))
        return Disposable(lambda: _cancel(task))

    return reactivex.create(subscribe)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _reported(loop: Any, observer: ObserverBase[Event]) -> None:
    """Run the loop; what it raises goes to the observer, as a pipeline's users expect."""
    try:
        await loop
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        observer.on_error(error)


async def consume(job: Job, on_event: OnEvent, stopped: Stopped = never, messages: Messages | None = None) -> None:
    """Use it as its users do: subscribe; what has to be awaited becomes a task; dispose when it is enough."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    begun: set[asyncio.Task[None]] = set()

    async def handle(event: Event) -> None:
        if not await on_event(event):
            subscription.dispose()
            _end(over)

    def next_one(event: Event) -> None:
        task = asyncio.ensure_future(handle(event))
        begun.add(task)
        task.add_done_callback(begun.discard)

    source = observable(job, beginning() if messages is None else messages, stopped)
    subscription = source.subscribe(next_one, lambda error: _end(over, error), lambda: _end(over))
    try:
        await over
        while begun:
            await asyncio.wait(begun)
    finally:
        subscription.dispose()


def _end(over: asyncio.Future[None], error: Exception | None = None) -> None:
    if over.done():
        return
    if error is None:
        over.set_result(None)
    else:
        over.set_exception(error)
