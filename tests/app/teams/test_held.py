"""A team that is at work is nobody else's: it is neither accepted nor thrown away meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.extension import Extension
from nbagent.app.team import accept, discard
from nbagent.app.teamplan import TeamFile, TeamPlan
from nbagent.app.underway import LiveRun
from nbagent.core.errors import ConfigError
from nbagent.core.run import Stop
from tests.app.teams.project import Function, project


@pytest.mark.parametrize("deed", [accept, discard])
async def test_a_team_at_work_is_left_alone_and_can_be_had_when_it_has_ended(
    deed: Callable[[Extension, str], Awaitable[str]], shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = project(tmp_path / "project", {"prices": [Function("net", "a + b", "a - b", "(1, 2)")]})
    monkeypatch.chdir(repo)
    extension = Extension(shell)
    plan = TeamPlan.of("go", 1)
    TeamFile(plan).write(repo)
    assert extension.holds.take(f"team {plan.team}")
    with pytest.raises(ConfigError, match=f"The team {plan.team} is at work right now"):
        await deed(extension, plan.team)
    extension.holds.drop(f"team {plan.team}")
    assert await deed(extension, plan.team)
    assert not extension.holds.here(f"team {plan.team}")
    extension.holds.close()


def test_code_of_an_agent_in_the_background_is_not_taken_for_a_persons(shell: Any, at_home: Path) -> None:
    extension = Extension(shell)
    assert not extension.agents_code
    extension.underway.add(LiveRun("run-1", "looks", "look", "", Stop(), background=True))
    assert extension.agents_code

    def in_a_cell() -> bool:
        extension.persons.asked()
        return extension.agents_code

    assert not copy_context().run(in_a_cell), "the person's own cell, while one goes on in the background"
