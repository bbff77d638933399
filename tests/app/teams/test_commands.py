"""`%agent team` and `%agent agents` as they are typed: what is taken, what is refused, and what nobody awaits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.answer import RunFailed
from nbagent.app.extension import Extension
from nbagent.app.teamcommands import _asked_for, _retrieved
from nbagent.app.underway import LiveRun
from nbagent.app.underway_commands import agents
from nbagent.core.errors import ConfigError
from nbagent.core.run import Stop
from nbagent.extend.git import GitError


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.levels.append(record.levelno)


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, logger = Kept(), logging.getLogger("nbagent")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.parametrize(
    ("error", "levels"),
    [(KeyError("a bug"), [logging.ERROR]), (GitError("the disk is full"), [logging.INFO]), (RunFailed.__new__(RunFailed), [])],
)  # fmt: skip
async def test_what_ends_a_team_in_the_background_is_kept_and_its_panel_says_why_a_run_failed(
    error: Exception, levels: list[int], kept: Kept
) -> None:
    async def fails() -> None:
        raise error

    running = asyncio.create_task(fails())
    await asyncio.wait({running})
    _retrieved(running)
    assert kept.levels == levels
    assert not running._log_traceback, "asyncio has nothing to say of it at some other time"  # type: ignore[attr-defined]


def test_a_value_with_spaces_is_refused_and_not_cut_in_two(shell: Any, at_home: Path) -> None:
    with pytest.raises(ConfigError, match="can't hold spaces"):
        _asked_for(["Make it work", "--tools", "run_python, read_file"])


def test_agents_that_run_can_be_listed_and_the_only_one_stopped_without_its_id(shell: Any, at_home: Path) -> None:
    extension = Extension(shell)
    one = extension.underway.add(LiveRun("run-1", "plum", "go", "", Stop(), background=True))
    listed = agents(extension, "list")
    assert isinstance(listed, str) and "run-1" in listed
    assert agents(extension, "stop") == "Stopping."
    extension.underway.add(LiveRun("run-2", "fig", "go", "", Stop(), background=True))
    with pytest.raises(ConfigError, match=r"Which one\?.*\n.*\n.*run-1"):
        agents(extension, "stop")
    extension.underway.remove(one)
