"""The seed's second table, generators against a reactive library, with what can be counted (reactivex, the extra `nbagent[teach]`)."""

from __future__ import annotations

import asyncio
import importlib.metadata
import subprocess
import sys
from contextlib import aclosing

from nbagent.teach import measured
from nbagent.teach.carriers import generator, reactive
from nbagent.teach.carriers.job import Job, beginning
from nbagent.teach.tables import Table

MISSING = "This table needs reactivex: %pip install 'jupyter-nbagent[teach]'"


async def against_reactive() -> Table:
    """Return the seed's second table, claim beside measurement; where reactivex is missing, a table that says so."""
    try:
        from reactivex import operators
    except ModuleNotFoundError:
        return Table(("", "async generator", "reactive"), (), MISSING)
    names = [name for name in vars(operators) if name.islower() and not name.startswith("_")]
    timed = sorted({"debounce", "delay", "sample", "throttle_first", "throttle_with_timeout", "timeout"} & set(names))
    (split, gen_calls), (shared, rx_calls) = await two_consumers_generator(), await two_consumers_reactive()
    rows = (
        ("To learn", "the language", f"seed: 100+ operators; here: {len(names)}"),
        ("Size", "0 KB", f"seed: ~30 KB; here: {_size() // 1024:,} KB on disk, {_import_ms():.0f} ms to import"),
        ("Backpressure", f"at most {await measured.lead(generator)} calls ahead", f"{await measured.lead(reactive)} calls ahead"),
        ("Ended by its consumer", f"{(await measured.left(generator)).late_calls} calls went on", f"{(await measured.left(reactive)).late_calls} calls went on"),
        ("Cold: nothing runs before it is used", str(generator_is_cold()), str(observable_is_cold())),
        ("Two consumers of one run", f"each gets a part ({split}), {gen_calls} model calls", f"share(): each gets all ({shared}), {rx_calls} model calls"),
        ("Time operators", "by hand", ", ".join(timed)),
        ("Best for", "one step after the other", "many streams, merged and timed"),
    )  # fmt: skip
    return Table(
        ("", "async generator", "reactive"),
        rows,
        "What each is best for is the seed's opinion; all figures were counted here.",
    )


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
