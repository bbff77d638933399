"""Every fault of the other side, over real HTTP: the right error, one clear sentence."""

from __future__ import annotations

import json

import pytest

from nbagent.core.errors import ConfigError, ContextFull, ImagesRefused, Rejected, Transient
from nbagent.core.messages import ReplyBuilder
from tests.models.conftest import reply_of, request
from tests.support.messages_server import HTML, MessagesServer, Reply, Reset, Silence, Status, refused_url
from tests.support.self_signed import self_signed_context

KEY = "sk-ant-very-secret-0123456789"


async def fault(model_at, reply, error: type[Exception], **options) -> Exception:
    with MessagesServer([reply]) as server, pytest.raises(error) as caught:
        await reply_of(model_at(server.url, api_key=KEY, **options))
    assert "127.0.0.1" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1, "the one retry layer is the loop"
    return caught.value


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_wrong_key_is_named_but_not_shown(model_at):
    with (
        MessagesServer(key="sk-right") as server,
        pytest.raises(Rejected, match=r"does not take this API key \(401") as caught,
    ):
        await reply_of(model_at(server.url, api_key=KEY))
    assert KEY not in str(caught.value)
    assert "ANTHROPIC_API_KEY" in str(caught.value)


async def test_a_server_that_repeats_the_key_does_not_get_it_shown(model_at):
    error = await fault(model_at, Status(401, message=f"bad key {KEY} given"), Rejected)
    assert "bad key [key] given" in str(error)
    assert error.__cause__ is None


async def test_a_key_without_the_right_is_told_so(model_at):
    assert "may not use claude-sonnet-5-5" in str(await fault(model_at, Status(403), Rejected))


async def test_an_unknown_model_is_named_with_the_server_and_the_way_to_choose(model_at):
    with MessagesServer(models=["qwen"]) as server, pytest.raises(Rejected) as caught:
        await reply_of(model_at(server.url, "qwne"))
    assert "'qwne'" in str(caught.value)
    assert f"{server.url}/v1/models" in str(caught.value)
    assert "-m" in str(caught.value)


async def test_a_server_without_the_api_is_told_from_an_unknown_model(model_at):
    reply = Status(404, body="<html>nginx</html>", content_type="text/html")
    assert "no Messages API at" in str(await fault(model_at, reply, Rejected)).replace("There is n", "n")


async def test_a_bad_request_quotes_the_server(model_at):
    assert "tools.0.name: bad" in str(await fault(model_at, Status(400, message="tools.0.name: bad"), Rejected))


async def test_an_unpaid_account_is_rejected(model_at):
    assert "cannot pay" in str(await fault(model_at, Status(402), Rejected))


@pytest.mark.slow
@pytest.mark.parametrize(
    "status",
    [
        Status(400, message="prompt is too long: 1000001 tokens > 1000000 maximum"),
        Status(413),
        Status(400, message="the request exceeds the available context size, try increasing it"),
        Status(400, message="This model's maximum context length is 8192 tokens"),
    ],
)
async def test_a_conversation_that_is_too_long_is_told_as_such(model_at, status):
    assert "no longer fits" in str(await fault(model_at, status, ContextFull))


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_server_that_takes_no_images_is_told_from_one_in_trouble(model_at, status):
    """llama.cpp says it with a 500, which would else be asked again and again."""
    said = "image input is not supported - hint: you may need to provide the mmproj"
    await fault(model_at, Status(status, body=json.dumps({"error": {"message": said}})), ImagesRefused)


async def test_a_redirect_is_not_followed_since_the_key_would_go_with_it(model_at):
    reply = Status(302, headers={"location": "https://login.example/"}, body="")
    assert "login.example" in str(await fault(model_at, reply, Rejected))


# ── may pass ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_overload_and_its_kin_may_pass(model_at, code):
    error = await fault(model_at, Status(code), Transient)
    assert str(code) in str(error)
    assert error.retry_after is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
async def test_the_wait_that_the_server_asks_for_is_passed_on(model_at, headers, seconds):
    assert (await fault(model_at, Status(429, headers=headers), Transient)).retry_after == seconds


@pytest.mark.slow
async def test_a_wait_until_a_date_is_understood(model_at):
    headers = {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}
    assert (await fault(model_at, Status(503, headers=headers), Transient)).retry_after > 1e6


@pytest.mark.slow
async def test_a_server_that_asks_not_to_try_again_is_obeyed(model_at):
    await fault(model_at, Status(529, headers={"x-should-retry": "false"}), Rejected)


@pytest.mark.slow
async def test_a_gateway_page_is_not_quoted(model_at):
    reply = Status(502, body="<html><body>Bad gateway" + "x" * 5000 + "</body></html>", content_type="text/html")
    assert len(str(await fault(model_at, reply, Transient))) < 120


# ── in the middle of a stream ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overloaded_error", "api_error", "rate_limit_error", "brand_new_error"])
async def test_overload_in_mid_stream_may_pass(model_at, kind):
    assert kind in str(await fault(model_at, Reply("Hello there", error_at=(3, kind)), Transient))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["invalid_request_error", "authentication_error", "permission_error"])
async def test_a_lasting_error_in_mid_stream_is_rejected(model_at, kind):
    await fault(model_at, Reply("Hello there", error_at=(3, kind)), Rejected)


@pytest.mark.slow
async def test_an_error_as_first_event_is_classified_too(model_at):
    await fault(model_at, Reply("Hello there", error_at=(0, "overloaded_error")), Transient)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2, 4])
async def test_a_connection_cut_between_events_may_pass(model_at, cut):
    await fault(model_at, Reply("Hello there", cut_after=cut), Transient)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 100, 700])
async def test_a_connection_cut_inside_an_event_may_pass(model_at, size):
    await fault(model_at, Reply("Hello there" * 10, cut_bytes=size), Transient)


