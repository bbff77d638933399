from __future__ import annotations

import asyncio

import pytest

from nbagent.core.errors import Rejected, Transient
from nbagent.core.messages import Usage
from nbagent.models.scripted import (
    ScriptedModel,
    Turn,
    call,
    last_results,
    prompt_text,
    result_of,
    result_text,
    say,
    think,
)
from tests.models.conftest import reply_of, request


def answered(*pairs: tuple[str, str]) -> list[dict]:
    """A transcript of a prompt and one turn of calls (tool, text of its result)."""
    calls = [call(tool) for tool, _ in pairs]
    results = [
        {"type": "tool_result", "tool_use_id": c["id"], "content": [{"type": "text", "text": text}]}
        for c, (_, text) in zip(calls, pairs, strict=True)
    ]
    return [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


async def test_each_request_gets_the_next_turn_whatever_its_form():
    look = call("look", depth=1)
    model = ScriptedModel(["text", say("block"), [think("hm"), look], Turn("cut off", stop_reason="max_tokens")])
    replies = [await reply_of(model) for _ in range(4)]
    assert all(reply.complete for reply in replies)
    assert [r.content[-1].get("text") for r in replies] == ["text", "block", None, "cut off"]
    assert replies[2].content[-1] == look
    assert [r.stop_reason for r in replies] == ["end_turn", "end_turn", "tool_use", "max_tokens"]
    model.assert_complete()


async def test_a_turn_may_answer_with_what_the_tools_returned():
    model = ScriptedModel([lambda transcript: f"It says {last_results(transcript)}"])
    reply = await reply_of(model, request(*answered(("look", "3 rows"), ("look", "4 rows"))))
    assert reply.content[0]["text"] == "It says ['3 rows', '4 rows']"


async def test_asking_for_more_than_the_script_has_is_a_clear_error():
    model = ScriptedModel(["only"], name="demo")
    await reply_of(model)
    with pytest.raises(Rejected, match="'demo' has 1 turns, and one more was asked for"):
        await reply_of(model)


async def test_turns_that_were_not_asked_for_are_an_error_at_the_end():
    model = ScriptedModel(["one", "two"])
    await reply_of(model)
    with pytest.raises(AssertionError, match="has 2 turns, 1 were played"):
        model.assert_complete()


async def test_a_turn_may_be_a_failure():
    model = ScriptedModel([Transient("overloaded", retry_after=2), "fine"])
    with pytest.raises(Transient, match="overloaded"):
        await reply_of(model)
    assert (await reply_of(model)).complete


async def test_a_turn_may_be_cut():
    reply = await reply_of(ScriptedModel([Turn("never whole", cut=3)]))
    assert reply.started
    assert not reply.complete


async def test_a_call_that_is_played_twice_gets_two_ids():
    again = call("look")
    model = ScriptedModel([again, again])
    one, two = (await reply_of(model)).content[0], (await reply_of(model)).content[0]
    assert one["id"] != two["id"]
    assert one["name"] == two["name"] == "look"


async def test_the_event_loop_breathes_between_pieces():
    done: list[str] = []

    async def other() -> None:
        done.append("other")

    async for event in ScriptedModel(["text"]).stream(request("Hi")):
        if event["type"] == "message_start":
            task = asyncio.create_task(other())
        elif event["type"] == "message_stop":
            done.append("stop")
    await task
    assert done == ["other", "stop"]


async def test_usage_is_zero_unless_given_and_has_no_price():
    model = ScriptedModel(["a", Turn("b", usage=Usage(1, 2, 3, 4))])
    assert Usage.of((await reply_of(model)).usage) == Usage()
    assert Usage.of((await reply_of(model)).usage) == Usage(1, 2, 3, 4)
    assert model.cost(Usage(10**6)) is None


def test_an_argument_may_have_any_name():
    assert call("add", tool="x", name="y", self="z")["input"] == {"tool": "x", "name": "y", "self": "z"}


def test_results_are_found_by_tool_and_age():
    transcript = [*answered(("look", "old"), ("run", "ran")), *answered(("look", "new"))[1:]]
    assert result_of(transcript, "look") == "new"
    assert result_of(transcript, "look", last=2) == "old"
    assert result_of(transcript, "run") == "ran"
    with pytest.raises(LookupError, match="0 results of 'draw'"):
        result_of(transcript, "draw")


def test_texts_of_results_and_prompts():
    assert last_results([{"role": "user", "content": "Go"}]) == []
    assert result_text({"type": "tool_result", "content": "plain"}) == "plain"
    assert result_text({"type": "tool_result"}) == ""
    image = {"type": "image", "source": {}}
    assert result_text({"type": "tool_result", "content": [{"type": "text", "text": "a"}, image]}) == "a\n\n[image]"
    assert prompt_text(answered(("look", "x"))) == "Go"
    assert prompt_text([]) == ""
