"""Where jobs are carried out: processes of this machine, or any executor that the person hands over.

An executor is what `concurrent.futures` says one is; a Dask client and a view of ipyparallel's have one. Nothing here
schedules. Must not know what a job is. Read `executor_of`, then `Places`.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import ConfigError

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
    """Carries jobs out on an executor: the person's, or threads here, each of which has its jobs done in processes.

    `perform` is a function of the top level of a module, so that it can be named to another process.
    """

    def __init__(self, executor: Executor | None, workers: int | None = None) -> None:
        self._own = executor is None
        self._executor = executor or ThreadPoolExecutor(workers or default_workers(), thread_name_prefix="nbagent-job")

    @property
    def own(self) -> bool:
        """Whether it is no executor of the person's."""
        return self._own

    def give(self, perform: Callable[..., Any], *given: Any) -> Future[Any]:
        """Have `perform` called elsewhere. Raises `ConfigError` where the executor takes no work any more."""
        try:
            return self._executor.submit(perform, *given)
        except (BrokenExecutor, RuntimeError) as error:
            raise ConfigError(f"The executor takes no work any more: {error}") from None

    def close(self) -> None:
        """Let go of it. One of the person's is left as it is; of ours what has not begun never does."""
        if self._own:
            self._executor.shutdown(wait=False, cancel_futures=True)


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
    return Lost(f"The worker of this job died or could not begin it ({type(error).__name__}: {error}).", again=True)
