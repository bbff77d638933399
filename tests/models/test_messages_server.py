"""The test server is strict: each rule of the API that we rely on is refused when broken, with the API's words."""

from __future__ import annotations

import base64
import copy
import struct
import threading

import pytest

from nbagent.core.errors import Rejected, Transient
from tests.models.conftest import reply_of, request
from tests.support.messages_rules import Memory, Refusal, check
from tests.support.messages_server import MessagesServer, Reply, call

USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
MARK = {"type": "ephemeral"}


def png(width: int, height: int) -> dict:
    data = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()},
    }


def body(*messages: dict, **fields) -> dict:
    return {"model": "m", "max_tokens": 10, "messages": list(messages), **fields}


def user(*blocks: dict | str) -> dict:
    return {"role": "user", "content": blocks[0] if blocks and isinstance(blocks[0], str) else list(blocks)}


def assistant(*blocks: dict) -> dict:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str, **more) -> dict:
    return {"type": "text", "text": value, **more}


@pytest.mark.parametrize(
    "good",
    [
        body(user("Hi")),
        body(user("Hi"), assistant(USE), user(RESULT, text("and"))),
        body(user("Hi"), {"role": "system", "content": "mode: plan"}),
        body(
            user(
                "Hi",
            ),
            user(text("again", cache_control=MARK)),
            thinking={"type": "adaptive", "display": "summarized"},
        ),
        body(user(png(8000, 10))),
    ],
)
def test_what_the_api_takes_is_taken(good):
    check(good)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (body(), "at least one message"),
        (body(user("Hi"), temperature=1), "temperature"),
        (body(user("Hi"), surprise=1), "surprise: Extra inputs"),
        (body(user("Hi"), tool_choice={"type": "any"}), "forced tool use"),
        (body(user("Hi"), thinking={"type": "enabled", "budget_tokens": 1024}), "not supported"),
        (body(user("Hi"), assistant(text("pre"))), "prefill"),
        (body(assistant(text("a")), user("Hi")), "first message"),
        (body(user(text(""))), "non-empty"),
        (body(user(text(" \n"))), "non-whitespace"),
        (body(user()), "non-empty content"),
        (body(user("Hi"), assistant(USE), user("no result")), "without `tool_result` blocks immediately after: t1"),
        (body(user("Hi"), assistant(USE)), "prefill"),
        (body(user("Hi"), assistant(USE), user(text("first"), RESULT)), "must come first"),
        (body(user("Hi"), assistant(USE), user(RESULT, RESULT)), "single result"),
        (body(user(RESULT)), "unexpected `tool_use_id`"),
        (body(user("Hi"), assistant(USE, USE), user(RESULT)), "unique"),
        (body(user("Hi"), assistant({**USE, "input": [1]}), user(RESULT)), "valid dictionary"),
        (body(user("Hi"), assistant(USE), user({**RESULT, "content": [text("")]})), "non-empty"),
        (body(user(*[text("x", cache_control=MARK)] * 5)), "maximum of 4 blocks"),
        (body(user("a\ud800")), "surrogate"),
        (body(user(png(8001, 10))), "8000 pixels"),
        (body(user(*[png(2001, 10)] * 21)), "2000 pixels"),
        (body(user({"type": "nonsense"})), "does not match"),
        (body(user("Hi"), tools=[{"name": "a b", "input_schema": {"type": "object"}}]), "pattern"),
        (body(user("Hi"), tools=[{"name": "a", "input_schema": {}}]), "input_schema"),
    ],
)
def test_what_the_api_refuses_is_refused(bad, said):
    with pytest.raises(Refusal, match=said):
        check(bad)


def test_thinking_must_come_back_byte_for_byte_in_its_own_conversation():
    memory = Memory()
    asked = body(user("Hi"), system="s")
    content = [{"type": "thinking", "thinking": "hm"}, dict(USE)]
    memory.sign(asked, content)
    good = body(user("Hi"), assistant(*content), user(RESULT), system="s")
    memory.check(good)
    for change, said in [
        (lambda b: b["messages"][1]["content"][0].update(thinking="HM"), "Invalid `signature`"),
        (lambda b: b.update(system="other"), "different conversation"),
        (lambda b: b["messages"][1]["content"].pop(0), "left out"),
    ]:
        bad = copy.deepcopy(good)
        change(bad)
        with pytest.raises(Refusal, match=said):
            memory.check(bad)


@pytest.mark.slow
async def test_a_refused_request_takes_no_reply_and_is_listed(model_at):
    with MessagesServer(["kept"]) as server:
        model = model_at(server.url)
        with pytest.raises(Rejected, match="non-empty"):
            await reply_of(model, request({"role": "user", "content": [{"type": "text", "text": ""}]}))
        with pytest.raises(AssertionError, match="non-empty"):
            server.assert_clean()
        assert (await reply_of(model)).content[0]["text"] == "kept"


@pytest.mark.slow
async def test_a_request_waits_for_a_reply_that_is_pushed(model_at):
    with MessagesServer() as server:

        def play() -> None:
            seen = server.wait_for_requests(1)[0]
            server.push(Reply([call("look", said=seen.body["messages"][0]["content"][0]["text"])]))

        player = threading.Thread(target=play)
        player.start()
        reply = await reply_of(model_at(server.url), request("Hello"))
        player.join()
    assert reply.content[0]["input"] == {"said": "Hello"}


@pytest.mark.slow
async def test_a_script_that_has_run_out_is_told_after_its_patience(model_at):
    with MessagesServer(patience=0.05) as server, pytest.raises(Transient, match="no more replies"):
        await reply_of(model_at(server.url))


def test_waiting_for_requests_that_do_not_come_ends():
    with MessagesServer() as server, pytest.raises(AssertionError, match="0 requests came"):
        server.wait_for_requests(1, timeout=0.01)
