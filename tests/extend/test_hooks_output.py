"""Exit codes, JSON, HTTP answers and judgements, as the documentation's tables have them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.hooks import Verdict
from nbagent.core.payloads import GATES, HookEvent
from nbagent.extend.hooks_output import Failed, failed, of_command, of_http, of_json, of_judgement

PRE, POST = HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE


def special(event: HookEvent, **fields: object) -> dict:
    return {"hookSpecificOutput": {"hookEventName": str(event), **fields}}


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────────────────────────

EXIT_2 = {
    "PreToolUse": "deny", "PermissionRequest": "nothing", "UserPromptSubmit": "block", "Stop": "block",
    "SubagentStop": "block", "TeammateIdle": "block", "TaskCreated": "block", "TaskCompleted": "block",
    "PostToolUse": "block", "PostToolUseFailure": "block", "Notification": "nothing", "SubagentStart": "message",
    "SessionStart": "message", "SessionEnd": "message", "PreCompact": "block", "PostCompact": "message",
    "CellAdded": "block", "CellEdited": "block", "CellRun": "block",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("event", list(HookEvent))
def test_exit_code_2_does_what_the_table_says_with_stderr_as_the_reason(event):
    verdict = of_command(event, 2, "", "no, because\n", "guard")
    expected = {
        "deny": Verdict("deny", ("guard: no, because",)),
        "block": Verdict(block=("no, because",)),
        "message": Verdict(messages=("guard: no, because",)),
        "nothing": Verdict(),
    }[EXIT_2[event]]
    assert verdict == expected


def test_exit_code_2_blocks_whatever_the_json_says():
    out = json.dumps(special(PRE, permissionDecision="allow", additionalContext="c"))
    verdict = of_command(PRE, 2, out, "no", "guard")
    assert verdict.decision == "deny"
    assert verdict.context == ("c",)
    assert of_command(PRE, 2, '{"decision": 7}', "no", "guard") == Verdict("deny", ("guard: no",))


def test_exit_code_2_takes_its_reason_from_a_blocking_decision_of_the_json():
    out = json.dumps(special(PRE, permissionDecision="deny", permissionDecisionReason="policy 7"))
    assert of_command(PRE, 2, out, "stderr", "guard").reason == "guard: policy 7"


def test_exit_code_0_says_nothing_and_plain_text_is_context_for_prompts_and_session_starts_only():
    for event in HookEvent:
        verdict = of_command(event, 0, "branch: main\n", "ignored", "guard")
        told = event in {HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START}
        assert verdict == (Verdict(context=("branch: main",)) if told else Verdict())


def test_another_exit_code_is_a_failure_with_the_first_line_of_stderr():
    with pytest.raises(Failed, match=r"exit code 127: /bin/sh: guard\.sh: not found"):
        of_command(PRE, 127, "", "\n/bin/sh: guard.sh: not found\nmore", "guard")


def test_with_another_exit_code_json_alone_decides():
    out = json.dumps(special(PRE, permissionDecision="deny", permissionDecisionReason="r"))
    assert of_command(PRE, 1, out, "", "guard").decision == "deny"


@pytest.mark.parametrize("event", sorted(GATES))
def test_what_begins_like_json_and_is_none_is_no_answer_at_a_gate(event):
    with pytest.raises(Failed, match="begins like JSON"):
        of_command(event, 0, '{"permissionDecision": "deny"', "", "guard")


def test_an_array_or_a_quoted_text_is_plain_text():
    assert of_command(PRE, 0, '["deny"]', "", "guard") == Verdict()
    assert of_command(HookEvent.SESSION_START, 0, '"x"', "", "guard") == Verdict(context=('"x"',))


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("word", ["allow", "deny", "ask"])
def test_pre_tool_use_permission_decision_with_reason_input_and_context(word):
    data = special(PRE, permissionDecision=word, permissionDecisionReason="r", updatedInput={"command": "ls"},
                   additionalContext="c")  # fmt: skip
    assert of_json(PRE, data, "guard") == Verdict(word, ("guard: r",), context=("c",), updated_input={"command": "ls"})


def test_pre_tool_use_defer_asks_now_since_nobody_decides_later():
    assert of_json(PRE, special(PRE, permissionDecision="defer"), "guard").decision == "ask"


def test_the_older_top_level_decision_of_pre_tool_use_still_counts():
    assert of_json(PRE, {"decision": "approve", "reason": "r"}, "g") == Verdict("allow", ("g: r",))
    assert of_json(PRE, {"decision": "block", "reason": "r"}, "g") == Verdict("deny", ("g: r",))


def test_top_level_block_with_reason_for_the_events_that_have_it():
    for event in (HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP, HookEvent.SUBAGENT_STOP, HookEvent.PRE_COMPACT, POST):
        assert of_json(event, {"decision": "block", "reason": "r"}, "g").block == ("r",)


def test_continue_false_ends_the_run_with_stop_reason_and_task_created_ignores_it():
    assert of_json(PRE, {"continue": False, "stopReason": "build failed"}, "g").stop == "build failed"
    assert of_json(PRE, {"continue_": False}, "g").stop == "Stopped by the hook g."
    assert of_json(HookEvent.TASK_CREATED, {"continue": False}, "g").stop == ""


def test_system_message_is_for_the_person():
    assert of_json(POST, {"systemMessage": "slow disk"}, "g").messages == ("g: slow disk",)


def test_permission_request_allow_with_input_and_rules_and_deny_with_message_and_interrupt():
    event = HookEvent.PERMISSION_REQUEST
    update = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm test"}, {"toolName": "Edit"}],
              "behavior": "allow", "destination": "session"}  # fmt: skip
    data = special(event, decision={"behavior": "allow", "updatedInput": {"a": 1},
                                    "updatedPermissions": [update, {"type": "setMode", "mode": "plan"}]})  # fmt: skip
    assert of_json(event, data, "g") == Verdict(
        "allow", ("g",), updated_input={"a": 1}, rules=(("allow", "Bash(npm test)"), ("allow", "Edit"))
    )
    data = special(event, decision={"behavior": "deny", "message": "not now", "interrupt": True})
    assert of_json(event, data, "g") == Verdict("deny", ("g: not now",), interrupt=True)
    assert of_json(event, {"decision": "block", "reason": "r"}, "g") == Verdict()


def test_post_tool_use_replaces_the_output_also_with_nothing():
    assert of_json(POST, special(POST, updatedToolOutput="x"), "g").updated_output == ("x",)
    assert of_json(POST, special(POST, updatedMCPToolOutput=[]), "g").updated_output == ([],)
    assert of_json(POST, special(POST, updatedToolOutput=None), "g").updated_output == (None,)
    assert of_json(POST, special(POST), "g").updated_output is None


def test_session_start_and_user_prompt_submit_fields():
    event = HookEvent.SESSION_START
    data = special(event, additionalContext="c", initialUserMessage="hello", sessionTitle="t", watchPaths=["/x"])
    assert of_json(event, data, "g") == Verdict(context=("c",), opening=("hello",), title="t")
    event = HookEvent.USER_PROMPT_SUBMIT
    data = special(event, additionalContext="c", sessionTitle="t", suppressOriginalPrompt=True)
    assert of_json(event, data, "g") == Verdict(context=("c",), title="t")


def test_what_a_notification_or_session_end_hook_says_is_discarded():
    for event in (HookEvent.NOTIFICATION, HookEvent.SESSION_END):
        assert of_json(event, {"continue": False, "systemMessage": "x", "decision": "block"}, "g") == Verdict()


@pytest.mark.parametrize(
    "data",
    [
        {"continue": "no"},
        {"decision": "maybe"},
        {"decision": 1},
        {"systemMessage": ["x"]},
        {"hookSpecificOutput": "deny"},
        {"hookSpecificOutput": {"permissionDecision": "deny"}},
        {"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "deny"}},
        special(PRE, permissionDecision="yes"),
        special(PRE, permissionDecision=True),
        special(PRE, permissionDecision="allow", updatedInput="ls"),
        special(PRE, additionalContext={"a": 1}),
        ["deny"],
    ],
)
def test_nonsense_is_a_failure_and_never_a_yes(data):
    """Row 113: an answer that can't be understood is none."""
    with pytest.raises(Failed):
        of_json(PRE, data, "g")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["allow", "deny", "block", "PreToolUse", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["continue", "decision", "hookSpecificOutput", "hookEventName", "permissionDecision", "reason"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(JSON, st.sampled_from([0, 1, 2]), st.sampled_from(list(HookEvent)))
def test_any_json_is_a_verdict_or_a_failure_and_only_a_well_formed_yes_allows(data, code, event):
    try:
        verdict = of_command(event, code, json.dumps(data), "", "g")
    except Failed:
        return
    if verdict.decision == "allow":
        assert code != 2
        inner = data.get("hookSpecificOutput") or {}
        assert data.get("decision") == "approve" or inner.get("permissionDecision") == "allow"


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.sampled_from(list(HookEvent)), st.sampled_from(["", "continue", "block"]))
def test_a_failure_is_never_a_yes(event, on_failure):
    verdict = failed(event, "crashed", "g", on_failure)
    assert verdict.decision != "allow"
    assert verdict.updated_input is None
    if event in GATES and on_failure != "continue":
        assert verdict.decision in {"ask", "deny"} or verdict.block or verdict.failed


def test_on_failure_block_holds_back_and_continue_says_nothing():
    assert failed(PRE, "crashed", "g", "block") == Verdict("deny", ("The hook g failed: crashed.",))
    assert failed(HookEvent.USER_PROMPT_SUBMIT, "crashed", "g", "block").block == ("The hook g failed: crashed.",)
    assert failed(PRE, "crashed", "g", "continue") == Verdict()


# ── servers and models ───────────────────────────────────────────────────────────────────────────────────────────────


def test_http_answers_as_documented():
    deny = json.dumps(special(PRE, permissionDecision="deny"))
    assert of_http(PRE, 200, "", "g") == Verdict()
    assert of_http(PRE, 204, " \n", "g") == Verdict()
    assert of_http(PRE, 201, deny, "g").decision == "deny"
    for status, body in ((500, deny), (404, ""), (302, ""), (200, "fine"), (200, "[1]"), (200, '{"a"')):
        with pytest.raises(Failed):
            of_http(PRE, status, body, "g")


def judged(event: HookEvent, *, feeds_back: bool = False, **said: object) -> Verdict:
    return of_judgement(event, f"Here:\n```json\n{json.dumps(said)}\n```", "g", feeds_back=feeds_back)


def test_a_judgement_of_ok_false_does_what_the_documentation_says_per_event():
    assert judged(PRE, ok=True) == Verdict()
    assert judged(PRE, ok=False, reason="r") == Verdict("deny", ("g: r",), stop="g: r")
    assert judged(PRE, ok=False, reason="r", feeds_back=True) == Verdict("deny", ("g: r",))
    assert judged(HookEvent.STOP, ok=False, reason="r") == Verdict(block=("r",))
    assert judged(HookEvent.STOP, ok=False, reason="r", impossible=True).block == ()
    assert judged(POST, ok=False, reason="r") == Verdict(block=("r",), stop="g: r")
    assert judged(POST, ok=False, reason="r", feeds_back=True) == Verdict(block=("r",))
    assert judged(HookEvent.POST_TOOL_USE_FAILURE, ok=False, reason="r") == Verdict(block=("r",))
    assert judged(HookEvent.PERMISSION_REQUEST, ok=False, reason="r") == Verdict()
    assert judged(HookEvent.USER_PROMPT_SUBMIT, ok=False, reason="r").block == ("r",)


@pytest.mark.parametrize("text", ["", "yes", '{"ok": "true"}', '{"reason": "x"}', '{"ok": true', "}{"])
def test_a_judgement_that_is_none_is_a_failure(text):
    with pytest.raises(Failed):
        of_judgement(PRE, text, "g", feeds_back=True)
