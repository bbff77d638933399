"""The happy ways of a request over real HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from nbagent.core.messages import Usage
from nbagent.models import AnthropicModel
from tests.models.conftest import LOOK, reply_of, request
from tests.support.messages_server import MessagesServer, Reply, call, refused_url


async def test_a_reply_with_thinking_calls_and_umlauts_arrives_whole(model_at):
    calls = [call("look", text='grüße 🐧 "x"\n'), call("look")]
    with MessagesServer([Reply([{"type": "text", "text": "Ähm 🐧"}, *calls], thinking="Über 🐧", chunk=1)]) as server:
        reply = await reply_of(model_at(server.url))
        assert reply.complete
        assert [b["type"] for b in reply.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert reply.content[0]["thinking"] == "Über 🐧"
        assert reply.content[1]["text"] == "Ähm 🐧"
        assert reply.content[2:] == calls
        assert reply.stop_reason == "tool_use"
        server.assert_clean()


@pytest.mark.slow
async def test_every_turn_reads_the_prefix_before_it_from_the_cache(model_at):
    turns = 6
    script = [Reply([call("look") for _ in range(25)], thinking="Look.") for _ in range(turns)]
    with MessagesServer(script) as server:
        model = model_at(server.url)
        transcript = [{"role": "user", "content": "Go"}]
        before = 0
        for _ in range(turns):
            reply = await reply_of(model, request(*transcript))
            usage = Usage.of(reply.usage)
            assert usage.cache_read == before, "all that was kept by the turn before is read"
            before = usage.cache_read + usage.cache_write
            transcript.append({"role": "assistant", "content": reply.content})
            results = [{"type": "tool_result", "tool_use_id": b["id"], "content": "seen"} for b in reply.content[1:]]
            transcript.append({"role": "user", "content": results})
        assert "cache_control" not in json.dumps(transcript)
        server.assert_clean()


@pytest.mark.slow
async def test_unknown_events_and_blocks_pass_through_and_comments_and_pings_do_not(model_at):
    extra = {
        1: 'event: brand_new\ndata: {"type": "brand_new", "x": 1}\n\n',
        2: ': comment\n\nevent: ping\ndata: {"type": "ping"}\n\ndata: {"type": "ping"}\n\n',
    }
    with MessagesServer([Reply([{"type": "brand_new_block", "x": 2}], extra=extra)]) as server:
        kinds = [e["type"] async for e in model_at(server.url).stream(request("Hi"))]
    assert kinds == [
        "message_start",
        "brand_new",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.slow
async def test_a_server_that_does_not_stream_is_understood(model_at):
    with MessagesServer([Reply([call("look", a=1)], whole=True)]) as server:
        reply = await reply_of(model_at(server.url))
    assert reply.complete
    assert reply.content[0]["input"] == {"a": 1}


@pytest.mark.slow
async def test_requests_of_one_run_share_a_connection_whose_idle_end_does_no_harm(model_at):
    with MessagesServer(["one", "two", "three"]) as server:
        model = model_at(server.url)
        await reply_of(model)
        await reply_of(model)
        assert len({seen.peer for seen in server.requests}) == 1
        await model.aclose()
        assert (await reply_of(model)).complete


@pytest.mark.slow
def test_one_model_serves_two_event_loops_one_after_the_other():
    async def once(model: AnthropicModel) -> bool:
        try:
            return (await reply_of(model)).complete
        finally:
            await model.aclose()

    with MessagesServer(["one", "two"]) as server:
        model = AnthropicModel("claude-sonnet-5-5", base_url=server.url)
        assert asyncio.run(once(model))
        assert asyncio.run(once(model))


@pytest.mark.slow
async def test_two_streams_of_one_model_run_side_by_side(model_at):
    with MessagesServer(lambda body: f"You said {body['messages'][0]['content'][0]['text']}") as server:
        model = model_at(server.url)
        one, two = await asyncio.gather(reply_of(model, request("one")), reply_of(model, request("two")))
    assert (one.content[0]["text"], two.content[0]["text"]) == ("You said one", "You said two")


@pytest.mark.slow
async def test_the_models_of_a_server_are_listed(model_at):
    with MessagesServer(models=["qwen", "llama"]) as server:
        assert await model_at(server.url, "qwen").available() == ["qwen", "llama"]


# ── cancelling ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply", [Reply("a long text", hang_after=3), Reply("a long text", pace=0.01, chunk=1, ping_after=8)]
)
async def test_cancelling_in_mid_stream_closes_the_connection_at_once(model_at, reply):
    with MessagesServer([reply]) as server:
        begun = asyncio.Event()

        async def consume() -> None:
            async for _ in model_at(server.url).stream(request("Hi")):
                begun.set()

        task = asyncio.create_task(consume())
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].gone.wait, 2)


async def test_cancelling_before_the_first_byte_closes_the_connection_at_once(model_at):
    with MessagesServer(patience=60) as server:
        task = asyncio.create_task(reply_of(model_at(server.url)))
        await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].gone.wait, 2)


@pytest.mark.slow
async def test_closing_the_generator_closes_the_connection_at_once_and_the_next_request_works(model_at):
    with MessagesServer([Reply("a long text", hang_after=3), "fine"]) as server:
        model = model_at(server.url)
        stream = model.stream(request("Hi"))
        assert (await anext(stream))["type"] == "message_start"
        await stream.aclose()
        assert await asyncio.to_thread(server.requests[0].gone.wait, 2)
        assert (await reply_of(model)).content == [{"type": "text", "text": "fine"}]


@pytest.mark.slow
async def test_a_consumer_that_takes_its_time_is_no_silence(model_at):
    with MessagesServer([Reply("abcdefgh", chunk=1)]) as server:
        stream = model_at(server.url, max_silence=1.0).stream(request("Hi"))
        clock = asyncio.get_running_loop().time
        first = await anext(stream)
        until = clock() + 1.2
        while clock() < until:
            await asyncio.to_thread(server.requests[0].done.wait, 0.05)
        rest = [event async for event in stream]
    assert first["type"] == "message_start"
    assert rest[-1]["type"] == "message_stop"


# ── servers of other kinds ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_an_old_gateway_gets_its_key_header_and_version_and_only_one_extra_request(model_at):
    with MessagesServer(["one", "two"], key="sk-x", key_header="x-api-key", versions={"2023-06-01"}) as server:
        model = model_at(server.url, api_key="sk-x")
        assert (await reply_of(model)).complete
        assert (await reply_of(model)).complete
        assert len(server.refusals) == 1, "the old version is remembered"


@pytest.mark.slow
async def test_an_old_server_that_knows_no_thinking_is_asked_plainly_from_then_on(model_at):
    with MessagesServer(["one", "two"], plain=True) as server:
        model = model_at(server.url)
        assert (await reply_of(model)).complete
        assert (await reply_of(model)).complete
        assert len(server.refusals) == 1
        assert "thinking" not in server.requests[-1].body


@pytest.mark.slow
async def test_a_local_model_needs_no_key_and_is_asked_plainly_at_once(model_at):
    with MessagesServer(["one"], plain=True, key="none") as server:
        assert (await reply_of(model_at(server.url, "qwen2.5-coder"))).complete
        server.assert_clean()


@pytest.mark.slow
async def test_a_server_on_this_machine_is_not_asked_through_a_proxy(model_at, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", refused_url())
    with MessagesServer(["one"]) as server:
        assert (await reply_of(model_at(server.url))).complete


async def test_the_base_url_may_come_from_the_environment_and_end_in_v1(model_at, monkeypatch):
    with MessagesServer(["one"]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + "/v1/")
        model = AnthropicModel("claude-sonnet-5-5")
        assert (await reply_of(model)).complete
        await model.aclose()


async def test_tools_and_system_are_sent_as_given(model_at):
    with MessagesServer(["one"]) as server:
        await reply_of(model_at(server.url), request("Hi", system="Be brief."))
        body = server.requests[0].body
    assert body["tools"] == [LOOK]
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert body["model"] == "claude-sonnet-5-5"


@pytest.mark.slow
def test_importing_models_imports_no_sdk():
    code = "import sys, nbagent.models; sys.exit('anthropic' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
