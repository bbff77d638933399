"""Subagents and plan mode in a shell: files, sessions, models, what is told, and the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbagent.app.agents import Subagents, explore, listed, planned, specs_of
from nbagent.app.cell import run_agent_cell
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.place import Place, View
from nbagent.app.skills import listed as skills_listed
from nbagent.config import Settings
from nbagent.core.agents import AgentSpec, Child
from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.events import CallEnded, Event, Reason, RunEnded, State
from nbagent.core.loop import run
from nbagent.core.messages import text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent
from nbagent.core.tools import Call, Toolset
from nbagent.extend.agentfiles import notes_folder
from nbagent.extend.places import Places
from nbagent.extend.render import Invocation
from nbagent.headless.memory import MemoryNotebook
from nbagent.models import open_model
from nbagent.models.catalog import at_most
from nbagent.models.scripted import ScriptedModel, call
from nbagent.tools import notebook as notebook_tools
from nbagent.tools.plan import EDITS
from nbagent.tools.task import asked_for
from tests.core.rig import Person
from tests.support.turns import at_once
from tests.tools.desk import EchoKernel

SCRIPTS = "-m scripted:tests.app.agent_scripts"


@pytest.fixture
def extension(shell, at_home, monkeypatch) -> Extension:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CLAUDE_CODE_SUBAGENT_MODEL", raising=False)
    shell.user_ns["x"] = 1
    return Extension(shell)


def agent_file(folder: Path, name: str, head: str = "", body: str = "Be short.") -> None:
    path = folder / ".claude" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: about {name}\n{head}---\n{body}\n")


# ── a whole run ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_a_task_of_a_run_leaves_a_session_of_its_own_below_that_of_the_run(extension):
    answer = await run_agent_cell(extension, f"{SCRIPTS}:delegates", "what is x?")
    assert answer.text.startswith("told: x is 1")
    (path,) = extension.folder.glob(".nbagent/sessions/*/agents/*.jsonl")
    assert path.parent.parent.name == answer.session_id
    about, *records = [json.loads(line) for line in path.read_text().splitlines()]
    assert (about["agent"], about["parent"]) == ("Explore", answer.session_id)
    assert about["system"].startswith("You are a subagent")
    told = next(r["message"]["content"] for r in records if r["type"] == "message")
    assert f"The working folder is {extension.folder}." in told[0]["text"]
    names = {tool["name"] for tool in about["tools"]}
    assert {"list_variables", "grep", "read_result"} <= names
    assert not names & {"run_python", "shell", "write_file", "task", "exit_plan", "ask_user"}
    assert len(extension.conversations[""].session.transcript) == 4


@pytest.mark.slow
async def test_explore_answers_in_its_cell_and_the_conversation_hears_of_it_with_the_next_prompt(extension):
    await run_agent_cell(extension, f"{SCRIPTS}:repeats", "hello")
    before = extension.last
    await explore(extension, f"quick {SCRIPTS}:looks what is x?")
    assert extension.last is before
    extension.choose(model="scripted:tests.app.agent_scripts:repeats")
    answer = await run_agent_cell(extension, "", "and now?")
    assert "An Explore subagent answered:\\nx is 1" in answer.text
    assert extension.errands == []


@pytest.mark.slow
async def test_explore_changes_nothing_in_any_mode(extension, monkeypatch):
    monkeypatch.setenv("NBAGENT_MODE", "bypass")
    await explore(extension, f"{SCRIPTS}:changes clean up")
    assert not (extension.folder / "a.txt").exists()
    assert extension.shell.user_ns["x"] == 1


async def test_explore_and_plan_without_words_say_how_they_are_used(extension):
    for command in (explore, planned):
        with pytest.raises(ConfigError, match="%agent "):
            await command(extension, " ")


@pytest.mark.parametrize(
    ("words", "split"),
    [
        ("quick where is x", ("quick", "where is x")),
        ("Very thorough: where is x", ("very thorough", "where is x")),
        ("quickly find x", ("medium", "quickly find x")),
        ("medium", ("medium", "")),
    ],
)
def test_how_thorough_is_what_the_words_begin_with(words, split):
    assert asked_for(words) == split


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_kinds_from_files_are_told_once_and_listed(extension):
    agent_file(extension.folder.parent, "reviewer")
    extension.choose(model="scripted:tests.app.agent_scripts:repeats")
    answer = await run_agent_cell(extension, "", "hello")
    assert "- reviewer: about reviewer" in answer.text
    await run_agent_cell(extension, "", "again")
    said = [str(message["content"]) for message in extension.last.session.transcript if message["role"] == "user"]
    assert ["about reviewer" in text for text in said] == [True, False]
    assert "reviewer  (user; all tools; the run's model)" in listed(extension)


def test_a_long_description_in_a_list_says_that_it_goes_on(extension):
    said = [*listed(extension).splitlines(), *skills_listed(extension).splitlines()]
    about = [line for line in said if line.startswith("    ")]
    assert len(about) > 5
    assert [line for line in about if line[-1] not in ".…"] == []


def test_a_projects_kind_that_names_tools_is_not_there_before_trust(extension):
    agent_file(extension.folder, "plain")
    agent_file(extension.folder, "armed", "tools: Bash\n")
    assert "plain" in specs_of(extension)
    assert "armed" not in specs_of(extension)
    assert "! The agent armed" in listed(extension)


def test_a_kind_from_code_comes_before_one_from_a_file(extension):
    agent_file(extension.folder.parent, "reviewer")
    extension.agents["reviewer"] = AgentSpec("reviewer", "mine")
    assert specs_of(extension)["reviewer"].description == "mine"


def test_a_kind_with_the_name_of_one_that_only_looks_only_looks(extension):
    agent_file(extension.folder, "Explore")
    extension.agents["Plan"] = AgentSpec("Plan", "mine")
    found = specs_of(extension)
    assert found["Explore"].prompt == "Be short."
    assert found["Explore"].only_looks
    assert found["Plan"].only_looks


def test_agent_spec_is_public_and_can_be_made_with_two_words():
    import nbagent

    assert nbagent.AgentSpec("reviewer", "reads cells").source == "code"


# ── what a subagent is made of ───────────────────────────────────────────────────────────────────────────────────────


class Shown(View):
    def __init__(self) -> None:
        self.events: list[Event] = []

    def show(self, event: Event) -> None:
        self.events.append(event)


async def nothing(_: int) -> None:
    pass


class Desk:
    """Subagents at work by hand: a notebook in memory and a person with written answers."""

    def __init__(self, extension: Extension, *turns, mode: Mode = Mode.DEFAULT, person: Person | None = None) -> None:
        self.notebook = MemoryNotebook()
        self.settings = Settings(mode=mode)
        self.person = person or Person()
        place = Place(Shown(), self.person, self.notebook, nothing)
        self.subagents = Subagents(extension, self.settings, place, stands_in=False)
        made = notebook_tools.tools(self.notebook, EchoKernel(), timeout=None)
        tools = Toolset([*made, *self.subagents.tools])
        self.conversation = Conversation.begin(
            self.settings, lambda _: list(tools.values()), extension.folder, "a.ipynb"
        )
        self.gate = Policy(mode)
        agent = Agent(ScriptedModel(turns), tools, self.gate, self.person)
        self.agent = self.subagents.join(agent, self.gate, self.conversation, tools.values)

    async def run(self) -> list[Event]:
        return [e async for e in run(self.agent, self.conversation.session, [text_block("go")], prompt="go")]


async def test_an_agreed_plan_stands_in_the_notebook_as_a_cell_and_the_work_below_it(extension):
    desk = Desk(
        extension, [call("exit_plan", plan="# Plan\n1. add a cell")], [call("add_cell", source="y = 1")], "done",
        mode=Mode.PLAN, person=Person(True, True, replies=[EDITS]),
    )  # fmt: skip
    extension.choose(mode="plan")
    events = await desk.run()
    assert [str(e.status) for e in events if isinstance(e, CallEnded)] == ["ok", "ok"]
    cells = await desk.notebook.cells()
    place = [cell.source for cell in cells].index("# Plan\n1. add a cell")
    assert (cells[place].type, cells[place + 1].source) == ("markdown", "y = 1")
    assert desk.conversation.told_mode is Mode.ACCEPT_EDITS
    assert extension.chosen["mode"] == "accept-edits"


def test_plan_mode_is_explained_where_a_run_begins_in_it(extension):
    desk = Desk(extension, mode=Mode.PLAN)
    assert any("exit_plan" in text for text in desk.subagents.news(desk.conversation))
    desk.conversation.told_mode = Mode.PLAN
    assert not any("exit_plan" in text for text in desk.subagents.news(desk.conversation))


EXPLORE = AgentSpec("Explore", "d", source="built-in")


@pytest.mark.parametrize(
    ("spec", "wanted", "everywhere", "model"),
    [
        (AgentSpec("a", "d"), "", "", "claude-fable-5-2"),
        (AgentSpec("a", "d", model="inherit"), "", "", "claude-fable-5-2"),
        (AgentSpec("a", "d", model="haiku"), "", "", "claude-haiku-5-5"),
        (AgentSpec("a", "d", model="haiku"), "sonnet", "", "claude-sonnet-5-5"),
        (AgentSpec("a", "d", model="haiku"), "sonnet", "opus", "claude-opus-5-5"),
        (EXPLORE, "", "", "claude-opus-5-5"),
        (EXPLORE, "haiku", "", "claude-haiku-5-5"),
    ],
)
async def test_the_model_is_the_environments_the_calls_the_kinds_or_the_parents(
    extension, monkeypatch, spec, wanted, everywhere, model
):
    monkeypatch.setenv("CLAUDE_CODE_SUBAGENT_MODEL", everywhere)
    assert Desk(extension).subagents._model(spec, wanted, open_model("fable")).name == model


async def test_a_call_can_name_neither_a_script_nor_a_model_that_there_is_not(extension):
    subagents = Desk(extension).subagents
    for name in ("scripted:os:getcwd", "sonet"):
        with pytest.raises(ConfigError):
            subagents._model(AgentSpec("a", "d"), name, open_model("opus"))


@pytest.mark.parametrize(("model", "less"), [("claude-fable-5-2", "opus"), ("claude-opus-5-5", ""), ("qwen3", "")])
def test_no_model_is_made_smaller_that_is_not_a_larger_claude(model, less):
    assert at_most(model, "opus") == less


async def test_a_subagent_is_told_the_notes_of_its_kind(extension):
    agent_file(extension.folder.parent, "reviewer", "memory: user\n")
    places = Places.of(extension.folder, {})
    spec = specs_of(extension)["reviewer"]
    folder = notes_folder(places, spec)
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- dates are US style\n")
    subagents = Desk(extension).subagents
    assert "dates are US style" in await subagents._told(spec)
    assert [tool.name for tool in subagents._tools(spec)][-2:] == ["remember", "recall"]


async def test_a_subagent_is_told_the_instructions_of_the_project_unless_its_kind_goes_without(extension):
    (extension.folder / "CLAUDE.md").write_text("Amounts are in cents.\n")
    subagents = Desk(extension).subagents
    assert "Amounts are in cents." in await subagents._told(AgentSpec("a", "d"))
    assert "Amounts are in cents." not in await subagents._told(specs_of(extension)["Explore"])


async def test_a_subagent_begins_with_the_skills_of_its_kind_and_runs_none_of_their_commands(extension):
    for name, body in (("units", "Use metres."), ("runs", "!`touch /tmp/never`")):
        path = extension.folder.parent / ".claude" / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\ndescription: d\n---\n{body}\n")
    told = await Desk(extension).subagents._told(AgentSpec("a", "d", skills=("units", "runs", "no-such")))
    assert "Use metres." in told
    assert "The skill runs can't be loaded" in told
    assert "The skill no-such can't be loaded" in told


async def test_a_skill_in_a_context_of_its_own_is_a_subagent_of_its_call(extension):
    agent_file(extension.folder.parent, "reviewer", "model: haiku\n")
    desk = Desk(extension)

    async def ended(child: Child) -> RunEnded:
        said = [block["text"] for block in child.blocks]
        text = f"{child.spec.name} {child.model.name} {child.title}: {said[-1].splitlines()[0]}"
        return RunEnded(state=State.DONE, turn=1, at=0.0, reason=Reason.END_TURN, sentence="", next_step="", text=text,
                        turns=1)  # fmt: skip

    one = Invocation("deploy", "do it", fork=True, agent="reviewer", model="opus")
    said = await desk.subagents.fork(one, Call("c", lambda _: None, at_once, spawn=ended))
    assert said.startswith("reviewer claude-opus-5-5 skill deploy: do it")


def test_what_of_a_kind_has_no_effect_here_is_said(extension):
    extension.agents["far"] = AgentSpec("far", "d", effort="high", mcp_servers={"s": {"command": "x"}})
    assert "not used here: mcpServers with a configuration, effort" in listed(extension)


async def test_a_kind_that_wants_a_copy_of_the_project_is_refused_rather_than_run_here(extension):
    extension.agents["copier"] = AgentSpec("copier", "d", isolation="worktree")
    subagents = Desk(extension).subagents
    tool = subagents.tools[0]
    with pytest.raises(ToolError, match="isolation"):
        await tool.run(Call("c", print, None), tool.validate({"description": "d", "prompt": "p", "agent": "copier"}))


def test_the_depth_of_subagents_is_a_setting(extension):
    extension.choose(agent_depth=2)
    assert extension.settings().agent_depth == 2
