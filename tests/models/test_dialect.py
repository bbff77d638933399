from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.ports import Request
from nbagent.models.dialect import Dialect, marked, request_body

HOME = Dialect.of("claude-sonnet-5-5", home=True)
text = st.sampled_from(["", " ", "a", "ü"])
block = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, text),
    st.just({"type": "tool_result", "tool_use_id": "t", "content": "r"}),
    st.just({"type": "thinking", "thinking": "x", "signature": "s"}),
)
message = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "system"]),
    st.one_of(text, st.lists(block, max_size=4)),
)


@pytest.mark.slow
@given(st.lists(message, max_size=12))
def test_markers_never_change_the_transcript_and_are_at_most_four(messages):
    before = copy.deepcopy(messages)
    body = request_body("claude-sonnet-5-5", Request("sys", (), messages), HOME)
    assert messages == before
    assert json.dumps(body).count('"cache_control"') <= 4
    assert [m["role"] for m in body["messages"]] == [m["role"] for m in messages]


def test_the_last_two_messages_of_the_user_are_marked_on_their_last_cacheable_block():
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": " "}]},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "three"},
    ]
    out = marked(messages)
    mark = {"type": "ephemeral"}
    assert out[0] is messages[0]
    assert out[2]["content"][0] == {"type": "text", "text": "x", "cache_control": mark}
    assert "cache_control" not in out[2]["content"][1]
    assert out[4]["content"] == [{"type": "text", "text": "three", "cache_control": mark}]


def test_messages_before_the_marked_ones_are_the_same_objects():
    messages = [{"role": "user", "content": str(i)} for i in range(1000)]
    assert all(a is b for a, b in zip(marked(messages)[:-2], messages[:-2], strict=True))


def test_no_sampling_parameter_is_ever_sent_and_thinking_is_summarized():
    body = request_body("claude-sonnet-5-5", Request("s", (), [{"role": "user", "content": "a"}]), HOME)
    assert not {"temperature", "top_p", "top_k", "tool_choice"} & set(body)
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}


def test_the_output_limit_of_a_known_model_is_kept():
    asked = Request("s", (), [{"role": "user", "content": "a"}], max_tokens=10**9)
    assert request_body("claude-sonnet-5-5", asked, HOME)["max_tokens"] == 128_000
    assert request_body("qwen", asked, HOME)["max_tokens"] == 10**9


def test_a_blank_system_prompt_is_left_out():
    assert "system" not in request_body("m", Request(" ", (), []), HOME)


def test_a_model_of_others_gets_no_optional_field_and_the_key_in_both_headers():
    other = Dialect.of("qwen", home=False)
    body = request_body("qwen", Request("sys", (), [{"role": "user", "content": "a"}]), other)
    assert body["system"] == "sys"
    assert "cache_control" not in json.dumps(body)
    assert "thinking" not in body
    assert other.headers("k") == {"x-api-key": "k"}
    assert HOME.headers("k") == {}


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "max_tokens: too big"), (500, "thinking: unknown field"), (400, "Invalid `signature` in `thinking` block")],
)
def test_a_refusal_for_another_reason_stands(status, said):
    assert Dialect.of("claude-sonnet-5-5", home=False).simpler(status, said) is None


def test_the_home_server_is_never_asked_in_another_way():
    assert HOME.simpler(400, "thinking: Extra inputs are not permitted") is None


def test_each_simplification_is_made_once():
    first = Dialect.of("claude-sonnet-5-5", home=False)
    second = first.simpler(400, "anthropic-version: not valid")
    assert second is not None
    assert second.headers("")["anthropic-version"] == "2023-06-01"
    assert second.simpler(400, "anthropic-version: not valid") is None
    third = second.simpler(422, "system.0.cache_control: Extra inputs are not permitted")
    assert third is not None
    assert (third.thinking, third.caching) == (False, False)
    assert third.simpler(422, "cache_control") is None
