"""A run in its place with an MCP server: `nbagent ask`, as a person's terminal runs it, from settings file to process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extend.mcp_rig import SCRIPT
from tests.support.messages_server import MessagesServer, calls, say

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


def ask(folder: Path, server: MessagesServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk", "PYTHONPATH": str(ROOT)}
    env |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "settings"), "COLUMNS": "200"}
    env.pop("CLAUDE_CONFIG_DIR", None)
    command = [sys.executable, "-m", "nbagent", "ask", *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False
    )


def entry(*options: str) -> dict:
    return {"command": sys.executable, "args": [str(SCRIPT), *options]}


def test_the_persons_servers_tools_are_the_models_and_their_process_is_gone_afterwards(tmp_path, server):
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"s": entry(), "gone": {"command": "no-such"}}}))
    server.push(calls("mcp__s__echo", what="hello"))
    server.push(calls("mcp__s__environment"))
    server.push(calls("mcp__s__write", what="x"))
    server.push(say("Done."))
    done = ask(tmp_path, server, "Use @s:mem://notes", "--allow", "mcp__s__environment")
    assert "“gone” does not run" in done.stdout, done.stdout + done.stderr
    first = server.requests[0].body
    assert {"mcp__s__echo", "list_mcp_resources"} <= {tool["name"] for tool in first["tools"]}
    opening = json.dumps(first["messages"], ensure_ascii=False)
    assert "Use echo first." in opening and "read mem://notes" in opening and "“gone” is not available" in opening
    results = [request.body["messages"][-1]["content"][0]["content"][0]["text"] for request in server.requests[1:4]]
    assert results[0] == 'echo {"what": "hello"}'
    assert "Nobody is there to approve this" in results[2]
    assert done.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(results[1])["pid"], 0)


def test_a_projects_servers_are_not_started_without_trust(tmp_path, server):
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": entry("--log", str(tmp_path / "log"))}}))
    server.push(say("Done."))
    done = ask(tmp_path, server, "hi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [tool["name"] for tool in server.requests[0].body["tools"] if tool["name"].startswith("mcp__")]
    assert not (tmp_path / "log").exists()
