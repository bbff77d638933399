"""What one carrier does when it is put to the test: each function runs it once and returns what was counted.

Figures, not opinions; what they mean is said in `nbagent.teach.matrix`. Must not know how a carrier works inside: it only uses
`consume` as its users do.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from nbagent.teach import carriers
from nbagent.teach.carriers.job import Event, HangingJob, Job, never

STEPS = 1000
"""Steps of the long run, as in the seed's "memory per step"."""

TICKS = 200
"""Rounds of the event loop that a consumer lets go by: everything that is free to go on does so."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A long run: steps that were done, frames and bytes more per step (by a straight line), and how it ended."""

    steps: int
    frames_per_step: float
    bytes_per_step: float
    ended: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that was to end early: tool calls that went on after that, whether what it held was given back, results its consumer has."""

    late_calls: int
    gave_back: bool
    kept: int


async def growth(carrier: ModuleType, steps: int = STEPS, window: int | None = 2) -> Growth:
    """Run a carrier through `steps` steps; measure the stack's depth and the memory inside every tool call.

    Only `window` messages are kept, so that the carrier's own growth is seen; None keeps the whole transcript, as a real run
    does. Of what tracemalloc sees, only what the carriers' own lines hold counts, in bytes: in a kernel other threads take memory, too.
    """
    depths: list[int] = []
    bytes_: list[int] = []
    every = max(1, steps * 2 // 5)  # a look at the memory takes a tenth of a second: two are enough for a line

    def probe() -> None:
        depths.append(_depth())
        if len(depths) % every == 0:
            bytes_.append(_own_bytes())

    async def on_event(_: Event) -> bool:
        return True

    traced = tracemalloc.is_tracing()  # somebody else's measurement goes on
    gc.collect()
    tracemalloc.start()
    try:
        await carrier.consume(Job(steps, window=window, probe=probe), on_event)
        ended = "done"
    except RecursionError:
        ended = "RecursionError"
    finally:
        if not traced:
            tracemalloc.stop()
    return Growth(len(depths), _slope(depths), _slope(bytes_) / every, ended)


def _own_bytes() -> int:
    """Return the bytes that were taken by lines of the carriers and are still held."""
    own = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.Filter(True, str(Path(carriers.__file__).parent / "*"))]
    )
    return sum(trace.size for trace in own.traces)


def _depth() -> int:
    frame, depth = inspect.currentframe(), 0
    while frame is not None:
        frame = frame.f_back
        depth += 1
    return depth


def _slope(values: list[int]) -> float:
    """Return by how much `values` grow from one to the next, as a straight line fitted by least squares."""
    n = len(values)
    if n < 2:
        return 0.0
    mean_x, mean_y = (n - 1) / 2, sum(values) / n
    above = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(values))
    return above / sum((x - mean_x) ** 2 for x in range(n))


async def observed(carrier: ModuleType, steps: int = 3) -> list[str]:
    """Return what a consumer is told, in order, by the names of the events."""
    seen: list[str] = []

    async def on_event(event: Event) -> bool:
        seen.append(event[0])
        return True

    await carrier.consume(Job(steps), on_event)
    return seen


async def paused(carrier: ModuleType, steps: int = 20) -> tuple[int, bool]:
    """Hold a run at its third event; return how many calls went on meanwhile, and whether it came to its end afterwards."""
    job, gate, held = Job(steps), asyncio.Event(), asyncio.Event()
    ends: list[str] = []
    count = 0

    async def on_event(event: Event) -> bool:
        nonlocal count
        count += 1
        if count == 3:
            held.set()
            await gate.wait()
        if event[0] == "done":
            ends.append(event[1])
        return True

    run = asyncio.ensure_future(carrier.consume(job, on_event))
    waiting = asyncio.ensure_future(held.wait())
    await asyncio.wait([waiting, run], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    before = len(job.called) if held.is_set() else 0  # never held: it went through all its steps
    await _ticks()
    meanwhile = len(job.called) - before
    gate.set()
    await run
    return meanwhile, ends == ["end_turn"] and len(job.called) == steps


async def lead(carrier: ModuleType, steps: int = 50) -> int:
    """Return by how many calls the loop is at most ahead of a consumer that takes its time over each event."""
    job = Job(steps)
    ahead: list[int] = []
    handled = 0

    async def on_event(event: Event) -> bool:
        nonlocal handled
        for _ in range(20):
            await asyncio.sleep(0)
        handled += event[0] == "result"
        ahead.append(len(job.called) - handled)
        return True

    await carrier.consume(job, on_event)
    return max(ahead[:-1], default=steps)


async def flagged(carrier: ModuleType) -> Ended:
    """End a run by a flag that it looks at (cooperative): the flag is up when three calls have run."""
    job, seen = Job(20), list[Event]()

    async def on_event(event: Event) -> bool:
        seen.append(event)
        return True

    await carrier.consume(job, on_event, lambda: len(job.called) >= 3)
    return _ended(job, 3, seen)


async def left(carrier: ModuleType) -> Ended:
    """End a run from its consumer, which has enough at the third result it is given."""
    job, seen = Job(20), list[Event]()
    at: list[int] = []

    async def on_event(event: Event) -> bool:
        seen.append(event)
        if _results(seen) < 3:
            return True
        at.append(len(job.called))
        return False

    await carrier.consume(job, on_event, never)
    await _ticks()
    return _ended(job, at[0] if at else 3, seen)


async def timed_out(carrier: ModuleType) -> Ended:
    """End a run from outside while its third call hangs, as `asyncio.timeout` does: its task is cancelled."""
    job, seen = HangingJob(20), list[Event]()

    async def on_event(event: Event) -> bool:
        seen.append(event)
        return True

    run = asyncio.ensure_future(carrier.consume(job, on_event, never))
    hung = asyncio.ensure_future(job.hung.wait())
    await asyncio.wait([hung, run], return_when=asyncio.FIRST_COMPLETED)
    hung.cancel()
    at = len(job.called)
    run.cancel()
    await asyncio.wait([run])
    await _ticks()
    return _ended(job, at, seen)


def _ended(job: Job, at: int, seen: list[Event]) -> Ended:
    return Ended(len(job.called) - at, job.closed == job.opened == 1, _results(seen))


def _results(seen: list[Event]) -> int:
    return sum(event[0] == "result" for event in seen)


async def _ticks() -> None:
    for _ in range(TICKS):
        await asyncio.sleep(0)
