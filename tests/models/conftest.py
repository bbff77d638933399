from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest

from nbagent.core.messages import Json, Message, ReplyBuilder
from nbagent.core.ports import Model, Request
from nbagent.models import AnthropicModel

LOOK: Json = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}


def request(*messages: Message | str, system: str = "You are a test.", tools: tuple[Json, ...] = (LOOK,)) -> Request:
    return Request(system, tools, [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages])


async def reply_of(model: Model, asked: Request | None = None) -> ReplyBuilder:
    builder = ReplyBuilder()
    async with aclosing(model.stream(asked or request("Hi"))) as events:
        async for event in events:
            builder.feed(event)
    return builder


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME"):  # no profile of the SDK is found there
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture
async def model_at() -> AsyncIterator[Callable[..., AnthropicModel]]:
    """Make models whose connections are closed when the test ends."""
    made: list[AnthropicModel] = []

    def make(url: str, name: str = "claude-sonnet-5-5", **options) -> AnthropicModel:
        made.append(AnthropicModel(name, base_url=url, **options))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()
