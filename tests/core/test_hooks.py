"""What hooks say together, and what is decided of a call with it: pure folds."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core import payloads
from nbagent.core.hooks import NoHooks, Verdict, both, fold
from nbagent.core.payloads import GATES, HookEvent, Payload, PreToolUse, Where
from nbagent.core.policy import Decision, Mode, judged
from nbagent.core.tools import Kind

WORDS = st.sampled_from(["", "allow", "ask", "deny"])
TEXTS = st.lists(st.sampled_from("abc"), max_size=2).map(tuple)
VERDICTS = st.builds(
    Verdict, decision=WORDS, reasons=TEXTS, block=TEXTS, context=TEXTS, messages=TEXTS, stop=st.sampled_from(["", "x"]),
    failed=TEXTS, updated_input=st.sampled_from([None, {"a": 1}, {"a": 2}]), interrupt=st.booleans(),
    updated_output=st.sampled_from([None, ("out",), (None,)]), title=st.sampled_from(["", "t"]), opening=TEXTS,
)  # fmt: skip
RANK = {"": 0, "allow": 1, "ask": 2, "deny": 3}


@pytest.mark.slow
@given(st.lists(VERDICTS, max_size=5))
def test_deny_wins_over_ask_and_ask_over_allow_whatever_the_order(verdicts):
    strongest = max((v.decision for v in verdicts), key=RANK.__getitem__, default="")
    for order in itertools.islice(itertools.permutations(verdicts), 24):
        said = fold(order)
        assert said.decision == strongest
        assert sorted(said.reasons) == sorted(r for v in verdicts if v.decision == strongest for r in v.reasons)


@pytest.mark.slow
@given(VERDICTS, VERDICTS, VERDICTS)
def test_verdicts_fold_in_any_grouping_to_the_same_and_the_empty_one_changes_nothing(one, two, three):
    assert both(both(one, two), three) == both(one, both(two, three))
    assert both(Verdict(), one) == one == both(one, Verdict())


@pytest.mark.slow
@given(st.lists(VERDICTS, max_size=5))
def test_what_is_said_to_the_model_and_the_person_is_all_kept_and_one_block_is_enough(verdicts):
    said = fold(verdicts)
    assert said.context == tuple(text for v in verdicts for text in v.context)
    assert said.messages == tuple(text for v in verdicts for text in v.messages)
    assert bool(said.block) == any(v.block for v in verdicts)
    assert bool(said.stop) == any(v.stop for v in verdicts)
    assert said.interrupt == any(v.interrupt for v in verdicts)


DECISIONS = st.builds(
    Decision, st.sampled_from(["allow", "ask", "deny"]), st.just("rule: r"), st.sampled_from(list(Kind)), st.booleans()
)


@pytest.mark.slow
@given(DECISIONS, VERDICTS, VERDICTS, st.sampled_from(list(Mode)))
def test_the_order_is_hooks_then_deny_then_ask_then_mode_then_allow_then_the_person(decision, said, answered, mode):
    """Permission evaluation order 1–6: a hook's deny is final, its allow skips no deny rule and no ask rule."""
    action = judged(decision, said, answered, mode).action
    if said.decision == "deny" or (decision.action == "deny" and not decision.may_open):
        assert action == "deny"
    elif said.decision == "ask":
        assert action == "deny" if mode is Mode.DONT_ASK or answered.decision == "deny" else action == "ask"
    if action == "allow":
        opened = decision.may_open and "allow" in {said.decision, answered.decision}
        assert decision.action == "allow" or opened


@given(DECISIONS, st.sampled_from(list(Mode)))
def test_without_a_word_from_hooks_nothing_changes(decision, mode):
    assert judged(decision, Verdict(), Verdict(), mode) == decision


def kinds(of: type[Payload] = Payload) -> list[type[Payload]]:
    return [found for sub in of.__subclasses__() for found in (sub, *kinds(sub)) if "event" in vars(found)]


def test_every_event_has_one_payload_and_claude_s_names():
    assert {kind.event for kind in kinds()} == set(HookEvent)
    assert set(HookEvent) == {
        "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Notification", "SessionStart",
        "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PermissionRequest",
        "TaskCreated", "TaskCompleted", "TeammateIdle", "CellAdded", "CellEdited", "CellRun",
    }  # fmt: skip
    assert {event for event in HookEvent if event in GATES} <= set(HookEvent)


def test_a_payload_has_the_common_fields_and_its_own_and_leaves_out_what_is_not_known():
    where = Where("s1", "/t.jsonl", "/work", "plan", prompt_id="r1", agent_id="a7", agent_type="Explore", effort="high")
    said = PreToolUse(tool_name="shell", tool_input={"command": "ls"}, tool_use_id="c1").to_json(where)
    assert said == {
        "session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/work", "permission_mode": "plan",
        "prompt_id": "r1", "agent_id": "a7", "agent_type": "Explore", "effort": {"level": "high"},
        "hook_event_name": "PreToolUse", "tool_name": "shell", "tool_input": {"command": "ls"}, "tool_use_id": "c1",
    }  # fmt: skip
    assert set(payloads.SessionEnd(reason="clear").to_json(Where())) == {
        "session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "reason",
    }  # fmt: skip


def test_a_hook_can_t_change_what_the_others_are_told():
    payload = PreToolUse(tool_name="shell", tool_input={"nested": [1]})
    payload.to_json(Where())["tool_input"]["nested"].append(2)
    assert payload.tool_input == {"nested": [1]}


@pytest.mark.parametrize(
    ("payload", "matched"),
    [
        (PreToolUse(tool_name="shell", tool_input={}), "shell"),
        (payloads.SessionStart(source="resume"), "resume"),
        (payloads.SessionEnd(reason="clear"), "clear"),
        (payloads.Notification(message="m", notification_type="permission_prompt"), "permission_prompt"),
        (payloads.PreCompact(trigger="auto"), "auto"),
        (payloads.PostCompact(trigger="manual"), "manual"),
        (payloads.SubagentStart(agent_id="1", agent_type="Explore"), "Explore"),
        (payloads.SubagentStop(agent_id="1", agent_type="Plan"), "Plan"),
        (payloads.CellRun(cell_id="c", cell_type="code", source="", tool_name="run_cell"), "run_cell"),
        (payloads.UserPromptSubmit(prompt="p"), None),
        (payloads.Stop(stop_hook_active=False), None),
        (payloads.TaskCreated(task_id="1", task_subject="s"), None),
        (payloads.TaskCompleted(task_id="1", task_subject="s"), None),
        (payloads.TeammateIdle(teammate_name="n"), None),
    ],
)
def test_each_event_has_its_own_field_that_matchers_look_at(payload, matched):
    assert payload.matched == matched
    assert json.dumps(payload.to_json(Where()))


async def test_the_double_of_the_port_says_what_was_written_down():
    hooks = NoHooks({HookEvent.PRE_TOOL_USE: Verdict("deny", ("no",))})
    payload = PreToolUse(tool_name="shell", tool_input={})
    assert hooks.listens(HookEvent.PRE_TOOL_USE)
    assert not hooks.listens(HookEvent.STOP)
    assert (await hooks.fire(payload, Where(), print)).decision == "deny"
    assert await NoHooks().fire(payload, Where(), print) == Verdict()
    assert hooks.fired == [payload]
