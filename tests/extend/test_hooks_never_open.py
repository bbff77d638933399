"""A hook never opens a gate by a fault, its own or the model's: inputs and answers of a wrong kind, and a subagent's own hooks."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.agents import AgentSpec
from nbagent.core.events import AgentReported, ApprovalAsked, CallEnded, Status
from nbagent.core.hooks import Began, Finished, Verdict
from nbagent.core.payloads import PreToolUse, Where
from nbagent.core.ports import Answered
from nbagent.extend.hooks import HookTable
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.hooks_run import Runners
from nbagent.extend.hooks_settings import Source, read
from nbagent.models.scripted import call
from tests.core.rig import Person
from tests.core.test_subagents import Team, task

AGENT = Source("agent a", "agent")


def says(**fields):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def table_of(handler: dict, folder: Path, *, matcher: str = "", source: Source | None = None) -> HookTable:
    groups = {"PreToolUse": [{"matcher": matcher, "hooks": [handler]}]}
    return HookTable(Runners(folder), read(groups, source or Source("settings.json")).hooks)


async def fire(table: HookTable, tool: str, given: dict) -> tuple[Verdict, list[Began | Finished]]:
    news: list[Began | Finished] = []
    payload = PreToolUse(tool_name=tool, tool_input=given, tool_use_id="c1")
    return await table.fire(payload, Where("s1", "/t.jsonl", "/w"), news.append), news


@pytest.mark.parametrize("updated", [{"limit": "x", "offset": True}, {"offset": [], "limit": {}}, {"file_path": 7}])
async def test_an_input_of_a_wrong_kind_from_a_hook_is_asked_about_and_ends_no_run(tmp_path, updated):
    answer = {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": updated}
    }
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer))
    table = table_of({"type": "command", "command": f"cat {path}"}, tmp_path, matcher="Read")
    verdict, _ = await fire(table, "read_file", {"path": "a.txt"})
    assert verdict.decision in {"ask", "allow"}
    assert verdict.decision == "ask" or verdict.updated_input is not None, "what is allowed is validated like any input"


@pytest.mark.parametrize(
    ("tool", "given"), [("edit_file", {"path": ""}), ("shell", {"command": "ls", "timeout": math.nan}), ("grep", {"pattern": 3})]
)  # fmt: skip
@pytest.mark.parametrize("rule", ["", "Edit(src/**)", "Bash(git *)"])
async def test_an_input_of_the_model_that_no_rule_is_about_is_no_way_past_a_guard_and_ends_no_run(
    tmp_path, tool, given, rule
):
    table = table_of({"type": "command", "command": "exit 2", "if": rule}, tmp_path)
    verdict, news = await fire(table, tool, given)
    assert verdict.decision in {"deny", "ask"} or (rule and not news), (
        "denied, asked about, or plainly not its business"
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=True) | st.sampled_from(["", "allow", "x", "\0"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(
        ["hookEventName", "permissionDecision", "updatedInput", "behavior", "decision", "file_path", "limit", "offset"]
    ), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60)
@given(answer=_JSON, special=_JSON)
async def test_no_nonsense_of_a_hook_is_a_yes(answer, special):
    def guard(_):
        return {**answer, "hookSpecificOutput": special} if isinstance(answer, dict) else answer

    table = HookTable(Runners(Path()), [hook_of(guard, "PreToolUse", match="*")])
    verdict, _ = await fire(table, "read_file", {"path": "a"})
    meant = isinstance(special, dict) and special.get("permissionDecision") == "allow"
    assert verdict.decision != "allow" or meant


async def test_a_subagent_s_own_hook_may_narrow_but_allows_nothing_that_its_parent_would_be_asked_about(tmp_path):
    def table(**fields) -> HookTable:
        path = tmp_path / "answer.json"
        path.write_text(json.dumps(says(**fields)))
        handler = {"type": "command", "command": f"cat {path}"}
        return HookTable(Runners(tmp_path)).within(table_of(handler, tmp_path, matcher="change", source=AGENT).hooks)

    async def played(hooks: HookTable, person: Person):
        spec = AgentSpec("general-purpose", "d")
        team = Team([[call("change", what="a")], "ok"], specs={"general-purpose": spec})
        return await team.play(task("x"), "done", hooks=hooks, person=person), team

    ran, team = await played(table(permissionDecision="allow"), Person(Answered(False, words="no")))
    nested = [e.event for e in ran.of(AgentReported)]
    assert [e.call_id for e in nested if isinstance(e, ApprovalAsked)], "the person is asked as for a call of the run"
    assert team.ran == []
    ran, team = await played(table(permissionDecision="deny"), Person())
    nested = [e.event for e in ran.of(AgentReported)]
    assert [e.status for e in nested if isinstance(e, CallEnded) and e.name == "change"] == [Status.DENIED]
