"""A folder that was prepared for Claude Code, in a real kernel with a page: inert before one yes, and then as documented.

Where it differs from Claude Code is told in docs/claude-folder.md.
"""

from __future__ import annotations

import asyncio
import html
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.trusting import NOT_NOW, TRUST
from tests.extend.mcp_rig import SCRIPT
from tests.failures.room import Room, Shown
from tests.support.messages_server import MessagesServer, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]

GUARD = """#!/bin/bash
command=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["tool_input"]["command"])')
case "$command" in rm*) echo "nothing is deleted here" >&2; exit 2;; esac
"""
SKILL = """---
description: Works with care
hooks:
  PostToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: echo ran >> "$CLAUDE_PROJECT_DIR"/log.txt
---
Look twice.
"""
FILES = {
    "CLAUDE.md": "Prices are in euros. @docs/style.md",
    "docs/style.md": "Short sentences.",
    ".claude/hooks/guard.sh": GUARD,
    ".claude/agents/checker.md": "---\nname: checker\ndescription: Checks files\ntools: Read\n---\nYou check.",
    ".claude/skills/careful/SKILL.md": SKILL,
    ".claude/commands/check.md": "---\nallowed-tools: Bash(echo *)\n---\nCheck $ARGUMENTS. Branch: !`echo main`",
    "notes.txt": "Mine.",
}


def prepared(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    guard = {"type": "command", "command": 'bash "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh', "timeout": 30}
    settings = {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]},
        "permissions": {"allow": ["Bash(touch *)", "Bash(rm *)"], "deny": ["Read(./secret/**)"]},
    }
    (folder / ".claude" / "settings.json").write_text(json.dumps(settings))
    server = {"command": sys.executable, "args": [str(SCRIPT), "--log", str(folder.parent / "mcp.log")]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"db": server}}))


async def answered(room: Room, face: str, source: str, *replies: Any) -> tuple[Shown, str]:
    """Run a cell and click `face` when the question about the folder is there; return what is seen, and the question."""
    asking, before, asked = asyncio.Event(), room.page.saw, list[str]()

    def saw(text: str) -> None:
        before(text)
        if "Do you trust the files of this folder?" in text:
            asked.append(text)
            asking.set()

    room.page.saw = saw
    running = asyncio.create_task(room.cell(source, *replies))
    waiting = asyncio.create_task(asking.wait())
    await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
    assert asked, (await running).seen
    while not running.done():
        room.page.click(face)
        await asyncio.wait({running}, timeout=0.2)
    room.page.saw = before
    return await running, html.unescape("".join(asked))


def sent(server: MessagesServer) -> str:
    """The last message of the last request, as text."""
    return json.dumps(server.requests[-1].body["messages"][-1], ensure_ascii=False)


def tools(body: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in body["tools"]}


async def test_a_folder_of_claude_code_is_inert_before_a_yes_and_then_does_as_documented(tmp_path):
    """Row 110: files of a project are ignored until trusted; trust is bound to their content."""
    folder = tmp_path / "project"
    prepared(folder)
    with MessagesServer() as server:
        async with Room(folder, server, interactive=True) as room:
            shown, question = await answered(room, NOT_NOW, "%%agent\nhello", "Hello.")
            shown.says("Hello.")
            for part in (
                "guard.sh",
                "allows Bash(touch *) without asking",
                "agent checker",
                "MCP server db",
                "skill careful",
            ):
                assert part in question
            told = sent(server)
            assert (
                "Prices are in euros." in told and "Short sentences." in told and "- careful: Works with care" in told
            )
            assert "checker" not in told and not any(
                name.startswith("mcp__") for name in tools(server.requests[-1].body)
            )
            (await room.cell("%agent /check prices.csv")).says(
                "has not said that the files of this folder are to be trusted"
            )
            assert not (tmp_path / "mcp.log").exists()
            (await room.cell("%%agent\nagain", "Again.")).says("Again.")

            (await answered(room, TRUST, "%agent trust yes"))[0].says("Trusted, as it is now")
            run = [calls("shell", command="touch made.txt"), calls("shell", command="rm made.txt")]
            echo = calls("mcp__db__echo", what="x")
            (await room.cell("%%agent --new\n/careful make a file", *run, echo, "Done.")).says("Done.")
            assert [text.partition("\n")[0] for text in room.results()][1:] == [
                "Not allowed (hook: guard.sh: nothing is deleted here), so it did not run.",
                'echo {"what": "x"}',
            ]
            assert (folder / "made.txt").exists()
            assert (folder / "log.txt").read_text() == "ran\n"
            began = json.dumps(room.transcripts()[-1][0], ensure_ascii=False)
            assert "Look twice." in began and "ARGUMENTS: make a file" in began and "- checker: Checks files" in began

            task = calls("task", description="check", prompt="check it", agent="checker")
            await room.cell("%%agent\nhave it checked", task, "It is fine.", "Checked.")
            child = server.requests[-2].body
            assert "You check." in json.dumps(child["system"])
            assert "read_file" in tools(child) and not {"shell", "write_file", "run_python", "add_cell"} & tools(child)

            await room.cell("%agent /check prices.csv", "It is good.")
            assert "Check prices.csv. Branch: main" in sent(server)
            await room.cell("%agent /mcp__db__greet Ann", "Hello, Ann.")
            assert "The person called /mcp__db__greet Ann." in sent(server) and "Ann" in sent(server)

            (folder / ".claude/hooks/guard.sh").write_text("exit 0")
            _, question = await answered(room, NOT_NOW, "%%agent\nand now", "Fine.")
            assert "Changed or new in files that you said yes to" in question and "guard.sh" in question
            assert "touch" not in question
        server.assert_clean()
