"""`@nbagent.hook` in an IPython shell: a run asks the hooks of cells, and the agent's own code can make none."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = r"""
from nbagent.models.scripted import call, say
asks = [[say("I look."), call("run_python", code="print(6 * 7)"), call("shell", command="rm -rf nothing")], "done", "again"]
makes = [[call("run_python", code="import nbagent\nnbagent.unhook(deny)")],
         [call("run_python", code="import nbagent\nnbagent.hook('PreToolUse')(len)")],
         [call("run_python", code="import nbagent\nnbagent.register(nbagent.AgentSpec('x', 'y'))")],
         [call("run_python", code="import nbagent\nnbagent.mcp_server('m', None)")], "done", "again"]
"""
CELLS = r"""
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
sys.path.insert(0, ".")
for cell in (
    "%load_ext nbagent",
    '''
import nbagent
seen = []
def says(**fields):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}

@nbagent.hook("PreToolUse", match="run_*")
def allow(said):
    seen.append(said["tool_input"]["code"])
    return says(permissionDecision="allow", permissionDecisionReason="fine")

@nbagent.hook("PreToolUse", match="Bash")
async def deny(said):
    return says(permissionDecision="deny", permissionDecisionReason=said["tool_input"]["command"])

@nbagent.hook("Stop")
def once_more(said):
    return {} if said["stop_hook_active"] else {"decision": "block", "reason": "not yet"}
''',
    "%%agent -m scripted:play:asks\ngo",
    "print('SEEN', seen)",
    "%%agent --new -m scripted:play:makes\ngo",
    "%agent hooks",
):
    shell.run_cell(cell).raise_error()
"""


@pytest.mark.slow
def test_a_run_asks_the_hooks_of_cells_and_the_agent_s_code_makes_and_removes_none(tmp_path):
    (tmp_path / "play.py").write_text(SCRIPT)
    (tmp_path / "cells.py").write_text(CELLS)
    command = [sys.executable, "cells.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    first, _, second = ran.stdout.partition("SEEN ")
    assert second.startswith("['print(6 * 7)']")
    assert "Not allowed (hook: deny: rm -rf nothing)" in first
    assert "The hook once_more (Stop) has the agent go on: not yet" in first
    assert "again" in first
    assert second.count("ConfigError: Hooks can't be made or taken away while an agent runs.") == 2
    assert second.count("ConfigError: Tools, servers and kinds of subagents can't be made while an agent runs.") == 2
    listed = [line for line in second.splitlines() if "[python]" in line]
    assert [line.removeprefix("Out[0]: ").split()[0] for line in listed] == ["PreToolUse", "PreToolUse", "Stop"]
