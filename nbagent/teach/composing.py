"""Generators made of generators: phases that are composed, what closing does to the inner ones, and `yield*`, which Python lacks.

Must not know of models or of a screen. Read `phases`, then `leaky`, then `flat`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from nbagent.core.events import AgentReported, Event

T = TypeVar("T")
Log = Callable[[str], None]


async def phase(name: str, steps: int, log: Log) -> AsyncGenerator[str]:
    """One phase: yields its steps; logs when it begins and is closed."""
    log(f"{name} begins")
    try:
        for step in range(1, steps + 1):
            yield f"{name} {step}"
    finally:
        log(f"{name} closed")


async def phases(names: Sequence[str], steps: int, log: Log) -> AsyncGenerator[str]:
    """Phases one after the other, as the real loop has them."""
    try:
        for name in names:
            async with aclosing(phase(name, steps, log)) as events:
                async for event in events:
                    yield event
    finally:
        log("outer closed")


async def leaky(names: Sequence[str], steps: int, log: Log) -> AsyncGenerator[str]:
    """The same without `aclosing`: it yields the same events, and when it is closed early the phase that runs stays open."""
    try:
        for name in names:
            async for event in phase(name, steps, log):
                yield event
    finally:
        log("outer closed")


Compose = Callable[[Sequence[str], int, Log], AsyncGenerator[str]]


async def closed_early(compose: Compose) -> tuple[str, ...]:
    """Take two events of a composition, close it, and return what was logged until its `aclose()` had returned.

    A line says in which task it was logged if that is not ours: what a generator leaves open the event loop closes later.
    """
    lines: list[str] = []
    own = asyncio.current_task()

    def log(text: str) -> None:
        lines.append(text if asyncio.current_task() is own else f"{text} (later, in another task)")

    events = compose(("think", "act"), 3, log)
    await anext(events)
    await anext(events)
    await events.aclose()
    lines.append("— aclose() has returned —")
    del events
    for _ in range(5):  # turns of the event loop, so that what was left open can be closed
        await asyncio.sleep(0)
    return tuple(lines)


# ── yield*, which Python does not have ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Delegate:
    """What a generator yields to say: go on with this one, and come back when it has ended."""

    inner: AsyncGenerator[Any, Any]


def delegate(inner: AsyncGenerator[Any, Any]) -> Delegate:
    """Mark a generator to go on with: a yield of this, in a generator that `flat` drives, is JavaScript's `yield*`."""
    return Delegate(inner)


async def flat(outer: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Drive a generator that delegates: the consumer sees one flat stream.

    What the consumer sends goes to the innermost one; what that raises goes
    to the one above it; closing closes the innermost first.
    """
    stack = [outer]
    sent: Any = None
    raised: Exception | None = None
    try:
        while stack:
            found, raised = await _advanced(stack[-1], sent, raised)
            sent = None
            if raised is not None:  # it has ended, or failed
                stack.pop()
                if isinstance(raised, StopAsyncIteration):
                    raised = None
            elif isinstance(found, Delegate):
                stack.append(found.inner)
            else:
                sent = yield found
        if raised is not None:
            raise raised
    finally:
        while stack:
            await stack.pop().aclose()


async def _advanced(
    generator: AsyncGenerator[Any, Any], sent: Any, raised: Exception | None
) -> tuple[Any, Exception | None]:
    """Let a generator go on to its next `yield`; return what it yielded, or what it raised."""
    try:
        return await (generator.asend(sent) if raised is None else generator.athrow(raised)), None
    except Exception as error:  # noqa: BLE001  (what an inner one raises goes to the one above)
        return None, error


async def forwarded(depth: int, items: int) -> AsyncGenerator[int]:
    """`items` numbers through `depth` generators, each with `async for … yield`."""
    if depth == 0:
        for item in range(items):
            yield item
        return
    async with aclosing(forwarded(depth - 1, items)) as events:
        async for event in events:
            yield event


async def delegated(depth: int, items: int) -> AsyncGenerator[Any, Any]:
    """The same with `delegate`; to be driven by `flat`."""
    if depth == 0:
        for item in range(items):
            yield item
        return
    yield delegate(delegated(depth - 1, items))


async def microseconds(make: Callable[[], AsyncGenerator[Any, Any]], items: int) -> float:
    """How long one event takes on its way from the innermost generator to here, in microseconds."""
    began = time.perf_counter()
    async with aclosing(make()) as events:
        async for _ in events:
            pass
    return 1e6 * (time.perf_counter() - began) / items


async def costs(depths: Sequence[int] = (1, 4, 16, 64), items: int = 500) -> list[tuple[int, float, float]]:
    """Measure depth, microseconds an event with `async for … yield`, and with `delegate`; the best of three each."""

    async def best(make: Callable[[], AsyncGenerator[Any, Any]]) -> float:
        return min([await microseconds(make, items) for _ in range(3)])

    return [
        (depth, await best(lambda d=depth: forwarded(d, items)), await best(lambda d=depth: flat(delegated(d, items))))
        for depth in depths
    ]


# ── a run inside a call of another ───────────────────────────────────────────────────────────────────────────────────


async def under(call_id: str, agent: str, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    """Wrap each event of a subagent's run, as `nbagent.core.subagents.spawn` does: an event that says whose event it is."""
    async with aclosing(events):
        async for event in events:
            yield AgentReported(
                state=event.state,
                turn=event.turn,
                at=event.at,
                call_id=call_id,
                agent_id=f"{agent}-1",
                agent=agent,
                title=agent,
                event=event,
            )


def depth(event: Event) -> int:
    """How many runs an event has come through: 0 for one of the run itself, 1 for a subagent's."""
    found = 0
    while isinstance(event, AgentReported):
        event, found = event.event, found + 1
    return found
