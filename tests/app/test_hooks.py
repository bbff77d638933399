"""Hooks of a kernel: one table for each session, sessions that begin and end, and what `%agent hooks` says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nbagent.app.conversation import Conversation
from nbagent.app.hooks import KernelHooks
from nbagent.app.mcp import servers_of
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted
from nbagent.core.hooks import Verdict
from nbagent.core.limits import Limits
from nbagent.core.messages import Usage, text_block
from nbagent.core.payloads import HookEvent, PreToolUse
from nbagent.core.policy import Mode, Policy
from nbagent.core.run import Agent
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Toolset
from nbagent.extend.hooks import HookTable
from nbagent.extend.hooks_cells import WatchedNotebook
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.places import Places
from nbagent.extend.survey import survey
from nbagent.extend.trust import Trust
from nbagent.headless.memory import MemoryNotebook
from nbagent.models.scripted import ScriptedModel, Turn, say
from tests.core.rig import Person
from tests.tools.desk import raw


class Kernel:
    """A kernel's hooks in a new project, and runs of sessions in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.project = tmp_path / "home" / "work"
        self.project.mkdir(parents=True)
        home = tmp_path / "home"
        self.places = Places.of(self.project, {}, home=home, own=home / "config")
        self.hooks = KernelHooks(lambda: self.places)
        self.shown: list[str] = []
        self.ended = tmp_path / "ended"

    def write(self, path: Path, **events: list[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        table = {
            name: [{"hooks": [{"type": "command", "command": c} for c in commands]}]
            for name, commands in events.items()
        }
        path.write_text(json.dumps({"hooks": table}))

    def mine(self, **events: list[str]) -> None:
        self.write(self.places.claude / "settings.json", **events)

    def its(self, **events: list[str]) -> None:
        self.write(self.project / ".claude" / "settings.json", **events)

    async def run(
        self, session: Session, *, new: bool = False, notebook: Any = None, model: ScriptedModel | None = None
    ) -> Agent:
        watched = self.hooks.watch(notebook, self._show)
        agent = Agent(model or ScriptedModel([]), Toolset(), Policy(), Person(), Limits(), notebook=lambda: "a.ipynb")
        return await self.hooks.hooked(
            agent, session, transcript=Path("/t.jsonl"), document="doc", notebook=watched, new=new, named=self._named
        )

    def _named(self, name: str) -> ScriptedModel:
        self.shown.append(f"opened {name}")
        return ScriptedModel(['{"ok": true}'])

    def _show(self, event: Any) -> None:
        assert isinstance(event, Noted)
        self.shown.append(event.text)


@pytest.fixture
def kernel(tmp_path):
    made = Kernel(tmp_path)
    yield made
    made.ended.unlink(missing_ok=True)
    made.hooks.end_now()


def session(name: str) -> Session:
    return Session(name, system="", tools=(), store=NoStore())


async def ask(agent: Agent, tool: str = "shell") -> Verdict:
    return await agent.hooks.fire(PreToolUse(tool_name=tool, tool_input={"command": "ls"}), agent.where, lambda _: None)


async def test_a_session_begins_once_and_another_one_ends_it_with_the_reason(kernel):
    kernel.mine(SessionEnd=[f"cat >> '{kernel.ended}'"])
    first, second = session("s1"), session("s2")
    assert (await kernel.run(first)).begins == "startup"
    assert (await kernel.run(first)).begins == ""
    assert (await kernel.run(second, new=True)).begins == "clear"
    said = json.loads(kernel.ended.read_text())
    assert (said["session_id"], said["reason"], said["transcript_path"]) == ("s1", "clear", "/t.jsonl")


async def test_a_session_that_goes_on_from_another_one_begins_as_a_fork(kernel):
    forked = session("s2")
    forked.transcript.ask([text_block("before")])
    assert (await kernel.run(forked)).begins == "fork"


async def test_when_the_kernel_ends_session_end_hooks_run_once(kernel):
    kernel.mine(SessionEnd=[f"cat >> '{kernel.ended}'"])
    await kernel.run(session("s1"))
    kernel.hooks.end_now()
    kernel.hooks.end_now()
    assert json.loads(kernel.ended.read_text())["reason"] == "other"


async def test_settings_are_read_anew_at_each_run_and_hooks_of_code_stay(kernel):
    def guard(said: dict) -> dict:
        return {"systemMessage": said["tool_name"]}

    kernel.hooks.register(hook_of(guard, "PreToolUse", match="sh*"))
    one = session("s1")
    agent = await kernel.run(one)
    assert (await ask(agent)).messages == ("guard: shell",)
    kernel.mine(PreToolUse=["exit 2"])
    agent = await kernel.run(one)
    verdict = await ask(agent)
    assert (verdict.decision, verdict.messages) == ("deny", ("guard: shell",))
    kernel.hooks.unregister(guard)
    assert (await ask(agent)).messages == ()


async def test_a_hook_made_while_a_session_goes_on_counts_in_it_and_once_is_once_per_session(kernel):
    agent = await kernel.run(session("s1"))

    def guard(said: dict) -> dict:
        return {"systemMessage": "x"}

    kernel.hooks.register(hook_of(guard, "PreToolUse", once=True))
    assert [(await ask(agent)).messages for _ in range(2)] == [("guard: x",), ()]
    agent = await kernel.run(session("s1"))
    assert (await ask(agent)).messages == ()
    other = await kernel.run(session("s2"), new=True)
    assert (await ask(other)).messages == ("guard: x",)


async def test_hooks_of_a_project_wait_for_trust(kernel):
    """Row 110."""
    kernel.its(PreToolUse=["exit 2"])
    one = session("s1")
    assert (await ask(await kernel.run(one))).decision == ""
    await kernel.run(one)
    assert kernel.shown == []  # the one question about trust names them
    trust = Trust(kernel.places.root, kernel.places.own / "trust")
    trust.answer(survey(kernel.places).powers, yes=True)
    assert (await ask(await kernel.run(one))).decision == "deny"


async def test_a_run_does_not_begin_without_its_guards(kernel):
    kernel.places.claude.mkdir(parents=True)
    (kernel.places.claude / "settings.json").write_text("{")
    with pytest.raises(ConfigError, match="is no JSON"):
        await kernel.run(session("s1"))


async def test_the_notebook_is_watched_only_if_a_hook_wants_to_know_of_cells(kernel):
    book = MemoryNotebook()
    assert kernel.hooks.watch(book, lambda _: None) is book
    kernel.hooks.register(hook_of(lambda said: None, "CellRun"))
    agent = await kernel.run(session("s1"), notebook=book)
    assert isinstance(kernel.hooks.watch(book, lambda _: None), WatchedNotebook)
    assert agent.deeds() == ()


async def test_a_skill_finds_the_table_of_its_session(kernel):
    assert kernel.hooks.table("s1") is None
    agent = await kernel.run(session("s1"))
    assert kernel.hooks.table("s1") is agent.hooks
    assert isinstance(agent.hooks, HookTable)
    assert not agent.hooks.listens(HookEvent.STOP)


def test_agent_hooks_lists_them_with_what_is_wrong_and_what_waits(kernel):
    assert kernel.hooks.describe().startswith("There are no hooks.")
    kernel.mine(PreToolUse=["~/guard.sh"], Stop=[""])
    kernel.its(PostToolUse=["format.sh"])
    kernel.hooks.register(hook_of(os.path.exists, "CellRun", match="run_*"))
    said = kernel.hooks.describe().splitlines()
    assert said[0] == "PreToolUse  [command] guard.sh  from ~/.claude/settings.json"
    assert "(can't run: a hook of type command needs 'command')" in said[1]
    assert said[2].startswith("CellRun run_*  [python]")
    assert said[-1].endswith("(%agent trust): 1 hook in .claude/settings.json.")


async def test_a_prompt_hook_asks_the_model_that_it_names_or_the_run_s_own_and_its_tokens_count(kernel):
    def guard(**more: str) -> None:
        handler = {"type": "prompt", "prompt": "Fine? $ARGUMENTS", **more}
        path = kernel.places.claude / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [handler]}]}}))

    guard(model="haiku")
    assert (await ask(await kernel.run(session("s1")))).reason == ""
    assert kernel.shown == ["opened haiku"]
    guard()
    one = session("s2")
    model = ScriptedModel([Turn(say('No: {"ok": false, "reason": "not this"}'), usage=Usage(7, 3))])
    verdict = await ask(await kernel.run(one, model=model))
    assert (verdict.decision, verdict.reason.rpartition(": ")[2]) == ("deny", "not this")
    assert '"command": "ls"' in str(model.last_request and model.last_request.messages)
    assert one.usage == Usage(7, 3)
    guard(model="scripted:os:path")
    assert "is a script" in (await ask(await kernel.run(session("s3")))).reason


async def test_an_mcp_hook_needs_a_server_that_is_connected(kernel):
    path = kernel.places.claude / "settings.json"
    path.parent.mkdir(parents=True)
    handler = {"type": "mcp_tool", "server": "scan", "tool": "check"}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [handler]}]}}))
    assert "no MCP server" in (await ask(await kernel.run(session("s1")))).reason
    servers = servers_of(kernel.project)
    kernel.hooks = KernelHooks(lambda: kernel.places, lambda: servers)
    assert "'scan' is not connected" in (await ask(await kernel.run(session("s1")))).reason


async def test_what_went_with_a_prompt_that_a_hook_held_back_is_told_with_the_next_one(tmp_path):
    conversation = Conversation.begin(Settings(), lambda _: [], tmp_path, "a.ipynb")
    book = MemoryNotebook([raw("c1", "df = load()", number=1)])
    untold = conversation.telling()
    first = await conversation.opening("go", book, Mode.PLAN)
    untold()
    assert await conversation.opening("go", book, Mode.PLAN) == first
    again = await conversation.opening("go", book, Mode.PLAN)
    assert again == [text_block("go")]
