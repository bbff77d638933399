"""Kinds of subagents in files: all fields, which counts for a name, and what waits for trust."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbagent.core.agents import AgentSpec
from nbagent.extend.agentfiles import load_agents, notes_folder
from tests.extend.project_rig import Rig


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


def agent(name="a", body="You help.", **head):
    lines = "".join(f"{key}: {value}\n" for key, value in {"name": name, "description": "Helps", **head}.items())
    return f"---\n{lines}---\n{body}\n"


def load(rig, trust=None):
    return load_agents(rig.places, trust or rig.trust())


def test_all_fields_are_read(rig):
    rig.write(
        "~/.claude/agents/full.md",
        """---
name: full
description: Use it: always
tools: Read, Grep, Bash(git log *)
disallowedTools: [Write]
model: sonnet
permissionMode: plan
maxTurns: 7
skills: [a, b]
mcpServers:
  - github
  - local:
      command: srv
      args: [x]
hooks:
  Stop:
    - hooks: [{type: command, command: ./end.sh}]
memory: project
background: true
effort: high
isolation: worktree
color: blue
initialPrompt: Begin.
omitClaudeMd: true
---
You are full.""",
    )
    assert load(rig).specs["full"] == AgentSpec(
        "full", "Use it: always", "You are full.", tools=("Read", "Grep", "Bash(git log *)"), disallowed_tools=("Write",),
        model="sonnet", permission_mode="plan", max_turns=7, skills=("a", "b"),
        mcp_servers={"github": None, "local": {"command": "srv", "args": ["x"]}},
        hooks={"SubagentStop": ({"hooks": [{"type": "command", "command": "./end.sh"}]},)},
        memory="project", background=True, effort="high", isolation="worktree", color="blue", initial_prompt="Begin.",
        with_instructions=False, source="user",
    )  # fmt: skip


def test_without_tools_it_has_its_parents(rig):
    rig.write("~/.claude/agents/a.md", agent(model="inherit"))
    rig.write("~/.claude/agents/b.md", agent("b", tools="'*'"))
    specs = load(rig).specs
    assert (specs["a"].tools, specs["a"].model, specs["b"].tools) == (None, "", None)


def test_the_nearest_projects_counts_then_those_above_then_the_persons(rig):
    for path in (
        "work/.nbagent/agents/x.md",
        "work/.claude/agents/x.md",
        ".claude/agents/deep/x.md",
        "~/config/agents/x.md",
        "~/.claude/agents/x.md",
    ):
        rig.write(path, agent(body=path))
    found = load(rig)
    assert found.specs["a"].prompt == "work/.nbagent/agents/x.md"
    assert len(found.problems) == 4
    assert all("work/.nbagent/agents/x.md has the same name" in problem for problem in found.problems)


def test_the_administrators_counts_before_all(rig, tmp_path):
    rig.write(".claude/agents/x.md", agent(body="project"))
    (tmp_path / "etc/.claude/agents").mkdir(parents=True)
    (tmp_path / "etc/.claude/agents/x.md").write_text(agent(body="administrator", tools="Read"))
    places = replace(rig.places, managed=tmp_path / "etc")
    assert load_agents(places, rig.trust()).specs["a"].prompt == "administrator"


def test_a_projects_agent_that_names_tools_or_a_mode_is_not_there_until_trusted(rig):
    """Row 110: what widens waits for trust in its content."""
    rig.write(".claude/agents/plain.md", agent("plain"))
    rig.write(".claude/agents/tools.md", agent("tools", tools="Bash"))
    rig.write(".claude/agents/mode.md", agent("mode", permissionMode="bypassPermissions"))
    trust = rig.trust()
    found = load(rig, trust)
    assert list(found.specs) == ["plain"]
    assert {power.name: power.does for power in found.powers} == {
        "tools": "may use Bash",
        "mode": "works in the mode bypassPermissions",
    }
    trust.answer(found.powers, yes=True)
    assert set(load(rig, trust).specs) == {"plain", "tools", "mode"}
    rig.write(".claude/agents/tools.md", agent("tools", tools="Bash, Write"))
    assert set(load(rig, trust).specs) == {"plain", "mode"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"---\nname: x\n---\nno description", "needs a name"),
        (b"---\nname: ../x\ndescription: d\n---\n", "needs a name"),
        (b"---\nname: 'x\n---\n", "not YAML"),
        (b"---\nname: x\ndescription: d\n", "no second ---"),
        (b"\x00", "not a text file"),
        (b"---\nname: x\ndescription: d\nhooks: [x]\n---\n", "hooks is not a list"),
    ],
)
def test_a_file_that_is_no_agent_is_one_sentence(rig, content, said):
    rig.write(".claude/agents/x.md", content)
    found = load(rig)
    assert found.specs == {}
    (problem,) = found.problems
    assert said in problem
    assert ".claude/agents/x.md" in problem


def test_a_readme_beside_agents_is_no_mistake(rig):
    rig.write(".claude/agents/README.md", "About these")
    assert load(rig).problems == ()


def test_a_wrong_field_is_left_out_and_named(rig):
    rig.write("~/.claude/agents/a.md", agent(maxTurns="many", permissionMode="free", memory="all", mcpServers="[[1]]"))
    found = load(rig)
    assert found.specs["a"] == AgentSpec("a", "Helps", "You help.", source="user")
    assert len(found.problems) == 4


def test_each_kind_keeps_its_notes_in_a_folder_of_its_own(rig):
    places = rig.places
    assert notes_folder(places, AgentSpec("a", "d")) is None
    assert notes_folder(places, AgentSpec("a", "d", memory="user")) == places.own / "agent-memory/a/memories"
    assert (
        notes_folder(places, AgentSpec("a", "d", memory="local"))
        == places.root / ".nbagent/agent-memory-local/a/memories"
    )
    assert notes_folder(places, AgentSpec("../a", "d", memory="project")) is None
