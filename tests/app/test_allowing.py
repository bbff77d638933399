"""`%agent allow` beside open approvals: a cell that was written beforehand says yes to nothing that asks in the background."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.extension import Extension
from nbagent.app.refused import allow, deny
from nbagent.app.underway import LiveRun
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
        assert not asking.done() and extension.underway.asks == (ASKED,)
        assert deny(extension, "") == "Denied: Run ls"
    else:
        assert said == "Allowed: Run ls"
    assert (await asking).approved is not background
