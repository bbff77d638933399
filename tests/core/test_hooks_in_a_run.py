"""The seams of the loop for hooks: what each event may do, and that what fails shuts a gate instead of opening it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nbagent.core.errors import Interrupted
from nbagent.core.events import (
    ApprovalAsked,
    CallDecided,
    CallEnded,
    HookEnded,
    HookStarted,
    Noted,
    QuestionAsked,
    Reason,
    RunStarted,
    Status,
)
from nbagent.core.hooks import Began, Finished, Report, Verdict
from nbagent.core.openings import STOPS_BLOCKED
from nbagent.core.payloads import CellAdded, CellRun, HookEvent, Payload, TaskCreated, Where
from nbagent.core.policy import Mode
from nbagent.core.ports import Answered, Preview, Question
from nbagent.core.run import Stop
from nbagent.core.tools import Call, Kind, Tool, Toolset, tool
from nbagent.models.scripted import call
from tests.core.rig import Person, Rig, check_transcript, play
from tests.support.turns import until

Says = Verdict | Callable[[Any], Verdict]


@dataclass
class Said:
    """A port double: each event has its answer, or a function of the payload that gives it."""

    says: dict[str, Says]
    fired: list[Payload] = field(default_factory=list)
    where: list[Where] = field(default_factory=list)

    def listens(self, event: HookEvent) -> bool:
        return event in self.says

    async def fire(self, payload: Payload, where: Where, report: Report) -> Verdict:
        self.fired.append(payload)
        self.where.append(where)
        number = str(len(self.fired))
        report(Began(number, "guard", payload.event, "looking"))
        answer = self.says[payload.event]
        verdict = answer(payload) if callable(answer) else answer
        outcome = "failed" if verdict.failed else verdict.decision or "ok"
        report(Finished(number, "guard", payload.event, outcome, " ".join(verdict.failed), 0.1))
        return verdict

    def of(self, event: str) -> list[Any]:
        return [payload for payload in self.fired if payload.event == event]


def texts(ran: Any) -> list[str]:
    """All texts of the person's (or the runtime's) messages."""
    return [b["text"] for m in ran.messages if m["role"] == "user" for b in m["content"] if b["type"] == "text"]


DENY = Verdict("deny", ("guard: not this",))
ASK = Verdict("ask", ("guard: look first",))
ALLOW = Verdict("allow", ("guard: fine",))


# ── PreToolUse ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_pre_tool_use_deny_stops_the_call_even_in_bypass_and_the_model_gets_the_reason():
    hooks = Said({"PreToolUse": DENY})
    ran = await play([call("change", what="a")], "done", hooks=hooks, mode=Mode.BYPASS)
    assert ran.rig.ran == []
    assert "guard: not this" in ran.result_texts()[0]
    assert ran.of(CallEnded)[0].status == Status.DENIED
    assert ran.of(CallDecided)[0].rule == "hook: guard: not this"
    assert ran.end.reason == Reason.END_TURN


async def test_pre_tool_use_is_told_of_the_call_with_claude_s_fields():
    hooks = Said({"PreToolUse": Verdict()})
    ran = await play([call("look", what="a")], "done", hooks=hooks, mode=Mode.ACCEPT_EDITS, where=Where(cwd="/w"))
    said = hooks.fired[0].to_json(hooks.where[0])
    made = ran.messages[1]["content"][0]
    assert said["tool_name"] == "look"
    assert said["tool_input"] == {"what": "a"}
    assert said["tool_use_id"] == made["id"]
    assert (said["session_id"], said["permission_mode"], said["cwd"]) == ("s1", "acceptEdits", "/w")


async def test_pre_tool_use_allow_stands_in_for_the_person_where_only_the_mode_asks():
    ran = await play([call("change", what="a")], "done", hooks=Said({"PreToolUse": ALLOW}))
    assert ran.rig.ran == ["change a"]
    assert not ran.of(ApprovalAsked)


async def test_pre_tool_use_allow_does_not_skip_deny_or_ask_rules_or_the_plan_mode():
    hooks = Said({"PreToolUse": ALLOW})
    denied = await play([call("change", what="a")], "done", hooks=hooks, rules=["deny change"])
    asked = await play([call("change", what="a")], "done", hooks=hooks, rules=["ask change"], person=Person(True))
    planned = await play([call("change", what="a")], "done", hooks=hooks, mode=Mode.PLAN)
    assert denied.rig.ran == planned.rig.ran == []
    assert len(asked.of(ApprovalAsked)) == 1


async def test_pre_tool_use_ask_asks_the_person_even_in_bypass_and_shows_why():
    person = Person(True)
    ran = await play(
        [call("change", what="a")], "done", hooks=Said({"PreToolUse": ASK}), person=person, mode=Mode.BYPASS
    )
    assert person.asked[0].why == "hook: guard: look first"
    assert ran.rig.ran == ["change a"]


async def test_a_hook_s_ask_is_a_deny_where_nobody_may_be_asked():
    ran = await play([call("change", what="a")], "done", hooks=Said({"PreToolUse": ASK}), mode=Mode.DONT_ASK)
    assert ran.rig.ran == []


async def test_a_reading_call_can_be_denied_too():
    ran = await play([call("look", what="a"), call("look", what="b")], "done", hooks=Said(
        {"PreToolUse": lambda p: DENY if p.tool_input["what"] == "a" else Verdict()}))  # fmt: skip
    assert ran.rig.ran == ["look b"]


async def test_a_hook_that_failed_opens_no_gate_the_person_is_asked_and_sees_why():
    """Row 113: a failing hook is not taken as a yes."""
    failed = Verdict("ask", ("the hook guard failed: ImportError",), failed=("The hook guard failed: ImportError",))
    person = Person(Answered(False, words="no"))
    ran = await play([call("look", what="a")], "done", hooks=Said({"PreToolUse": failed}), person=person)
    assert ran.rig.ran == []
    assert "ImportError" in person.asked[0].why
    assert "ImportError" in ran.of(HookEnded)[0].sentence


async def test_where_nobody_is_there_a_failed_hook_means_denied():
    """Row 113, unattended."""
    failed = Verdict("ask", ("the hook guard failed",), failed=("The hook guard failed",))
    nobody = Person(Answered(False, words="nobody is there", by="policy"), present=False)
    ran = await play([call("change", what="a")], "done", hooks=Said({"PreToolUse": failed}), person=nobody,
                     mode=Mode.BYPASS)  # fmt: skip
    assert ran.rig.ran == []


async def test_updated_input_is_validated_decided_anew_shown_and_told_to_the_model():
    hooks = Said({"PreToolUse": Verdict(updated_input={"what": "safe"})})
    person = Person(True)
    ran = await play([call("change", what="rm")], "done", hooks=hooks, person=person, rules=["deny change(rm)"])
    assert ran.rig.ran == ["change safe"]
    assert person.asked[0].preview.body == "safe"
    assert person.asked[0].input == {"what": "safe"}
    assert 'This is what was used: {"what": "safe"}' in ran.result_texts()[0]


async def test_updated_input_is_decided_anew_a_deny_rule_for_it_counts():
    hooks = Said({"PreToolUse": Verdict("allow", ("guard",), updated_input={"what": "rm"})})
    ran = await play([call("change", what="safe")], "done", hooks=hooks, rules=["deny change(rm)"])
    assert ran.rig.ran == []


async def test_updated_input_that_does_not_fit_is_nonsense_so_the_person_is_asked_about_the_call_as_it_was():
    hooks = Said({"PreToolUse": Verdict("allow", ("guard",), updated_input={"where": "x"})})
    person = Person(True)
    ran = await play([call("change", what="a")], "done", hooks=hooks, person=person, mode=Mode.BYPASS)
    assert "does not fit" in person.asked[0].why
    assert ran.rig.ran == ["change a"]


async def test_context_of_pre_tool_use_is_told_next_to_the_result():
    hooks = Said({"PreToolUse": Verdict(context=("the file is generated",))})
    ran = await play([call("look", what="a")], "done", hooks=hooks)
    last = ran.messages[2]["content"]
    assert [b["type"] for b in last] == ["tool_result", "text"]
    assert last[1]["text"] == "(From a PreToolUse hook, not the person:) the file is generated"


async def test_continue_false_of_pre_tool_use_ends_the_run_before_the_call():
    hooks = Said({"PreToolUse": Verdict(stop="build failed")})
    ran = await play([call("look", what="a")], hooks=hooks)
    assert ran.rig.ran == []
    assert (ran.end.reason, ran.end.sentence) == (Reason.HOOK, "build failed")
    assert "Not started" in ran.result_texts()[0]


async def test_wrong_arguments_are_answered_before_any_hook_hears_of_them():
    hooks = Said({"PreToolUse": DENY, "PostToolUseFailure": Verdict()})
    await play([call("change", where="a"), call("nothing")], "done", hooks=hooks)
    assert hooks.fired == []


async def test_the_text_that_a_person_wrote_instead_is_seen_by_the_hooks_too():
    hooks = Said({"PreToolUse": lambda p: DENY if p.tool_input["what"] == "evil" else Verdict()})
    ran = await play([call("write", what="good")], "done", hooks=hooks, rig=Writing(),
                     person=Person(Answered(True, edited="evil")))  # fmt: skip
    assert ran.rig.ran == []
    assert [p.tool_input["what"] for p in hooks.fired] == ["good", "evil"]
    assert "guard: not this" in ran.result_texts()[0]


async def test_a_hook_can_t_put_another_text_in_the_place_of_the_person_s_unasked():
    hooks = Said({"PreToolUse": lambda p: Verdict(updated_input={"what": p.tool_input["what"] + "!"})})
    ran = await play([call("write", what="a")], "done", hooks=hooks, rig=Writing(),
                     person=Person(Answered(True, edited="mine")))  # fmt: skip
    assert ran.rig.ran == []
    assert 'wants it, and they are asked: {"what": "mine!"}' in ran.result_texts()[0]


async def test_hooks_run_is_shown_as_it_happens_with_the_call_that_it_is_about():
    ran = await play([call("look", what="a")], "done", hooks=Said({"PreToolUse": ALLOW}))
    (began,), (ended,) = ran.of(HookStarted), ran.of(HookEnded)
    made = ran.messages[1]["content"][0]["id"]
    assert (began.hook, began.on, began.call_id, began.message) == ("guard", "PreToolUse", made, "looking")
    assert (ended.hook_id, ended.outcome, ended.call_id) == (began.hook_id, "allow", made)


async def test_a_person_who_interrupts_a_hook_ends_the_run_and_the_call_does_not_run():
    def interrupted(_: Payload) -> Verdict:
        raise Interrupted

    ran = await play([call("change", what="a")], hooks=Said({"PreToolUse": interrupted}), mode=Mode.BYPASS)
    assert ran.rig.ran == []
    assert ran.end.reason == Reason.INTERRUPTED


# ── PermissionRequest ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_permission_request_allows_in_the_place_of_the_person_and_keeps_the_rules_it_wants():
    verdict = Verdict("allow", ("guard: fine",), rules=(("allow", "change"),))
    hooks = Said({"PermissionRequest": verdict})
    ran = await play([call("change", what="a")], [call("change", what="b")], "done", hooks=hooks)
    assert ran.rig.ran == ["change a", "change b"]
    assert len(hooks.fired) == 1  # the second call is allowed by the rule: nobody is asked
    assert not ran.of(ApprovalAsked)
    suggestion = hooks.fired[0].permission_suggestions[-1]
    assert suggestion == {"type": "addRules", "rules": [{"toolName": "change"}], "behavior": "allow",
                          "destination": "session"}  # fmt: skip


async def test_permission_request_is_not_fired_where_nobody_would_be_asked():
    hooks = Said({"PermissionRequest": ALLOW})
    await play([call("look", what="a")], "done", hooks=hooks)
    assert hooks.fired == []


async def test_permission_request_allow_overrides_no_ask_rule_and_no_hook_that_asks():
    ruled = await play([call("change", what="a")], "done", hooks=Said({"PermissionRequest": ALLOW}),
                       rules=["ask change"], person=Person(True))  # fmt: skip
    hooked = await play([call("change", what="a")], "done", hooks=Said({"PermissionRequest": ALLOW, "PreToolUse": ASK}),
                        person=Person(True))  # fmt: skip
    assert len(ruled.of(ApprovalAsked)) == len(hooked.of(ApprovalAsked)) == 1


async def test_permission_request_deny_tells_the_model_why_and_interrupt_ends_the_run():
    hooks = Said({"PermissionRequest": DENY})
    ran = await play([call("change", what="a")], "done", hooks=hooks, person=Person())
    assert "guard: not this" in ran.result_texts()[0]
    assert ran.end.reason == Reason.END_TURN
    hooks = Said({"PermissionRequest": Verdict("deny", ("guard: stop it",), interrupt=True)})
    ended = await play([call("change", what="a")], hooks=hooks, person=Person())
    assert (ended.end.reason, ended.end.sentence) == (Reason.HOOK, "Stopped by a hook: guard: stop it")


async def test_permission_request_s_updated_input_is_decided_anew():
    hooks = Said({"PermissionRequest": Verdict("allow", ("guard",), updated_input={"what": "lint"})})
    ran = await play([call("change", what="a")], "done", hooks=hooks)
    assert ran.rig.ran == ["change lint"]
    denied = await play([call("change", what="a")], "done", hooks=hooks, rules=["deny change(lint)"])
    assert denied.rig.ran == []


async def test_permission_request_without_a_decision_leaves_it_to_the_person():
    ran = await play(
        [call("change", what="a")], "done", hooks=Said({"PermissionRequest": Verdict()}), person=Person(True)
    )
    assert ran.rig.ran == ["change a"]


# ── after a call ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_post_tool_use_gets_the_response_and_its_words_stand_next_to_the_result():
    hooks = Said({"PostToolUse": Verdict(block=("lint failed",), context=("see the log",))})
    ran = await play([call("look", what="a")], "done", hooks=hooks)
    payload = hooks.fired[0]
    assert payload.tool_response == "seen a"
    assert payload.duration_ms >= 0
    assert texts(ran)[1:] == [
        "(From a PostToolUse hook, not the person:) lint failed",
        "(From a PostToolUse hook, not the person:) see the log",
    ]


async def test_post_tool_use_can_put_another_output_in_the_place_of_the_result():
    hooks = Said({"PostToolUse": Verdict(updated_output=("[redacted]",))})
    ran = await play([call("look", what="secret")], "done", hooks=hooks)
    assert ran.result_texts() == ["[redacted]"]
    assert ran.of(CallEnded)[0].content == ({"type": "text", "text": "[redacted]"},)


async def test_a_call_that_fails_fires_post_tool_use_failure_and_not_post_tool_use():
    hooks = Said({"PostToolUse": Verdict(), "PostToolUseFailure": Verdict(context=("known problem",))})
    ran = await play([call("fail"), call("crash")], "done", hooks=hooks)
    assert [p.event for p in hooks.fired] == ["PostToolUseFailure"] * 2
    assert hooks.fired[0].error == "it failed"
    assert not hooks.fired[0].is_interrupt
    assert "ZeroDivisionError" in hooks.fired[1].error
    assert len([t for t in texts(ran) if "known problem" in t]) == 2


async def test_a_denied_call_fires_nothing_afterwards():
    hooks = Said({"PostToolUse": Verdict(), "PostToolUseFailure": Verdict(), "PreToolUse": DENY})
    await play([call("look", what="a")], "done", hooks=hooks)
    assert [p.event for p in hooks.fired] == ["PreToolUse"]


async def test_continue_false_after_a_call_ends_the_run_with_the_result_kept():
    hooks = Said({"PostToolUse": Verdict(stop="enough")})
    ran = await play([call("look", what="a")], hooks=hooks)
    assert ran.result_texts() == ["seen a"]
    assert (ran.end.reason, ran.end.sentence) == (Reason.HOOK, "enough")


async def test_cells_that_a_call_added_and_ran_are_told_after_it():
    deeds = [
        [CellAdded(cell_id="c1", cell_type="code", source="1"), CellRun(cell_id="c1", cell_type="code", source="1")],
        [],
    ]
    hooks = Said({"CellAdded": Verdict(context=("mind the style",)), "CellRun": Verdict()})
    ran = await play([call("look", what="a")], "done", hooks=hooks, deeds=lambda: deeds.pop(0))
    made = ran.messages[1]["content"][0]["id"]
    assert [(p.event, p.cell_id, p.tool_name, p.tool_use_id) for p in hooks.fired] == [
        ("CellAdded", "c1", "look", made),
        ("CellRun", "c1", "look", made),
    ]
    assert "(From a CellAdded hook, not the person:) mind the style" in texts(ran)


class Writing(Rig):
    """A rig with `write`, whose text a person may change, and `plan`, which asks the hooks about a task itself."""

    def tools(self) -> Toolset:
        ran = self.ran

        async def write(call: Call, what: str) -> str:
            """Write."""
            ran.append(f"write {what}")
            return "written"

        async def plan(call: Call, subject: str) -> str:
            """Plan."""
            verdict = await call.hook(TaskCreated(task_id="1", task_subject=subject))
            return f"not created: {verdict.why_blocked}" if verdict.block else "created"

        made: list[Tool] = [tool(kind=Kind.RUN_CELL, amend="what", preview=_text)(write), tool(plan)]
        return Toolset([*super().tools().values(), *made])


def _text(given: dict) -> Any:
    return Preview("code", given["what"])


async def test_task_created_holds_back_the_task_and_continue_is_the_hook_s_own_word():
    hooks = Said({"TaskCreated": Verdict(block=("no ticket",))})
    ran = await play([call("plan", subject="x")], "done", hooks=hooks, rig=Writing())
    assert ran.result_texts() == ["not created: no ticket"]
    assert hooks.fired[0].task_subject == "x"


async def test_a_task_hook_that_fails_asks_the_person_and_nobody_there_means_no():
    failed = Verdict(failed=("The hook guard failed: no answer within 5 s.",))
    hooks = Said({"TaskCreated": failed})
    yes = await play([call("plan", subject="x")], "done", hooks=hooks, rig=Writing(), person=Person(replies=["Go on"]))
    no = await play([call("plan", subject="x")], "done", hooks=hooks, rig=Writing(), person=Person(present=False))
    assert yes.result_texts() == ["created"]
    assert "no answer within 5 s" in yes.of(QuestionAsked)[0].text
    assert no.result_texts() == [
        "not created: The hook guard failed: no answer within 5 s. So nbagent did not create the task."
    ]


# ── a run's beginning ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_user_prompt_submit_block_erases_the_prompt_and_shows_the_reason_to_the_person_only():
    hooks = Said({"UserPromptSubmit": Verdict(block=("it holds a key",))})
    ran = await play("never", hooks=hooks)
    assert hooks.fired[0].prompt == "do it"
    assert ran.messages == []
    assert ran.of(RunStarted)[0].prompt == "(held back by a hook)"
    assert ran.end.reason == Reason.HOOK
    assert "it holds a key" in ran.end.sentence


async def test_user_prompt_submit_context_goes_with_the_prompt_and_a_title_is_kept():
    hooks = Said({"UserPromptSubmit": Verdict(context=("branch: main",), title="Sales")})
    ran = await play("done", hooks=hooks)
    assert texts(ran) == ["(From a UserPromptSubmit hook, not the person:) branch: main", "do it"]


async def test_a_prompt_hook_that_fails_asks_the_person_and_nobody_there_holds_the_prompt_back():
    hooks = Said({"UserPromptSubmit": Verdict(failed=("The hook guard crashed.",))})
    yes = await play("done", hooks=hooks, person=Person(replies=["Go on"]))
    no = await play("never", hooks=hooks, person=Person(replies=["Don't"]))
    alone = await play("never", hooks=hooks, person=Person(present=False))
    assert yes.end.reason == Reason.END_TURN
    assert no.end.reason == alone.end.reason == Reason.HOOK
    assert "The hook guard crashed." in alone.end.sentence
    assert alone.messages == no.messages == []


async def test_session_start_is_fired_before_the_prompt_of_the_run_that_begins_the_session():
    start = Verdict(context=("branch: main",), opening=("Say hello first.",))
    hooks = Said({"SessionStart": start, "UserPromptSubmit": Verdict()})
    ran = await play("done", hooks=hooks, begins="startup")
    assert [p.event for p in hooks.fired] == ["SessionStart", "UserPromptSubmit"]
    assert (hooks.fired[0].source, hooks.fired[0].model) == ("startup", ran.model.name)
    assert texts(ran) == ["(From a SessionStart hook, not the person:) branch: main", "Say hello first.", "do it"]
    again = Said({"SessionStart": start})
    await play("done", hooks=again)
    assert again.fired == []


async def test_a_system_message_is_shown_to_the_person_and_not_told_to_the_model():
    ran = await play("done", hooks=Said({"UserPromptSubmit": Verdict(messages=("disk nearly full",))}))
    assert [note.text for note in ran.of(Noted)] == ["disk nearly full"]
    assert texts(ran) == ["do it"]


async def test_in_a_subagent_the_events_are_its_own():
    hooks = Said({event: Verdict() for event in ("UserPromptSubmit", "SubagentStart", "Stop", "SubagentStop")})
    await play("done", hooks=hooks, begins="startup",
               where=Where(agent_id="a1", agent_type="Explore", transcript_path="/sub.jsonl"))  # fmt: skip
    assert [p.event for p in hooks.fired] == ["SubagentStart", "SubagentStop"]
    stop = hooks.fired[1]
    assert (stop.agent_id, stop.agent_type, stop.agent_transcript_path) == ("a1", "Explore", "/sub.jsonl")
    assert stop.last_assistant_message == "done"


# ── a run's end ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_stop_block_makes_the_model_go_on_with_the_reason_and_stop_hook_active_says_so():
    def once(payload: Any) -> Verdict:
        return Verdict() if payload.stop_hook_active else Verdict(block=("run the tests",))

    hooks = Said({"Stop": once})
    ran = await play("done", "really done", hooks=hooks)
    assert [(p.stop_hook_active, p.last_assistant_message) for p in hooks.fired] == [
        (False, "done"),
        (True, "really done"),
    ]
    assert texts(ran)[1] == "(From a Stop hook, not the person:) run the tests"
    assert (ran.end.reason, ran.end.text) == (Reason.END_TURN, "really done")


async def test_stop_s_additional_context_goes_on_too():
    hooks = Said({"Stop": lambda p: Verdict() if p.stop_hook_active else Verdict(context=("run the tests",))})
    ran = await play("done", "really done", hooks=hooks)
    assert ran.end.text == "really done"


async def test_stop_hooks_block_at_most_eight_times_in_a_row():
    hooks = Said({"Stop": Verdict(block=("never",))})
    ran = await play(*["done"] * 20, hooks=hooks)
    assert STOPS_BLOCKED == 8
    assert ran.end.turns == STOPS_BLOCKED + 1
    assert ran.end.reason == Reason.END_TURN
    assert "8 times" in ran.of(Noted)[-1].text


async def test_stop_is_not_fired_for_a_run_that_the_person_or_a_limit_ends():
    hooks = Said({"Stop": Verdict(block=("never",))})
    denied = await play([call("change", what="a")], hooks=hooks, person=Person(False))
    assert denied.end.reason == Reason.DENIED
    assert hooks.fired == []


async def test_continue_false_of_stop_ends_the_run_whatever_else_is_said():
    ran = await play("done", "never", hooks=Said({"Stop": Verdict(block=("go on",), stop="no more")}))
    assert (ran.end.reason, ran.end.sentence, ran.end.turns) == (Reason.HOOK, "no more", 1)


async def test_a_stop_hook_that_fails_lets_the_run_end():
    ran = await play("done", hooks=Said({"Stop": Verdict(failed=("The hook guard failed.",))}))
    assert ran.end.reason == Reason.END_TURN


# ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────────


class Slow(Person):
    """A person who answers when the notification has been sent."""

    def __init__(self) -> None:
        super().__init__(True)
        self.called = asyncio.Event()

    async def ask(self, approval: Any) -> Answered:
        await self.called.wait()
        return await super().ask(approval)


async def test_a_question_that_waits_is_a_notification_of_type_permission_prompt():
    person = Slow()

    def called(_: Payload) -> Verdict:
        person.called.set()
        return Verdict(failed=("ignored",))

    hooks = Said({"Notification": called})
    ran = await play([call("change", what="a")], "done", hooks=hooks, person=person, notify_after=0.0)
    assert ran.rig.ran == ["change a"]
    (payload,) = hooks.fired
    assert payload.notification_type == "permission_prompt"
    assert "change" in payload.message


async def test_a_question_that_is_answered_in_time_is_no_notification():
    hooks = Said({"Notification": Verdict()})
    ran = await play([call("change", what="a")], "done", hooks=hooks, person=Person(True), notify_after=30.0)
    assert ran.rig.ran == ["change a"]
    assert hooks.fired == []


async def test_a_question_of_a_tool_that_waits_is_a_notification_too():
    class Asking(Rig):
        def tools(self) -> Toolset:
            async def wonder(call: Call) -> str:
                """Wonder."""
                return await call.ask(Question("q1", "Which one?"))

            return Toolset([tool(wonder)])

    class Late(Person):
        async def question(self, question: Question) -> str:
            await notified.wait()
            return "this"

    notified = asyncio.Event()

    def called(_: Payload) -> Verdict:
        notified.set()
        return Verdict()

    hooks = Said({"Notification": called})
    ran = await play([call("wonder")], "done", hooks=hooks, person=Late(), rig=Asking(), notify_after=0.0)
    assert ran.result_texts() == ["this"]
    assert (hooks.fired[0].notification_type, hooks.fired[0].message) == ("agent_needs_input", "Which one?")


# ── interrupts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Hanging(Said):
    """Hooks that do not end by themselves."""

    async def fire(self, payload: Payload, where: Where, report: Report) -> Verdict:
        self.fired.append(payload)
        await asyncio.Event().wait()
        return Verdict()


async def test_interrupting_only_the_call_ends_its_hook_and_keeps_its_result():
    hooks, stop = Hanging({"PostToolUse": Verdict()}), Stop()
    playing = asyncio.ensure_future(play([call("change", what="a")], "done", hooks=hooks, stop=stop, mode=Mode.BYPASS))
    await until(lambda: hooks.fired)
    stop.spare()
    ran = await playing
    assert ran.result_texts() == ["changed a"]
    assert ran.of(CallEnded)[0].status == Status.OK
    assert ran.end.reason == Reason.END_TURN


async def test_stopping_the_run_while_a_hook_runs_leaves_a_valid_transcript_and_no_hook():
    for event in ("PreToolUse", "PostToolUse", "Stop"):
        hooks, rig = Hanging({event: Verdict()}), Rig()
        playing = asyncio.ensure_future(
            play([call("change", what="a")], "done", hooks=hooks, rig=rig, mode=Mode.BYPASS)
        )
        await until(lambda fired=hooks.fired: fired)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        messages = [record["message"] for record in rig.store.records if record["type"] == "message"]
        check_transcript(messages)
        assert playing.cancelled()
