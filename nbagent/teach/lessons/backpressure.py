"""The exercises of lesson 06: leave early and give back, keep what came before the time was up, read ahead, but not too far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from nbagent.teach.carriers.job import HangingJob, Job
from nbagent.teach.exercises import Exercise, NotYet

_SIZE = 4


async def _third(names: Mapping[str, Any]) -> None:
    job = Job(20)
    events = await names["first_three"](job)
    closed, asked = job.closed, job.asked  # at once: later the garbage collector may have closed it
    if [event[0] for event in events] != ["think", "reply", "result"]:
        raise NotYet(
            f"the first three events are think, reply and result; you return {[event[0] for event in events]}."
        )
    if asked != 1:
        raise NotYet(f"the model was asked {asked} times for three events of its first turn: the loop went on.")
    if closed != 1:
        raise NotYet("the connection is still open: leaving an `async for` does not close the generator.")


async def _within(names: Mapping[str, Any]) -> None:
    job = HangingJob(20)
    try:
        kept = await names["within"](job, 0.05)
    except TimeoutError:
        raise NotYet(
            "the time was up, and a TimeoutError came out: the consumer wants what there is, not an error."
        ) from None
    if len(kept) != 2:
        raise NotYet(f"two results had come before the third call hung; you return {len(kept)}.")
    if job.closed != 1:
        raise NotYet("the connection was not given back.")
    whole = await names["within"](Job(3), 5)
    if len(whole) != 3:
        raise NotYet(f"a run that is fast enough has all its three results; you return {len(whole)}.")


async def _ahead(names: Mapping[str, Any]) -> None:
    ahead = names["ahead"]
    made: list[int] = []
    closed: list[bool] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            for number in range(20):
                await asyncio.sleep(0)
                made.append(number)
                yield number
        finally:
            closed.append(True)

    got: list[int] = []
    leads: list[int] = []
    async with aclosing(ahead(numbers(), _SIZE)) as values:
        async for value in values:
            got.append(value)
            for _ in range(30):
                await asyncio.sleep(0)
            leads.append(len(made) - len(got))
    if got != list(range(20)):
        raise NotYet(f"all values must come, in order; you gave {len(got)}: {got[:6]} …")
    if max(leads) > _SIZE + 1:
        raise NotYet(
            f"the source was {max(leads)} values ahead of the consumer, and {_SIZE} (and one in hand) are allowed."
        )
    if max(leads) < 2:
        raise NotYet("nothing was read ahead: while the consumer is busy, the source should go on, a little.")
    closed.clear()
    async with aclosing(ahead(numbers(), _SIZE)) as values:
        async for _ in values:
            break
    if not closed:
        raise NotYet("the consumer left, and the source was not closed.")


_THIRD = """
async def first_three(job):
    events = []
    async with aclosing(loop(job, beginning())) as source:
        async for event in source:
            events.append(event)
            if len(events) == 3:
                break
    return events
"""

_WITHIN = """
async def within(job, seconds):
    kept = []
    try:
        async with asyncio.timeout(seconds), aclosing(loop(job, beginning())) as source:
            async for event in source:
                if event[0] == "result":
                    kept.append(event)
    except TimeoutError:
        pass
    return kept
"""

_AHEAD = """
async def ahead(source, size):
    queue, end = asyncio.Queue(size), object()

    async def fill():
        async with aclosing(source):
            async for value in source:
                await queue.put(value)
        await queue.put(end)

    filling = asyncio.create_task(fill())
    try:
        while (value := await queue.get()) is not end:
            yield value
    finally:
        filling.cancel()
        await asyncio.wait([filling])
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "06.third",
        "you leave at the third event, and what the loop held is given back at once",
        (
            "`break` leaves the `async for`. What happens to the generator behind it?",
            "`contextlib.aclosing` closes it when the block is left, whichever way.",
            "`async with aclosing(loop(job, beginning())) as source:`, inside it the `async for` with a `break` at the third event.",
        ),
        _THIRD,
        _third,
    ),
    Exercise(
        "06.within",
        "when the time is up you have what had come, and nothing is left open",
        (
            "The time limit ends whatever is awaited. Where must the results be, so that they are still there?",
            "A list outside of the block that is cut off; `asyncio.timeout(seconds)` around the loop; catch `TimeoutError` outside of both.",
            "`try: async with asyncio.timeout(seconds), aclosing(…) as source:` append to the list; `except TimeoutError: pass`; return the list.",
        ),
        _WITHIN,
        _within,
    ),
    Exercise(
        "06.ahead",
        "your buffer reads ahead, never too far, and closes its source when its consumer leaves",
        (
            "Reading ahead needs a task of its own, and a place for what it has read. Which place refuses when it is full?",
            "`asyncio.Queue(size)`: `await queue.put(…)` waits while it is full. A value of its own says that the source has ended.",
            "A task fills the queue; the generator gets from it and yields; in `finally` cancel the task and wait for it, so that the source is closed.",
        ),
        _AHEAD,
        _ahead,
    ),
)
