"""The warm parent of the kernels, one for each process of the tests, and what each task came to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.analysis.desk import Facts, Task, Work, done
from tests.support.warm import ANALYST, CORE, LIBRARIES, Warm

Did = Callable[[str, str], Awaitable[tuple[Work, Facts]]]


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with Warm(tmp_path_factory.mktemp("warm"), ANALYST, (*LIBRARIES, *CORE)) as parent:
        yield parent


@pytest.fixture(scope="session")
def did(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Did:
    """Do a task with its script, once: those who look at what came of it share it."""
    kept: dict[tuple[str, str], tuple[Work, Facts]] = {}

    async def do(name: str, variant: str) -> tuple[Work, Facts]:
        if (name, variant) not in kept:
            kept[name, variant] = await done(Task(name), tmp_path_factory.mktemp(f"{name}-{variant}"), variant)
        return kept[name, variant]

    return do