@pytest.mark.slow
async def test_a_reset_before_the_first_byte_may_pass(model_at):
    await fault(model_at, Reset(), Transient)


async def test_an_event_that_is_no_json_may_pass(model_at):
    assert "cannot be read" in str(await fault(model_at, Reply("Hello there", garble_at=3), Transient))


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "delta": {}},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_stop"},
        {"no": "type"},
    ],
)
async def test_an_event_without_its_parts_may_pass(model_at, event):
    extra = {1: f"data: {json.dumps(event)}\n\n"}
    await fault(model_at, Reply("Hello there", extra=extra), Transient)


async def test_a_clean_end_too_early_is_left_to_the_loop_to_judge(model_at):
    with MessagesServer([Reply("Hello there", end_after=4)]) as server:
        reply = await reply_of(model_at(server.url))
    assert reply.started
    assert not reply.complete


# ── silence ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_pings_alone_are_silence(model_at):
    error = await fault(model_at, Reply("Hello", ping_after=2), Transient, max_silence=0.3)
    assert "silent for 0.3 s" in str(error)


@pytest.mark.slow
async def test_a_stalled_stream_is_silence(model_at):
    assert "silent" in str(await fault(model_at, Reply("Hello", hang_after=2), Transient, max_silence=0.2))


@pytest.mark.slow
async def test_no_answer_at_all_is_silence(model_at):
    assert "silent" in str(await fault(model_at, Silence(), Transient, max_silence=0.2))


@pytest.mark.slow
async def test_a_slow_but_steady_stream_is_no_silence(model_at):
    with MessagesServer([Reply("Hello there, all of you", chunk=1, pace=0.05)]) as server:
        assert (await reply_of(model_at(server.url, max_silence=1.0))).complete


# ── not the API ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_a_login_page_is_named_as_such(model_at):
    error = await fault(model_at, HTML, Rejected)
    assert "not from a Messages API (a proxy or login page?)" in str(error)
    assert "host=127.0.0.1" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n',
        'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {}}\n\n',
        "plain text\n",
    ],
)
async def test_a_stream_without_message_start_is_not_from_the_api(model_at, body):
    assert "message_start" in str(
        await fault(model_at, Status(200, body=body, content_type="text/event-stream"), Rejected)
    )


@pytest.mark.slow
@pytest.mark.parametrize("body", ['{"choices": []}', "{", "[]", '{"type": "message"}'])
async def test_json_that_is_no_message_is_not_from_the_api(model_at, body):
    assert "not from a Messages API" in str(await fault(model_at, Status(200, body=body), Rejected))


@pytest.mark.slow
async def test_an_error_with_status_200_is_read(model_at):
    body = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    await fault(model_at, Status(200, body=body), Transient)


@pytest.mark.slow
async def test_an_empty_reply_may_pass(model_at):
    await fault(model_at, Status(200, body="", content_type="text/event-stream"), Transient)


# ── no connection ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_local_server_that_is_not_started_is_told_at_once(model_at):
    url = refused_url()
    with pytest.raises(Rejected, match="Nothing listens at") as caught:
        await reply_of(model_at(url))
    assert url in str(caught.value)


async def test_a_password_in_the_address_is_not_shown(model_at):
    url = refused_url().replace("http://", "http://me:hunter2@")
    with pytest.raises(Rejected, match="Nothing listens at http://127") as caught:
        await reply_of(model_at(url))
    assert "hunter2" not in str(caught.value)


@pytest.mark.slow
async def test_localhost_with_two_addresses_is_told_the_same(model_at):
    with pytest.raises(Rejected, match="Nothing listens at"):
        await reply_of(model_at(refused_url().replace("127.0.0.1", "localhost")))


async def test_a_host_that_does_not_exist_is_named_and_not_tried_again(model_at):
    with pytest.raises(Rejected, match=r"no-such-host\.invalid was not found"):
        await reply_of(model_at("http://no-such-host.invalid"))


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "nonsense", "http://x:port", "http://[::1"])
async def test_an_address_that_is_no_url_is_named(model_at, url):
    with pytest.raises(ConfigError, match="base_url"):
        await reply_of(model_at(url))


async def test_a_certificate_that_nobody_signed_is_named_with_the_fix(model_at, tmp_path):
    with (
        MessagesServer(["never"], ssl=self_signed_context(tmp_path)) as server,
        pytest.raises(Rejected, match="certificate") as caught,
    ):
        await reply_of(model_at(server.url))
    assert "SSL_CERT_FILE" in str(caught.value)
    assert "self-signed certificate" in str(caught.value)


async def test_https_to_a_server_that_speaks_http_is_told(model_at):
    with MessagesServer(["never"]) as server, pytest.raises(Rejected, match="http://"):
        await reply_of(model_at(server.url.replace("http:", "https:")))


@pytest.mark.slow
async def test_a_proxy_that_refuses_is_told_from_the_server(model_at, monkeypatch):
    with MessagesServer() as proxy:  # it knows no CONNECT, as a proxy that does not want us
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(Rejected, match=r"proxy on the way to models\.example"):
            await reply_of(model_at("https://models.example"))


async def test_half_of_a_surrogate_pair_is_named(model_at):
    with MessagesServer(["never"]) as server, pytest.raises(Rejected, match="surrogate"):
        await reply_of(model_at(server.url), request("a\ud800"))


async def test_what_came_before_a_cut_was_already_given_out(model_at):
    builder = ReplyBuilder()
    with MessagesServer([Reply("Hello there", chunk=1, cut_after=6)]) as server, pytest.raises(Transient):
        async for event in model_at(server.url).stream(request("Hi")):
            builder.feed(event)
    assert builder.started
    assert not builder.complete
