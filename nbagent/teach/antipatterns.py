"""The seed's two anti-patterns, each beside its cure: results that wait for the last one, and errors that nobody hears of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

Work = Callable[[int], Any]


async def buffered(items: int, work: Work) -> AsyncGenerator[list[Any]]:
    """Anti-pattern: do everything, then yield it all at once."""
    results: list[Any] = []
    for item in range(items):
        await asyncio.sleep(0)
        results.append(work(item))
    yield results


async def streamed(items: int, work: Work) -> AsyncGenerator[Any]:
    """Its cure: yield each result when it is there."""
    for item in range(items):
        await asyncio.sleep(0)
        yield work(item)


async def silent(items: int, work: Work) -> AsyncGenerator[Any]:
    """Anti-pattern: swallow what goes wrong. Its consumer can't tell a failure from an end."""
    try:
        for item in range(items):
            await asyncio.sleep(0)
            yield work(item)
    except ArithmeticError:
        pass


async def outspoken(items: int, work: Work) -> AsyncGenerator[Any]:
    """Its cure: an error is an event, and the consumer decides; what is no failure of the item is not caught."""
    for item in range(items):
        await asyncio.sleep(0)
        try:
            yield "result", work(item)
        except ArithmeticError as error:
            yield "error", error


async def done_before_the_first(make: Callable[[int, Work], AsyncGenerator[Any]], items: int = 10) -> int:
    """Return how many items were worked on when the consumer got its first value, and had enough."""
    done: list[int] = []

    def work(item: int) -> int:
        done.append(item)
        return item

    async with aclosing(make(items, work)) as values:
        async for _ in values:
            break
    return len(done)


async def heard_of(make: Callable[[int, Work], AsyncGenerator[Any]], items: int = 10) -> list[Any]:
    """Return all that a consumer is told when the work on item 3 divides by zero."""
    async with aclosing(make(items, lambda item: 60 // (item - 3))) as values:
        return [value async for value in values]
