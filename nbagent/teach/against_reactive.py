"""The seed's second table, generators against a reactive library, with what can be counted (reactivex, the extra `nbagent[teach]`)."""

from __future__ import annotations

import asyncio
import importlib.metadata
import subprocess
import sys
from contextlib import aclosing
from typing import Any

from nbagent.teach import measured
from nbagent.teach.carriers import generator, reactive
from nbagent.teach.carriers.job import Job, beginning
from nbagent.teach.matrix import DIFFERS
from nbagent.teach.measured import Ended
from nbagent.teach.tables import Table

MISSING = "This table needs reactivex: %pip install 'jupyter-nbagent[teach]'"


async def against_reactive() -> Table:
    """Return the seed's second table, claim beside measurement; where reactivex is missing, a table that says so."""
    head = ("", "generator: seed", "here", "reactive: seed", "here")
    try:
        from reactivex import operators
    except ModuleNotFoundError:
        return Table(head, (), MISSING)
    names = {name for name in vars(operators) if name.islower() and not name.startswith("_")}
    timed = names & {"debounce", "delay", "sample", "throttle_first", "throttle_with_timeout", "timeout"}
    (split, gen_calls), (shared, rx_calls) = await two_consumers_generator(), await two_consumers_reactive()
    size = _size() // 1024
    rows = (
        ("Learning curve", "low", _OPINION, "high: 100+ operators", f"{len(names)} operators"),
        ("Size", "0 KB", "built in", "~30 KB min", f"{size:,} KB of Python, {_import_ms():.0f} ms to import" + f" ({DIFFERS})" * (size > 60)),
        ("Backpressure", "automatic", f"{await measured.lead(generator)} calls ahead", "manual", f"{await measured.lead(reactive)} calls ahead"),
        ("Cancellation", ".return()", _late(await measured.left(generator)), "unsubscribe()", _late(await measured.left(reactive))),
        ("Composition", "yield*", f"a loop with aclosing: Python has no yield* ({DIFFERS})", "pipe()", f"pipe(), {len(names)} parts to choose from"),
        ("Hot or cold", "always cold", _cold(generator_is_cold()), "both", f"{_cold(observable_is_cold())}; a Subject is hot: who comes late gets {late_to_a_subject()} of 2"),
        ("Error handling", "try/except", await error_in_a_generator(), "catch()", await error_in_a_pipeline()),
        ("Multicasting", "by hand", f"each consumer gets a part ({split})", "built in", f"share(): each gets all ({shared}), {rx_calls} model calls, not {2 * gen_calls}"),
        ("Time operators", "by hand", "asyncio.timeout, no more", "debounce, throttle", ", ".join(sorted(timed))),
        ("Best for", "one step after the other", _OPINION, "complex event streams", _OPINION),
    )  # fmt: skip
    return Table(head, rows, _NOTE)


_OPINION = "(an opinion)"
_NOTE = (
    f"“{DIFFERS}”: it is different here. The seed's 30 KB are a bundle of JavaScript that a page loads; here it is Python on disk. For what a "
    "reactive library is made for, many streams that are merged and timed, it is the better tool."
)


def _late(ended: Ended) -> str:
    return f"{ended.late_calls} calls went on, {'given back' if ended.gave_back else 'left open'}"


def _cold(cold: bool) -> str:
    return "cold: no call before it is used" if cold else "hot: it calls before it is used"


def late_to_a_subject() -> int:
    """Return how many of two events a subscriber of a hot source gets that comes after the first one."""
    from reactivex.subject import Subject

    got: list[int] = []
    hot: Subject[int] = Subject()
    hot.on_next(1)
    hot.subscribe(got.append)
    hot.on_next(2)
    return len(got)


def _failing() -> Job:
    def fail() -> None:
        raise ValueError("the tool failed")

    return Job(probe=fail)


async def error_in_a_generator() -> str:
    """Return what its consumer has of a tool that fails: where the error arrives, after how many events."""
    seen = 0
    try:
        async with aclosing(generator.loop(_failing(), beginning())) as events:
            async for _ in events:
                seen += 1
    except ValueError as error:
        return f"{type(error).__name__} at the consumer, after {seen} events"
    return "nothing arrived"


async def error_in_a_pipeline() -> str:
    """Return the same of a pipeline that goes on, by `catch`, with an event in the error's place."""
    import reactivex
    from reactivex import operators

    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    seen: list[Any] = []
    source = reactive.observable(_failing(), beginning())
    mended = source.pipe(operators.catch(lambda error, _: reactivex.just(("error", error))))
    subscription = mended.subscribe(seen.append, over.set_exception, lambda: over.set_result(None))
    await over
    subscription.dispose()
    return f"{type(seen[-1][1]).__name__} made an event by catch, after {len(seen) - 1} events"


def generator_is_cold() -> bool:
    """Whether a generator that nobody iterates has asked the model for nothing."""
    job = Job()
    generator.loop(job, beginning())
    return job.asked == 0


def observable_is_cold() -> bool:
    """Whether an observable that nobody has subscribed to has asked the model for nothing."""
    job = Job()
    reactive.observable(job, beginning())
    return job.asked == 0


async def two_consumers_generator() -> tuple[str, int]:
    """Let two consumers take turns with one generator; return how many events each got, and how often the model was asked."""
    job, got = Job(), [0, 0]
    async with aclosing(generator.loop(job, beginning())) as events:
        turn = 0
        async for _ in events:
            got[turn % 2] += 1
            turn += 1
    return f"{got[0]} and {got[1]}", job.asked


async def two_consumers_reactive() -> tuple[str, int]:
    """Subscribe twice to a shared observable; return how many events each got, and how often the model was asked."""
    from reactivex import operators

    job, got = Job(), [0, 0]
    over = asyncio.get_running_loop().create_future()

    def count(which: int) -> None:
        got[which] += 1

    shared = reactive.observable(job, beginning()).pipe(operators.share())
    first = shared.subscribe(lambda _: count(0))
    second = shared.subscribe(lambda _: count(1), over.set_exception, lambda: over.set_result(None))
    await over
    first.dispose()
    second.dispose()
    return f"{got[0]} and {got[1]}", job.asked


def _size() -> int:
    """Return the bytes of the installed library's Python files."""
    files = importlib.metadata.files("reactivex") or []
    return sum(file.size or 0 for file in files if file.suffix == ".py")


def _import_ms() -> float:
    """Return how long a new interpreter takes to import it, in milliseconds."""
    code = "import time; t = time.perf_counter(); import reactivex.operators; print((time.perf_counter() - t) * 1000)"
    done = subprocess.run(  # noqa: S603  (this Python, and a text of ours)
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return float(done.stdout)
