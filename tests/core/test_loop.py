"""The loop: states, endings, and a transcript that is valid whatever happens."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from nbagent.core.drive import drive
from nbagent.core.endings import refused
from nbagent.core.errors import Rejected, Transient
from nbagent.core.events import (
    ApprovalAsked,
    CallEnded,
    CallStarted,
    Noted,
    Reason,
    ReplyDiscarded,
    RequestSent,
    RetryScheduled,
    RunEnded,
    State,
    Status,
    TextDelta,
)
from nbagent.core.events_json import to_json
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Usage, text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Answered, Question
from nbagent.core.run import Agent, Stop
from nbagent.core.tools import Toolset, tool
from nbagent.models.scripted import ScriptedModel, Turn, call, say, think
from tests.core.rig import Person, Rig, check_transcript, play


async def test_a_text_reply_ends_the_run_with_end_turn():
    ran = await play("Hello there.")
    assert ran.end.reason == Reason.END_TURN
    assert ran.end.text == "Hello there."
    assert "".join(e.text for e in ran.of(TextDelta)) == "Hello there."


async def test_states_go_think_act_observe_and_end_in_done():
    ran = await play([say("looking"), call("look", what="a")], "done")
    states = [str(e.state) for e in ran.events]
    walked = [s for i, s in enumerate(states) if i == 0 or states[i - 1] != s]
    assert walked == [State.THINK, State.ACT, State.OBSERVE, State.THINK, State.DONE]


async def test_every_event_is_json_able():
    ran = await play([think("hm"), call("change", what="x")], "done", person=Person(True))
    for event in ran.events:
        assert json.loads(json.dumps(to_json(event)))["type"] == event.type


async def test_results_of_one_reply_go_in_one_message_in_call_order_allowed_denied_and_raising_alike():
    turn = [call("look", what="1"), call("change", what="2"), call("crash"), call("look", what="4")]
    ran = await play(turn, "done", person=Person(Answered(False, words="not that")))
    results = ran.messages[2]["content"]
    assert [b["tool_use_id"] for b in results] == [b["id"] for b in turn]
    assert [b.get("is_error", False) for b in results] == [False, True, True, False]
    assert "not that" in ran.result_texts()[1]
    assert ran.end.reason == Reason.END_TURN


async def test_read_only_calls_of_one_reply_run_side_by_side_and_others_in_order():
    rig = Rig()
    ran = await play(
        [call("look", what="1"), call("look", what="2"), call("change", what="3"), call("look", what="4")],
        "done", rig=rig, mode=Mode.BYPASS,
    )  # fmt: skip
    kinds = [(e.type, e.name) for e in ran.events if isinstance(e, CallStarted | CallEnded)]
    assert kinds[:2] == [("call_started", "look"), ("call_started", "look")]
    assert rig.ran[2:] == ["change 3", "look 4"]


async def test_a_bare_deny_ends_the_run_and_skips_the_rest():
    rig = Rig()
    ran = await play([call("change", what="a"), call("change", what="b")], person=Person(False), rig=rig)
    assert ran.end.reason == Reason.DENIED
    assert rig.ran == []
    assert "Denied" in ran.result_texts()[0]
    assert "Not started" in ran.result_texts()[1]


async def test_allow_from_now_on_keeps_the_exact_rule_and_the_next_such_call_does_not_ask():
    person = Person(Answered(True, rule="change"))
    ran = await play([call("change", what="a")], [call("change", what="b")], "done", person=person)
    assert len(ran.of(ApprovalAsked)) == 1
    assert person.asked[0].offers[-1] == "change"
    assert ran.rig.ran == ["change a", "change b"]


async def test_what_is_shown_in_the_approval_is_what_runs():
    person = Person(True)
    await play([call("change", what="x = 1")], "done", person=person)
    assert person.asked[0].preview.body == "x = 1"
    assert person.asked[0].input == {"what": "x = 1"}


async def test_where_nobody_is_there_a_denial_does_not_end_the_run_without_a_word_to_the_model():
    person = Person(Answered(False, words="nobody is there", by="policy"), present=False)
    ran = await play([call("change", what="a")], "done", person=person)
    assert ran.end.reason == Reason.END_TURN
    assert "nobody is there" in ran.result_texts()[0]


async def test_an_unknown_tool_is_answered_with_the_names_of_the_real_ones():
    ran = await play([call("chnge", what="a")], "done")
    assert "look, change" in ran.result_texts()[0]
    assert ran.of(CallEnded)[0].status == Status.INVALID


async def test_wrong_arguments_are_answered_with_the_signature():
    ran = await play([call("change", where="a")], "done")
    assert "what: field required" in ran.result_texts()[0]
    assert "change(what: string)" in ran.result_texts()[0]


async def test_a_cut_reply_runs_none_of_its_calls_and_tells_the_model():
    rig = Rig()
    turn = Turn([call("look", what="1"), call("look", what="2")], stop_reason="max_tokens")
    ran = await play(turn, "done", rig=rig)
    assert rig.ran == []
    assert all("smaller pieces" in text for text in ran.result_texts())
    assert ran.end.reason == Reason.END_TURN


async def test_two_cut_replies_in_a_row_end_the_run():
    turn = Turn([call("look")], stop_reason="max_tokens")
    ran = await play(turn, turn)
    assert ran.end.reason == Reason.MAX_TOKENS


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [
        ("refusal", Reason.REFUSAL),
        ("model_context_window_exceeded", Reason.CONTEXT_FULL),
        ("invented_reason", Reason.ERROR),
        ("stop_sequence", Reason.END_TURN),
    ],
)
async def test_each_stop_reason_ends_the_run_with_its_own_reason_and_a_sentence(stop_reason, expected):
    ran = await play(Turn("some text", stop_reason=stop_reason))
    assert ran.end.reason == expected
    assert ran.end.sentence


async def test_a_text_that_is_cut_at_the_output_limit_goes_on_and_the_answer_is_all_of_it():
    """Seed, stop_reason max_tokens: inside text the model goes on; the answer is whole."""
    ran = await play(Turn("The first half, ", stop_reason="max_tokens"), "and the second.")
    assert ran.end.reason == Reason.END_TURN
    assert ran.end.text == "The first half, and the second."
    assert "Go on exactly where it stopped" in ran.messages[2]["content"][0]["text"]
    assert "output limit" in ran.of(Noted)[0].text


async def test_a_text_that_is_cut_again_and_again_ends_with_all_of_its_pieces():
    ran = await play(*[Turn(str(n), stop_reason="max_tokens") for n in range(4)])
    assert ran.end.reason == Reason.MAX_TOKENS
    assert ran.end.text == "0123"
    assert "smaller steps" in ran.end.next_step


async def test_a_reply_that_is_cut_while_it_thinks_is_asked_for_less_once():
    cut = Turn([think("hm")], stop_reason="max_tokens")
    ran = await play(cut, "short")
    assert ran.end.text == "short"
    ran = await play(cut, cut)
    assert ran.end.reason == Reason.MAX_TOKENS


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"explanation": "It is not safe."}, "The model refused to answer this. It is not safe."),
        ({"category": "general_harms"}, "The model refused to answer this. It is about: general harms."),
        (None, "The model refused to answer this."),
    ],
)
def test_a_refusal_says_why_as_far_as_the_server_does(details, said):
    assert refused(details or {}) == said


@pytest.mark.parametrize("stop_reason", ["model_context_window_exceeded", "invented_reason", "refusal"])
async def test_a_call_in_a_reply_that_ends_the_run_is_answered_as_not_started(stop_reason):
    rig = Rig()
    ran = await play(Turn([call("look")], stop_reason=stop_reason), rig=rig)
    assert rig.ran == []
    assert "Not started" in ran.result_texts()[0]


async def test_pause_turn_asks_again_with_the_same_history_and_counts_as_a_turn():
    ran = await play(Turn("wait", stop_reason="pause_turn"), "done", limits=Limits(max_turns=2))
    assert [m["role"] for m in ran.messages] == ["user", "assistant", "assistant"]
    assert ran.end.reason == Reason.END_TURN
    assert ran.end.turns == 2


async def test_stop_reason_tool_use_without_a_call_ends_with_a_note_and_no_empty_message():
    ran = await play(Turn("I will call run", stop_reason="tool_use"))
    assert ran.end.reason == Reason.END_TURN
    assert "announced a call" in ran.end.sentence


async def test_an_empty_end_after_tools_is_asked_once_for_words_then_summed_up():
    empty = Turn([], stop_reason="end_turn")
    ran = await play([say("look"), call("look", what="a")], empty, empty)
    assert len(ran.of(Noted)) == 1
    assert ran.end.reason == Reason.END_TURN
    assert "look a" in ran.end.sentence


async def test_max_turns_ends_with_what_was_done_and_a_next_step():
    turns = [[call("look", what=str(i))] for i in range(3)]
    ran = await play(*turns, limits=Limits(max_turns=3))
    assert ran.end.reason == Reason.MAX_TURNS
    assert "look 0, look 1, look 2" in ran.end.sentence
    assert "--max-turns" in ran.end.next_step
    assert ran.end.text == "Not finished. What ran: look 0, look 1, look 2."  # the model was asked, and said nothing
    assert "gave no summary" in ran.of(Noted)[-1].text


async def test_at_the_limit_of_turns_the_model_says_what_is_done_and_left_and_runs_nothing():
    """Seed: "When max_turns is reached … implement a fallback path: summarize partial progress"."""
    ran = await play(
        [call("look", what="a")], [say("Done: a. Left: b."), call("look", what="b")], limits=Limits(max_turns=1)
    )
    assert ran.end.reason == Reason.MAX_TURNS
    assert ran.end.text == "Done: a. Left: b."
    assert ran.rig.ran == ["look a"]
    assert ran.end.turns == 1
    assert "Not started" in ran.result_texts()[-1]


async def test_the_model_is_told_when_few_turns_are_left():
    turns = [[call("count")] for _ in range(10)]
    ran = await play(*turns, "left: all", limits=Limits(max_turns=10), rules=["allow count"])
    told = [m for m in ran.messages if "3 turns are left of 10" in str(m["content"])]
    assert len(told) == 1
    assert ran.end.text == "left: all"


async def test_the_model_is_told_once_when_most_of_the_budget_is_used():
    turn = Turn([call("count")], usage=Usage(input=450))
    ran = await play(turn, turn, "done", limits=Limits(tokens=1000), rules=["allow count"])
    assert sum("80% of the budget (1,000 tokens)" in str(m["content"]) for m in ran.messages) == 1


async def test_a_token_budget_ends_the_run_before_the_next_turn():
    turn = Turn([call("look")], usage=Usage(input=900, output=200))
    ran = await play(turn, limits=Limits(tokens=1000))
    assert ran.end.reason == Reason.BUDGET
    assert "1,100 used" in ran.end.sentence


async def test_a_money_budget_without_a_known_price_falls_back_to_tokens():
    turn = Turn([call("look")], usage=Usage(input=150_000))
    ran = await play(turn, limits=Limits(usd=1.0))
    assert ran.end.reason == Reason.BUDGET
    assert "price is unknown" in ran.end.sentence


async def test_should_continue_ends_the_run_with_its_sentence():
    ran = await play([call("look")], should_continue=lambda r: f"enough after {r.turn}")
    assert ran.end.reason == Reason.HOOK
    assert ran.end.sentence == "enough after 1"


async def test_a_transient_failure_is_retried_and_nothing_of_the_broken_reply_is_kept():
    ran = await play(Turn("half a", cut=3), Transient("overloaded", retry_after=86_400), "whole")
    assert ran.of(ReplyDiscarded)
    waits = [e.wait for e in ran.of(RetryScheduled)]
    assert len(waits) == 2
    assert max(waits) <= 1
    assert [m["role"] for m in ran.messages] == ["user", "assistant"]
    assert ran.end.text == "whole"


async def test_retries_end_with_the_last_error_and_the_number_of_tries():
    ran = await play(*[Transient("overloaded")] * 4)
    assert ran.end.reason == Reason.ERROR
    assert ran.end.sentence == "overloaded Tried 4 times."
    assert ran.model.played == 4


async def test_a_refused_request_is_not_retried():
    ran = await play(Rejected("no such model"))
    assert ran.model.played == 1
    assert ran.end.sentence == "no such model"


async def test_a_call_never_runs_twice_when_its_reply_broke_off():
    rig = Rig()
    await play(Turn([call("change", what="a")], cut=5), [call("change", what="a")], "done", rig=rig, mode=Mode.BYPASS)
    assert rig.ran == ["change a"]


async def test_bad_json_input_survives_as_an_error_result_with_the_text_that_was_sent():
    ran = await play(model=RawInput('{"what": }'))
    assert '{"what": }' in ran.result_texts()[0]
    assert ran.messages[1]["content"][0]["input"] == {}


@pytest.mark.parametrize("raw", ["[1, 2]", '"x"', "null", "7"])
async def test_input_that_is_no_object_is_kept_as_one_and_answered(raw):
    ran = await play(model=RawInput(raw))
    assert "must be a JSON object" in ran.result_texts()[0]
    assert ran.messages[1]["content"][0]["input"] == {}


async def test_twice_encoded_input_is_decoded():
    ran = await play(model=RawInput(r'"{\"what\": \"a\"}"'), mode=Mode.BYPASS)
    assert ran.rig.ran == ["change a"]


class RawInput(ScriptedModel):
    """Calls `change` with `raw` as the text of its input, then ends with "done"."""

    def __init__(self, raw: str) -> None:
        super().__init__([[call("change", what="replaced")], "done"])
        self._raw = raw

    async def stream(self, request):
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                if event.get("delta", {}).get("type") == "input_json_delta":
                    yield {**event, "delta": {"type": "input_json_delta", "partial_json": self._raw}}
                    self._raw = ""
                else:
                    yield event


async def test_same_call_and_result_twice_asks_the_person_who_can_stop():
    turns = [[call("look", what="a")] for _ in range(2)]
    person = Person(replies=["End the run"])
    ran = await play(*turns, person=person)
    assert ran.end.reason == Reason.REPEATED
    assert person.questions[0].choices == ("Go on", "End the run")


async def test_the_persons_words_reach_a_model_that_goes_in_circles():
    turns = [[call("look", what="a")] for _ in range(2)]
    ran = await play(*turns, "ok", person=Person(replies=["look at b instead"]))
    assert "look at b instead" in ran.messages[4]["content"][-1]["text"]
    assert ran.end.reason == Reason.END_TURN


async def test_where_nobody_is_there_a_circle_is_told_at_the_second_and_ended_at_the_third():
    turns = [[call("look", what="a")] for _ in range(3)]
    ran = await play(*turns, person=Person(present=False))
    assert ran.end.reason == Reason.REPEATED
    assert "same call with the same result" in ran.messages[4]["content"][-1]["text"]
    assert ran.end.turns == 3


async def test_a_b_a_b_counts_as_a_circle():
    turns = [[call("look", what=w)] for w in "abab"]
    person = Person(replies=["End the run"])
    ran = await play(*turns, person=person)
    assert ran.end.reason == Reason.REPEATED
    assert ran.end.turns == 4


async def test_the_same_call_with_another_result_is_no_circle():
    turns = [[call("count")] for _ in range(4)]
    ran = await play(*turns, "done", person=Person(present=False))
    assert ran.end.reason == Reason.END_TURN


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_cooperative_stop_lets_the_running_call_end_and_skips_the_next():
    stop = Stop()

    def on_event(event):
        if isinstance(event, CallStarted):
            stop.ask()

    ran = await play(
        [call("change", what="a"), call("change", what="b")], stop=stop, mode=Mode.BYPASS, on_event=on_event
    )
    assert ran.rig.ran == ["change a"]
    assert ran.end.reason == Reason.INTERRUPTED
    assert "Not started" in ran.result_texts()[1]


async def test_closing_the_generator_stops_a_running_call_and_completes_the_transcript():
    rig = Rig()
    tools = rig.tools()
    session = rig.session(tools)
    agent = Agent(ScriptedModel([[call("hang"), call("look")]]), tools, Policy(), Person())
    async with aclosing(run(agent, session, [text_block("x")])) as events:
        async for event in events:
            if isinstance(event, CallStarted) and event.name == "hang":
                break
    check_transcript(session.transcript)


async def _driven(turns, *, seconds=None, stop_when=None, rig=None, cancel=False):
    rig = rig or Rig()
    tools = rig.tools()
    session = rig.session(tools)
    agent = Agent(ScriptedModel(turns), tools, Policy(Mode.BYPASS), Person(), Limits(seconds=seconds))
    stop, shown = Stop(), []
    events = run(agent, session, [text_block("x")], stop=stop)
    task = asyncio.create_task(drive(events, shown.append, agent=agent, session=session, stop=stop))
    if stop_when:
        await asyncio.wait_for(rig.hanging.wait(), 5)
        task.cancel() if cancel else stop.now()
    ended = await asyncio.wait_for(task, 5)
    check_transcript(session.transcript)
    assert shown[-1] is ended
    return ended, session, shown


@pytest.mark.parametrize("cancel", [False, True], ids=["stop", "kernel interrupt"])
async def test_stopped_in_a_call_the_three_calls_read_interrupted_skipped_skipped(cancel):
    ended, session, _ = await _driven(
        [[call("hang"), call("change", what="b"), call("change", what="c")]], stop_when=True, cancel=cancel
    )
    assert ended.reason == Reason.INTERRUPTED
    texts = [b["content"][0]["text"] for b in session.transcript[-1]["content"]]
    assert texts[0].startswith("Interrupted")
    assert all(t.startswith("Not started") for t in texts[1:])


async def test_the_time_limit_ends_a_run_with_its_own_reason():
    ended, _, _ = await _driven([[call("hang")]], seconds=0.05)
    assert ended.reason == Reason.TIMEOUT


async def test_a_run_that_the_time_limit_ends_names_what_had_begun():
    rig = Rig()
    tools = rig.tools()
    agent = Agent(ScriptedModel([[call("hang")]]), tools, Policy(Mode.BYPASS), Person(), Limits(seconds=0.05))
    session, stop = rig.session(tools), Stop()
    ended = await drive(
        run(agent, session, [text_block("x")], stop=stop), lambda _: None, agent=agent, session=session, stop=stop
    )
    assert ended.reason == Reason.TIMEOUT
    assert "What had begun by then: hang" in ended.sentence
    assert "%agent continue" in ended.next_step
    check_transcript(session.transcript)


async def test_after_a_stop_the_next_run_goes_on_with_a_valid_history():
    rig = Rig()
    _, session, _ = await _driven([[call("hang")]], stop_when=True, rig=rig)
    ran = await play("fine", rig=rig, session=session)
    assert ran.end.reason == Reason.END_TURN


async def test_requests_say_only_what_is_new():
    ran = await play([call("look", what="a")], "done")
    first, second = ran.of(RequestSent)
    assert [m["role"] for m in first.new] == ["user"]
    assert second.new[0]["content"][0]["type"] == "tool_result"
    assert first.prefix != second.prefix


async def test_the_log_has_every_message_and_no_deltas():
    rig = Rig()
    await _driven([[call("look")], "done"], rig=rig)
    kinds = [r["type"] for r in rig.store.records]
    assert kinds[0] == "session"
    assert kinds.count("message") == 4
    events = [r["event"]["type"] for r in rig.store.records if r["type"] == "event"]
    assert "text_delta" not in events
    assert events[-1] == "run_ended"


async def test_middleware_sees_and_may_hold_back_every_event():
    seen = []

    async def without_text(events):
        async with aclosing(events):
            async for event in events:
                seen.append(event.type)
                if not isinstance(event, TextDelta):
                    yield event

    rig = Rig()
    tools = rig.tools()
    session = rig.session(tools)
    agent = Agent(ScriptedModel(["hello"]), tools, Policy(), Person())
    shown, stop = [], Stop()
    events = run(agent, session, [text_block("x")], stop=stop)
    ended = await drive(events, shown.append, agent=agent, session=session, stop=stop, middleware=[without_text])
    assert "text_delta" in seen
    assert "text_delta" not in [e.type for e in shown]
    assert ended.reason == Reason.END_TURN


def test_run_ended_is_the_last_event_kind():
    assert RunEnded.type == "run_ended"


async def test_a_tool_that_raises_what_nobody_expects_still_answers_its_call():
    async def group(call):
        """Raise a group."""
        raise BaseExceptionGroup("odd", [KeyboardInterrupt()])

    rig = Rig()
    tools = Toolset([*rig.tools().values(), tool(group)])
    agent = Agent(ScriptedModel([[call("group")], "done"]), tools, Policy(), Person())
    session = rig.session(tools)
    events = [e async for e in run(agent, session, [text_block("x")])]
    check_transcript(session.transcript)
    assert events[-1].reason == Reason.END_TURN


async def test_a_tool_whose_description_fails_is_an_error_result_and_not_a_dead_run():
    async def odd(call, what: str = ""):
        """Be odd."""

    rig = Rig()
    made = tool(title=lambda given: given["missing"])(odd)
    tools = Toolset([made])
    agent = Agent(ScriptedModel([[call("odd")], "done"]), tools, Policy(), Person())
    session = rig.session(tools)
    events = [e async for e in run(agent, session, [text_block("x")])]
    assert "odd failed: KeyError" in session.transcript[2]["content"][0]["content"][0]["text"]
    assert events[-1].reason == Reason.END_TURN


@pytest.mark.parametrize("value", [[{"a": 1}, {"a": 2}], {"type": "text"}, 7, [1, 2], [{"type": "document"}]])
async def test_whatever_a_tool_returns_only_blocks_that_the_api_takes_reach_the_transcript(value):
    async def odd(call):
        """Return something."""
        return value

    rig = Rig()
    tools = Toolset([tool(odd)])
    agent = Agent(ScriptedModel([[call("odd")], "done"]), tools, Policy(), Person())
    session = rig.session(tools)
    _ = [e async for e in run(agent, session, [text_block("x")])]
    (block,) = session.transcript[2]["content"][0]["content"]
    assert block["type"] == "text"
    assert json.loads(block["text"]) == value


async def test_two_calls_with_one_id_or_with_none_get_ids_of_their_own():
    twice = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"what": "a"}}
    none = {"type": "tool_use", "name": "look", "input": {"what": "b"}}

    class Same(ScriptedModel):
        def _blocks(self, content):
            return content if isinstance(content, list) else super()._blocks(content)

    ran = await play(model=Same([[twice, twice, none], [twice], "done"]), person=Person(replies=["Go on"]))
    ids = [b["id"] for m in ran.messages for b in m["content"] if b["type"] == "tool_use"]
    assert len(set(ids)) == 4
    assert len(ran.rig.ran) == 4


async def test_a_question_of_a_tool_is_an_event_and_its_answer_the_tools():
    async def wonder(call):
        """Ask."""
        return await call.ask(Question("q1", "Which?", ("a", "b")))

    rig = Rig()
    tools = Toolset([tool(wonder)])
    agent = Agent(ScriptedModel([[call("wonder")], "done"]), tools, Policy(), Person(replies=["b"]))
    session = rig.session(tools)
    events = [e async for e in run(agent, session, [text_block("x")])]
    assert [e.type for e in events if e.type.startswith("question")] == ["question_asked", "question_answered"]
    assert session.transcript[2]["content"][0]["content"][0]["text"] == "b"


async def test_read_calls_that_were_collected_do_not_run_after_a_stop():
    stop = Stop()

    def on_event(event):
        if event.type == "call_decided":
            stop.ask()

    ran = await play([call("look", what="a"), call("look", what="b")], stop=stop, on_event=on_event)
    assert ran.rig.ran == []
    assert ran.end.reason == Reason.INTERRUPTED
