"""Where jobs are carried out: processes of this machine, or any executor that the person hands over.

An executor is what `concurrent.futures` says one is; a Dask client and a view of ipyparallel's have one. Nothing here
schedules. Must not know what a job is. Read `executor_of`, then `Places`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nbagent.app.nursery import Nursery
from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json

DEFAULT_WORKERS = 4
"""Jobs that run side by side where nothing is said: they wait for the model most of the time, so cores do not count."""

TRIES = 3
"""How often a job is given out in all, where its worker dies."""


def executor_of(given: object) -> Executor | None:
    """Return the executor that the person means, None for processes of this machine. Raises `ConfigError`.

    A `distributed.Client`, a client or a view of ipyparallel's stand for their executors.
    """
    if given is None or isinstance(given, Executor):
        return given
    found: Any = given
    if hasattr(found, "get_executor"):  # distributed.Client
        found = found.get_executor(pure=False)
    elif hasattr(found, "load_balanced_view"):  # ipyparallel.Client
        found = found.load_balanced_view().executor
    elif hasattr(found, "executor"):  # a view of ipyparallel's
        found = found.executor
    if isinstance(found, Executor):
        return found
    raise ConfigError(
        f"executor = {given!r} is no executor. Take any of concurrent.futures, a dask.distributed.Client, or a view of "
        "ipyparallel's; without one, processes of this machine are used."
    )


def default_workers() -> int:
    """Return how many jobs run side by side on this machine where nothing is said."""
    return max(DEFAULT_WORKERS, os.cpu_count() or 1)


class Places:
    """Carries jobs out: on the person's executor, or here, each in a process forked from a warm one.

    A process pool would import a script again in each worker, and run what no `if __name__ == "__main__"` guards; here a
    thread waits for each process, and nothing of the person's is imported. Where this process is killed, the replies that
    are under way still come whole into their sessions.
    """

    def __init__(self, executor: Executor | None, workers: int | None = None) -> None:
        self._nursery = Nursery() if executor is None else None
        self._executor = executor or ThreadPoolExecutor(workers or default_workers(), thread_name_prefix="nbagent-job")

    def give(self, perform: Callable[..., Json], *given: Any) -> Future[Any]:
        """Have `perform` (of a module's top level) called elsewhere; here it gets the nursery as `within`.

        Raises `ConfigError` where the executor takes no work any more.
        """
        here = {} if self._nursery is None else {"within": self._nursery}
        try:
            return self._executor.submit(perform, *given, **here)
        except (BrokenExecutor, RuntimeError) as error:
            raise ConfigError(f"The executor takes no work any more: {error}") from None

    async def close(self, *, at_once: bool = False) -> None:
        """Let go of it. One of the person's is left as it is; of ours nothing is left, `at_once` also what still runs."""
        if self._nursery is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            await asyncio.to_thread(self._nursery.kill if at_once else self._nursery.close)


def take_back(future: Future[Any]) -> bool:
    """Take back work that has not begun; return whether that was still possible."""
    abort = getattr(future, "abort", None)
    if abort is not None:  # ipyparallel's: a cancelled future of its own would be answered nevertheless
        return False
    return future.cancel()


@dataclass(frozen=True, slots=True)
class Lost:
    """Why work came to nothing where it was carried out: `again`: it may be given out once more."""

    sentence: str
    again: bool


def lost(error: BaseException) -> Lost:
    """Return what became of work whose future failed: with its worker, or with the whole executor."""
    if isinstance(error, BrokenExecutor):
        return Lost(f"The executor broke: {error}", again=False)
    if isinstance(error, concurrent.futures.CancelledError):
        return Lost("The executor cancelled this job.", again=False)
    if type(error).__name__ == "KilledWorker":  # Dask has given it to one worker after the other already
        return Lost("Each worker that this job was given to died.", again=False)
    return Lost(f"The worker of this job died or could not begin it ({type(error).__name__}: {error}).", again=True)
