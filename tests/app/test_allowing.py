"""`%agent allow` beside open approvals: a cell that was written beforehand says yes to nothing that asks in the background."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.extension import Extension
from nbagent.app.refused import allow, deny
from nbagent.app.underway import LiveRun
from nbagent.core.errors import ConfigError
from nbagent.core.ports import Approval, Preview
from nbagent.core.run import Stop
from nbagent.jupyter.approval import PersonApprover
from tests.support.turns import until

ASKED = Approval("c1", "shell", "Run ls", {"command": "ls"}, Preview("command", "ls"), "in mode default", ())


@pytest.mark.parametrize("background", [True, False])
async def test_run_all_says_yes_to_no_run_in_the_background(background: bool, shell: Any, at_home: Path) -> None:
    extension, person = Extension(shell), PersonApprover()
    extension.underway.add(LiveRun("run-1", "plum", "go", "", Stop(), background=background, approver=person))
    asking = asyncio.create_task(person.ask(ASKED))
    await until(lambda: bool(extension.underway.asks))
    said = allow(extension, "")
    if background:
        assert said == "Nothing was allowed. It still waits for your answer, in its panel and in the tray: Run ls"
        assert not asking.done() and [one.approval for one in extension.underway.asks] == [ASKED]
        assert deny(extension, "") == "Denied: Run ls"
    else:
        assert said == "Allowed: Run ls"
    assert (await asking).approved is not background


async def test_questions_are_counted_oldest_first_over_all_runs_and_an_answer_goes_to_the_one_that_was_named(
    shell: Any, at_home: Path
) -> None:
    extension, now = Extension(shell), [0.0]
    people = [PersonApprover(clock=lambda: now[0]) for _ in range(2)]
    for number, person in enumerate(people):
        extension.underway.add(LiveRun(f"run-{number}", "plum", "go", "", Stop(), background=True, approver=person))
    asking: list[asyncio.Task[Any]] = []
    for person, asked in zip((*people, people[0]), (ASKED, ASKED, replace(ASKED, call_id="c2")), strict=True):
        now[0] += 1.0
        asking.append(asyncio.create_task(person.ask(asked)))
        await until(lambda: len(extension.underway.asks) == len(asking))
    assert [(one.to, one.since) for one in extension.underway.asks] == [(people[0], 1), (people[1], 2), (people[0], 3)]
    assert deny(extension, "2 use less") == "Denied: Run ls"
    answered = await asking[1]
    assert (answered.approved, answered.words) == (False, "use less")
    assert len(extension.underway.asks) == 2, "the same call with the same id, of another run, still waits"
    with pytest.raises(ConfigError, match="There is no question 3: only 2 questions are open"):
        deny(extension, "3")
    for _ in range(2):
        now[0] += 1.0
        assert deny(extension, "") == "Denied: Run ls"
    await asyncio.gather(*asking)
    assert deny(extension, "3 files") == "It stays denied. The model is told in the next run: 3 files"
