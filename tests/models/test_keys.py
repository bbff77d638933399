"""The key: found, cleaned, never shown."""

from __future__ import annotations

import pytest

from nbagent.core.errors import ConfigError
from nbagent.models import AnthropicModel
from nbagent.models.credentials import Key, find_key
from tests.models.conftest import reply_of
from tests.support.messages_server import MessagesServer


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, "", "  ", "\n", '""'])
async def test_no_key_is_told_in_three_lines_without_a_request(monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    with pytest.raises(ConfigError) as caught:
        await reply_of(AnthropicModel("claude-sonnet-5-5"))
    missing, how, demo = str(caught.value).split("\n")
    assert "ANTHROPIC_API_KEY" in missing
    assert "getpass" in how
    assert "without a key" in demo


@pytest.mark.slow
@pytest.mark.parametrize("value", ["sk-x\n", ' "sk-x" ', "'sk-x'", "\tsk-x\r\n"])
async def test_what_copying_adds_to_a_key_is_cut_off(monkeypatch, model_at, value):
    monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    with MessagesServer(["fine"], key="sk-x") as server:
        assert (await reply_of(model_at(server.url))).complete


@pytest.mark.parametrize("value", ["sk-\u2013x", "sk-x\nsk-y", "sk x", "sk-\x7f"])
def test_a_key_that_cannot_be_one_is_flagged_without_showing_it(monkeypatch, value):
    monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY cannot be a key") as caught:
        find_key()
    assert value not in str(caught.value)


@pytest.mark.slow
async def test_a_key_that_is_set_later_counts_at_once(monkeypatch, model_at):
    with MessagesServer(["one", "two"]) as server:
        model = model_at(server.url, api_key=None)
        for secret in ("sk-first", "sk-second"):
            monkeypatch.setenv("ANTHROPIC_API_KEY", secret)
            await reply_of(model)
        assert [s.headers["authorization"] for s in server.requests] == ["Bearer sk-first", "Bearer sk-second"]


def test_the_order_is_given_then_key_then_token(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    assert find_key() == Key("token", is_token=True)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    assert find_key() == Key("key")
    assert find_key("given") == Key("given")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("auth", "bearer", "other"), [("bearer", True, False), ("both", True, True), ("auto", True, True)]
)
async def test_the_key_goes_into_the_headers_that_are_asked_for(model_at, auth, bearer, other):
    with MessagesServer(["one"]) as server:
        await reply_of(model_at(server.url, api_key="sk-x", auth=auth))
        headers = server.requests[0].headers
    assert (headers.get("authorization") == "Bearer sk-x") is bearer
    assert (headers.get("x-api-key") == "sk-x") is other


def test_the_key_is_in_no_repr():
    assert "sk-secret" not in repr(AnthropicModel("opus", api_key="sk-secret"))
    assert "sk-secret" not in repr(Key("sk-secret"))
