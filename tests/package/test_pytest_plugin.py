"""The fixture `agent_replay` in a project of somebody else's: recorded once, played without a model, strict about what is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source import ROOT

TEST = '''
import sys
from pathlib import Path

assert "nbagent.core.loop" not in sys.modules

from nbagent import tool
from nbagent.models.scripted import ScriptedModel, call, last_results


@tool
async def count_rows(_, file: str) -> str:
    """Count the rows of a file.

    Args:
        file: Its name.
    """
    return str(len(Path(file).read_text().splitlines()) - 1)


async def test_it_counts(agent_replay):
    script = [call("count_rows", file="sales.csv"), lambda seen: f"It has {last_results(seen)[0]} rows."]
    answer = await agent_replay("How many rows?", tools=[count_rows], model=ScriptedModel(script))
    assert answer.text == "It has 3 rows."
    agent_replay.assert_complete()
    assert [event.name for event in agent_replay.events if event.type == "call_started"] == ["count_rows"]


class TestOther:
    async def test_it_counts(self, agent_replay):
        answer = await agent_replay("Hello", model=ScriptedModel(["Another recording."]))
        assert answer.text == "Another recording."
'''


@pytest.mark.slow
def test_a_test_of_an_agent_is_recorded_once_and_then_played(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    data = tmp_path / "sales.csv"
    data.write_text("amount\n1\n2\n3\n")

    def run(*flags: str) -> str:
        plugins = ("-p", "pytest_asyncio.plugin", "-p", "nbagent.pytest_plugin")
        command = [sys.executable, "-m", "pytest", "-q", *plugins, *flags]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    assert "There is no recording" in run()
    assert "2 passed" in run("--agent-record")
    recording = tmp_path / "recordings" / "test_mine" / "test_it_counts.jsonl"
    assert recording.with_name("TestOther_test_it_counts.jsonl").exists()
    assert str(tmp_path) not in recording.read_text("ascii")
    assert "2 passed" in run()
    data.write_text("amount\n1\n2\n")
    failed = run()
    assert "1 failed" in failed
    assert "at request 2, messages[2].content[0].content[0].text: recorded '3', now '2'" in failed
