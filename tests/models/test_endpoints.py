"""Named model servers: what a person may write, where keys go, and clouds whose packages are not there."""

from __future__ import annotations

import asyncio

import pytest

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Usage
from nbagent.models import PlatformModel, catalog, open_model, window
from nbagent.models.endpoints import read_endpoints
from tests.models.conftest import reply_of
from tests.support.messages_server import MessagesServer


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"work": {}}, "endpoints.work needs its address"),
        ({"work": {"base_url": "localhost"}}, "is not the address of a server"),
        ({"work": {"base_ur": "http://x"}}, "there is no 'base_ur'. Did you mean base_url"),
        ({"opus": {"base_url": "http://x"}}, "a word of its own"),
        ({"a b": {"base_url": "http://x"}}, "a word of its own"),
        ({"work": {"base_url": "http://x", "api_key_env": "sk-ant-1234"}}, "the NAME of a variable"),
        ({"work": {"base_url": "http://x", "auth": "basic"}}, "is not one of auto"),
        ({"work": {"base_url": "http://x", "headers": {"a b": "c"}}}, "not the name of a header"),
        ({"work": {"base_url": "http://x", "models": {"m": {"price": 1}}}}, "is an id, or a table of id"),
        ({"work": {"base_url": "http://x", "models": {"m": {"context": -1}}}}, "must be a number"),
        ({"work": {"provider": "azure"}}, "is not one of messages, bedrock"),
        ("work", "endpoints must be tables"),
    ],
)
def test_what_is_written_wrong_is_named_with_its_value_and_the_fix(table, said):
    with pytest.raises(ConfigError) as caught:
        read_endpoints(table, "config.toml")
    assert said in str(caught.value)
    assert "sk-ant-1234" not in str(caught.value)


@pytest.fixture
def endpoints():
    return read_endpoints(
        {
            "local": {"base_url": "http://127.0.0.1:1", "models": ["qwen3:4b"]},
            "work": {"base_url": "https://gate.example", "api_key_env": "WORK_KEY", "models": {
                "small": {"id": "m-small", "input": 1, "output": 2, "context": 8192}, "big": "m-big"}},
            "cloud": {"provider": "bedrock", "region": "eu-west-1"},
            "vertex": {"provider": "vertex", "project": "p"},
        },
        "config.toml",
    )  # fmt: skip


def test_names_of_an_endpoint_mean_its_models_and_any_id_is_taken(endpoints):
    def name(spec: str) -> str:
        return open_model(spec, endpoints=endpoints).name

    assert (name("work/small"), name("work/m-big"), name("work/org/other")) == ("m-small", "m-big", "org/other")
    assert (name("work"), name("local/opus")) == ("m-small", "claude-opus-5-5")
    small = open_model("work/small", endpoints=endpoints)
    assert window(small) == 8192 and small.cost(Usage(input=1_000_000, output=1_000_000)) == 3
    assert open_model("work/big", endpoints=endpoints).cost(Usage(input=5)) is None, "an unknown price counts as tokens"
    with pytest.raises(ConfigError, match=r"cloud is an endpoint. Name a model of it"):
        open_model("cloud", endpoints=endpoints)


async def test_a_key_that_is_not_set_is_named_and_no_other_takes_its_place(endpoints, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-home")
    monkeypatch.delenv("WORK_KEY", raising=False)
    with pytest.raises(ConfigError, match="The endpoint work wants its key in WORK_KEY, which is not set"):
        await reply_of(open_model("work/small", endpoints=endpoints))


@pytest.mark.slow
async def test_a_server_that_wants_no_key_gets_none():
    with MessagesServer(["Hi."]) as server:
        made = read_endpoints(
            {"local": {"base_url": server.url, "auth": "none", "headers": {"x-api-key": "mine"}}}, "f"
        )
        model = open_model("local/qwen", endpoints=made)
        assert (await reply_of(model)).text == "Hi."
        assert server.requests[0].headers.get("authorization") is None
        assert server.requests[0].headers["x-api-key"] == "mine"
        await model.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "packages"), [("cloud", "boto3"), ("vertex", "google")])
async def test_a_cloud_without_its_packages_says_what_to_install(endpoints, name, packages):
    model = open_model(f"{name}/claude-sonnet-5-5", endpoints=endpoints)
    assert isinstance(model, PlatformModel)
    try:
        __import__(packages)
    except ImportError:
        with pytest.raises(ConfigError, match=r"%pip install 'anthropic\["):
            await reply_of(model)


@pytest.mark.slow
async def test_a_cloud_answers_through_the_sdks_own_client(monkeypatch):
    """Foundry needs no package beside the SDK: its client speaks the Messages API under a path of its own."""
    monkeypatch.setenv("CLOUD_KEY", "sk-cloud")
    with MessagesServer(["Hello from there."]) as server:
        given = {"provider": "foundry", "base_url": server.url, "api_key_env": "CLOUD_KEY"}
        model = open_model("cloud/claude-opus-5-5", endpoints=read_endpoints({"cloud": given}, "f"))
        async with asyncio.timeout(20):
            reply = await reply_of(model)
        assert reply.text == "Hello from there." and reply.complete
        assert "sk-cloud" in str(dict(server.requests[0].headers))
        assert model.cost(Usage(input=1)) is None, "a cloud's prices are its own"
        await model.aclose()  # type: ignore[attr-defined]


def test_what_short_names_mean_may_be_said_in_claudes_variables(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-5")
    assert open_model("opus").name == "claude-opus-5"
    assert open_model("sonnet[1m]").name == "claude-sonnet-5-5"
    assert catalog.resolve("best") == catalog.resolve("fable")
