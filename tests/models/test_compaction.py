"""Summing up by the API: what is sent, what comes back, and what other servers get in its place."""

from __future__ import annotations

import pytest

from nbagent.core.errors import Rejected
from nbagent.core.events import Compacted, Reason
from nbagent.core.ports import Request
from nbagent.core.seeding import seed
from nbagent.core.summary import Compaction
from nbagent.models.dialect import Dialect, request_body
from tests.core.rig import play
from tests.models.conftest import request
from tests.support.messages_server import MessagesServer, Reply, Status, calls

BLOCK = {"type": "compaction", "content": "what was so far", "encrypted_content": None, "signature": "c2ln"}
FULL = {"input_tokens": 900, "output_tokens": 10}


@pytest.mark.slow
async def test_the_api_is_asked_for_its_summary_and_gets_its_block_back_first_of_all(model_at):
    look = calls("look", what="a")
    look.usage = FULL
    with MessagesServer([look, Reply([dict(BLOCK)], stop_reason="compaction"), "done"]) as server:
        ran = await play(model=model_at(server.url, compaction=True), compaction=Compaction(window=lambda _: 1_000))
        server.assert_clean()
        _, asked, last = server.requests
    assert asked.body["compaction"] == {"type": "summarize"}
    assert asked.body["messages"][-1]["role"] == "user"
    assert last.body["messages"][0]["role"] == "assistant"
    assert last.body["messages"][0]["content"][0]["signature"] == "c2ln"
    assert ran.of(Compacted)[0].summary == "what was so far"
    assert ran.end.reason == Reason.END_TURN


@pytest.mark.slow
async def test_a_server_that_refuses_to_sum_up_is_asked_for_words(model_at):
    look = calls("look", what="a")
    look.usage = FULL
    refusal = Status(400, "invalid_request_error", "compaction: not supported by this model")
    with MessagesServer([look, refusal, "in words", "done"]) as server:
        ran = await play(model=model_at(server.url, compaction=True), compaction=Compaction(window=lambda _: 1_000))
        server.assert_clean()
    assert ran.of(Compacted)[0].summary == "in words"


async def test_a_server_that_is_not_anthropics_is_never_asked_to_sum_up_by_itself(model_at):
    with MessagesServer(["x"]) as server:
        assert not model_at(server.url).compacts
    assert Dialect.of("claude-opus-5-5", home=True).compaction


def test_another_server_gets_the_apis_summary_as_words():
    messages = [
        {"role": "assistant", "content": [BLOCK]},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
    ]
    body = request_body("m", Request("", (), messages), Dialect.of("m", home=False))
    assert body["messages"][0]["role"] == "user"
    assert "what was so far" in body["messages"][0]["content"][0]["text"]
    assert seed(messages)[0]["role"] == "user"


@pytest.mark.slow
async def test_the_server_counts_the_tokens_of_a_request(model_at):
    with MessagesServer([]) as server:
        assert await model_at(server.url).count(request()) > 0
        assert await model_at(server.url).count(Request("", (), [])) > 0


@pytest.mark.slow
async def test_a_server_that_does_not_count_says_so(model_at):
    with MessagesServer([], models=[]) as server, pytest.raises(Rejected):
        await model_at(server.url + "/nothing").count(request())
