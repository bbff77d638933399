"""Which cells wait for no turn: only commands that run no code, and nothing else beside them."""

from __future__ import annotations

import pytest

from nbagent.app.reports import COMMANDS
from nbagent.app.transform import PASSING, passes_by


def test_what_passes_are_commands_that_there_are():
    assert {*PASSING} - {*COMMANDS} == {""}


@pytest.mark.parametrize(
    "code", ["%agent stop", "%agent", "  %agent agents stop run-1  ", "# now\n\n%agent allow 1\n%agent status\n"]
)
def test_commands_pass(code):
    assert passes_by(code)


@pytest.mark.parametrize(
    "code",
    ["", "# nothing", "x = 1", "%agent stop\nx = 1", "x = 1\n%agent stop", "%agent undo", "%agent explore where is x",
     "%agent /clean", "%agent stopx", "%agents stop", "%%agent\nstop", "%%agent stop\n", "%agent?", "print('%agent stop')",
     "%agent stop\n%agent fix"],
)  # fmt: skip
def test_code_and_commands_that_may_touch_variables_do_not(code):
    assert not passes_by(code)
