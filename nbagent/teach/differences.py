"""Where Python's async generators differ from the seed's TypeScript: each difference as a small function that shows it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import aclosing


def no_yield_star() -> str:
    """Return what Python says to `yield from` in an async generator (TypeScript: `yield*` delegates)."""
    source = "async def outer():\n    yield from inner()\n"
    try:
        compile(source, "outer.py", "exec")
    except SyntaxError as error:
        return f"SyntaxError: {error.msg}"
    return "it compiles"


async def _numbers(log: list[str]) -> AsyncGenerator[int]:
    try:
        for number in range(5):
            yield number
    finally:
        log.append("finally")


async def break_does_not_close() -> list[str]:
    """Return in which order things happen after a bare `break` (TypeScript's `for await` closes at `break`)."""
    log: list[str] = []
    numbers = _numbers(log)
    async for _ in numbers:
        break
    log.append("after the break")
    await numbers.aclose()
    return log


async def aclosing_closes() -> list[str]:
    """Return the order with `aclosing`: the generator's `finally` runs when the block is left."""
    log: list[str] = []
    async with aclosing(_numbers(log)) as numbers:
        async for _ in numbers:
            break
    log.append("after the break")
    return log


async def runs_in_its_consumers_task() -> bool:
    """Return whether a generator's code runs in whatever task pulls it: it has no task of its own."""
    tasks: list[object] = []

    async def who() -> AsyncGenerator[None]:
        while True:
            tasks.append(asyncio.current_task())
            yield

    generator = who()
    pullers: list[object] = []
    for _ in range(2):
        puller = asyncio.ensure_future(_pulled(generator))
        pullers.append(puller)
        await puller
    await generator.aclose()
    return tasks == pullers


async def _pulled(generator: AsyncGenerator[None]) -> None:
    await generator.__anext__()


async def a_timeout_across_a_yield() -> str:
    """Return where a time limit strikes that was opened inside a generator, when its consumer is slow: why no scope spans a `yield`."""

    async def scoped() -> AsyncGenerator[None]:
        async with asyncio.timeout(0.01):
            yield  # the limit was meant for the generator's own work

    async def consumer() -> str:
        async with aclosing(scoped()) as events:
            async for _ in events:
                try:
                    await asyncio.Event().wait()  # the consumer's own work
                except asyncio.CancelledError:
                    return "CancelledError in the consumer's code"
        return "nothing struck"

    return await asyncio.create_task(consumer())


async def two_pulls_at_once() -> str:
    """Return what a second `anext` says while the first is under way (TypeScript queues it)."""

    async def slow() -> AsyncGenerator[int]:
        await asyncio.sleep(0)
        yield 1

    generator = slow()
    first = asyncio.ensure_future(generator.__anext__())
    await asyncio.sleep(0)
    try:
        await generator.__anext__()
    except RuntimeError as error:
        await first
        await generator.aclose()
        return f"RuntimeError: {error}"
    return "both were answered"


async def recursion_by_tasks(steps: int = 1500) -> str:
    """Return how far a recursion gets whose every turn is a task of its own, and how deep the stack is at its end.

    This is how JavaScript's `await` works: after it, a function goes on with an empty stack. There the seed's recursion grows in
    memory (each turn waits for the next) and not on the stack. In Python an `await` chain is entered again from its beginning at
    every step, and each link is a frame.
    """

    async def turn(left: int) -> int:
        if left == 0:
            return len(inspect.stack(0))
        return await asyncio.create_task(turn(left - 1))

    began = len(inspect.stack(0))
    depth = await turn(steps) - began
    return f"{steps} turns deep, {max(depth, 0)} frames more on the stack"
