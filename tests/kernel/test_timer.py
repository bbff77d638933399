"""How long a person's cells take is remembered by their ids, in a plain shell that is told them as a kernel is."""

from __future__ import annotations

import atexit
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from nbagent.core.ports import Cell
from nbagent.jupyter.timer import CellTimer

BUSY = "import time\nend = time.monotonic() + 0.05\nwhile time.monotonic() < end: pass"


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    settings = Config()
    settings.HistoryManager.enabled = False
    made = InteractiveShell(config=settings)
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)


def last(timer: CellTimer, cell_id: str) -> float | None:
    return timer.times.last(Cell(cell_id, "code", "x", 0))


@pytest.mark.slow
def test_a_cell_is_timed_by_its_id_and_code_without_one_is_not(shell: InteractiveShell) -> None:
    timer = CellTimer(shell)
    timer.install()
    shell.run_cell(BUSY, cell_id="slow")
    shell.run_cell("1/0", cell_id="failed")
    shell.run_cell("x = 1")
    assert 0.05 <= (last(timer, "slow") or 0) < 60
    assert last(timer, "failed") is not None
    assert last(timer, "other") is None


@pytest.mark.slow
def test_the_cell_around_nested_code_is_timed_whole(shell: InteractiveShell) -> None:
    timer = CellTimer(shell)
    timer.install()
    shell.run_cell(f"get_ipython().run_cell({BUSY!r})\n{BUSY}", cell_id="outer")
    assert (last(timer, "outer") or 0) >= 0.1


@pytest.mark.slow
def test_after_removal_nothing_is_timed_and_nothing_is_left_in_the_shell(shell: InteractiveShell) -> None:
    before = {name: list(found) for name, found in shell.events.callbacks.items()}
    timer = CellTimer(shell)
    timer.install()
    timer.remove()
    timer.remove()
    shell.run_cell("x = 1", cell_id="a")
    assert last(timer, "a") is None
    assert {name: list(found) for name, found in shell.events.callbacks.items()} == before
