"""Seed “master loop”: the eleven native capabilities, each in a whole run of the product."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

from nbagent.app.extension import Extension
from nbagent.core.agents import AgentSpec
from tests.extend.mcp_rig import SCRIPT
from tests.seeds.product import Product
from tests.source import ROOT
from tests.support.turns import until

pytestmark = pytest.mark.slow


@pytest.fixture
def product(shell, tmp_path, monkeypatch) -> Product:
    home, folder = tmp_path / "home", tmp_path / "home" / "work"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("NBAGENT_MODE", "bypass")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return Product(shell, home, folder, Extension(shell))


def hook(event: str, command: str, matcher: str = "") -> dict:
    return {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}


async def test_1_event_hooks_bash_scripts_on_tool_execution_prompts_and_notification(product):
    guard = product.write("~/guard.sh", "grep -q 'rm a.txt' && { echo 'not that one' >&2; exit 2; }; exit 0\n")
    after = f"cat >> {product.folder}/after.log"
    settings = {"hooks": hook("PreToolUse", f"bash {guard}", "Bash") | hook("PostToolUse", after, "Bash")
                | hook("UserPromptSubmit", "echo the branch is main") | hook("Notification", "true")}  # fmt: skip
    product.write("~/.claude/settings.json", settings)
    product.write("a.txt", "keep me")
    await product.cell("removes")
    assert (product.folder / "a.txt").exists() and (product.folder / "b.txt").exists()
    assert "not that one" in product.results()[0]
    assert "the branch is main" in product.told()
    said = [json.loads(line) for line in (product.folder / "after.log").read_text().split("\n") if line]
    assert [(one["hook_event_name"], one["tool_name"]) for one in said] == [("PostToolUse", "Bash")]
    assert "Notification" in await product.line("hooks")


async def test_1_hooks_of_a_project_wait_for_trust_and_guard_after_it(product):
    product.write(".claude/settings.json", {"hooks": hook("PreToolUse", "exit 2", "Bash")})
    await product.cell("removes")
    assert (product.folder / "b.txt").exists()
    (product.folder / "b.txt").unlink()
    product.trusts()
    product.extension = Extension(product.shell)
    await product.cell("removes")
    assert not (product.folder / "b.txt").exists()


SKILL = """---
name: careful
description: Careful work.
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: echo 'not while careful' >&2; exit 2
---
Be careful.
"""


async def test_2_skill_scoped_hooks_count_from_the_skills_invocation_to_the_end_of_the_session(product):
    product.write(".claude/skills/careful/SKILL.md", SKILL)
    product.trusts()
    await product.cell("careful")
    first, loaded, second = product.results()[:3]
    assert (product.folder / "a.txt").exists() and "not while careful" not in first
    assert "Be careful." in loaded
    assert not (product.folder / "b.txt").exists() and "not while careful" in second
    await product.cell("removes")
    assert "not while careful" in product.results()[-1], "the session goes on, and the hook with it"
    await product.cell("removes", options="--new")
    assert "not while careful" not in product.results()[-1], "a new session has not invoked it"


async def test_2_a_command_of_a_skill_s_text_passes_the_event_hooks_as_any_call_does(product):
    guard = product.write("~/guard.sh", "grep -q 'rm a.txt' && { echo 'not that one' >&2; exit 2; }; exit 0\n")
    product.write("~/.claude/settings.json", {"hooks": hook("PreToolUse", f"bash {guard}", "Bash")})
    product.write(
        "~/.claude/skills/cleaner/SKILL.md", "---\nname: cleaner\ndescription: Cleans.\n---\nGone: !`rm a.txt`\n"
    )
    product.write("a.txt", "keep me")
    await product.cell("cleans")
    assert (product.folder / "a.txt").exists()
    assert "not that one" in product.results()[0]


async def test_4_explore_subagent_is_read_only_codebase_exploration(product):
    await product.line("explore quick -m scripted:tests.seeds.scripts:writes what is there?")
    assert not list(product.folder.glob("*.txt"))
    (log,) = product.folder.glob(".nbagent/sessions/*/agents/*.jsonl")
    texts = log.read_text()
    assert "There is no tool 'write_file'" in texts and "list_variables" in texts


async def test_5_plan_subagent_read_only_planning_mode(product):
    await product.line("plan -m scripted:tests.seeds.scripts:plans write a file")
    refused, denied = product.results()[:2]
    assert "Nobody is there" in refused, "only a person agrees to a plan"
    assert "mode plan does not allow this" in denied
    assert not (product.folder / "made.txt").exists()
    assert "Plan  (built-in; only looks" in await product.line("agents")


async def test_6_task_tool_hands_tasks_to_agents_in_parallel_depth_1(product):
    product.extension.agents["worker"] = AgentSpec("worker", "works", model="scripted:tests.seeds.scripts:works")
    answer = await product.cell("delegates")
    assert [f"number {n}" in answer.text for n in range(3)] == [True] * 3
    logs = [path.read_text() for path in product.folder.glob(".nbagent/sessions/*/agents/*.jsonl")]
    assert len(logs) == 3
    assert all("There is no tool 'task'" in text for text in logs), "depth 1"


async def test_8_per_task_model_selection_switches_in_mid_session(product):
    first = await product.cell("small")
    assert "large" in await product.line("model scripted:tests.seeds.scripts:large")
    from nbagent.app.cell import run_agent_cell

    second = await run_agent_cell(product.extension, "", "and now?")
    assert (first.text, second.text) == ("small", "large, after 3 messages")
    assert first.session_id == second.session_id


async def test_8_opus_sonnet_and_haiku_are_names_of_models(product):
    for name in ("opus", "sonnet", "haiku"):
        assert f"claude-{name}" in await product.line(f"model {name}")


async def test_9_mcp_servers_extend_the_tools_with_claude_codes_names(product):
    product.write("~/.claude.json", {"mcpServers": {"s": {"command": sys.executable, "args": [str(SCRIPT)]}}})
    try:
        await product.cell("echoes")
        assert product.results()[0].startswith('echo {"what": "hello"}')
        assert "connected" in await product.line("mcp")
    finally:
        await product.extension.mcp.close()


MADE = {
    "default": set(),
    "accept-edits": {"made.txt"},
    "plan": set(),
    "bypass": {"made.txt", "shell.txt"},
}  # fmt: skip


@pytest.mark.parametrize("mode", MADE)
async def test_10_permission_modes_default_auto_accept_plan_and_bypass(product, mode, monkeypatch):
    monkeypatch.setenv("NBAGENT_MODE", mode)
    await product.cell("writes")
    assert {path.name for path in product.folder.glob("*.txt")} == MADE[mode]
    assert "mode" not in product.results()[3], "looking is allowed in all of them"


async def test_10_custom_rules_beat_the_mode(product):
    product.write("~/.claude/settings.json", {"permissions": {"deny": ["Edit(made.txt)", "Bash(echo *)"]}})
    await product.cell("writes")
    assert not list(product.folder.glob("*.txt"))
    assert "deny Edit(made.txt)" in product.results()[0]


async def test_11_session_memory_claude_md_memory_files_and_project_state(product):
    product.git("init", "-q", "-b", "quarterly")
    product.write("CLAUDE.md", "Use British spelling. @more.md")
    product.write("more.md", "Round to two places.")
    product.write("sales.csv", "a,b\n1,2\n")
    await product.cell("remembers")
    told = product.told()
    assert "Use British spelling." in told and "Round to two places." in told
    assert "quarterly" in told and "sales.csv" in told
    product.extension = Extension(product.shell)  # another kernel, another day
    await product.cell("hears", options="--new")
    assert "The fiscal year begins in April." in product.told()


async def test_11_a_session_goes_on_after_a_restart_of_the_kernel(product):
    first = await product.cell("small")
    product.extension = Extension(product.shell)
    second = await product.cell("large", options=f"--session {first.session_id}")
    assert second.session_id == first.session_id
    assert second.text == "large, after 3 messages"


async def test_3_background_agents_execute_long_work_while_the_conversation_goes_on(product):
    product.extension.agents["tester"] = AgentSpec(
        "tester", "runs tests", model="scripted:tests.seeds.scripts:long_work"
    )
    os.mkfifo(product.folder / "suite")  # a test suite that takes as long as the person wants
    cell = asyncio.create_task(product.cell("hands_over"))  # in a terminal it lasts as long as its agents do
    await until(lambda: product.extension.last is not None and "I go on" in str(product.messages()[-1:]))
    (agent,) = product.extension.underway.background
    assert agent.agent == "tester" and agent.id in await product.line("agents"), "it still runs, and the turn is over"
    await asyncio.to_thread((product.folder / "suite").write_text, "12 passed")
    assert (await cell).stop_reason == "end_turn"
    await product.cell("hears")
    assert "12 passed" in product.told(), "the result is told at the next turn"


async def test_7_agent_teams_coordinate_in_parallel_on_a_shared_list(product):
    product.write("data/penguins.csv", (ROOT / "notebooks" / "data" / "penguins.csv").read_text("utf-8"))
    for words in (
        ["init", "-q"],
        ["add", "data"],
        ["-c", "user.name=you", "-c", "user.email=you@example.org", "commit", "-qm", "data"],
    ):
        product.git(*words)
    scripts = "-m scripted:nbagent.teach.many:leads --teammate-model scripted:nbagent.teach.many:describes"
    await product.line(f'team "Describe the columns" --workers 2 --mode accept-edits {scripts}')
    state = await product.line("team")
    assert "3 completed" in state and "accept takes what was merged" in state
    log = await product.line("team log")
    assert "by ada" in log and "by ben" in log, "two of them, side by side"
    assert not list(product.folder.glob("*.md")), "the person's files are theirs until they accept"
