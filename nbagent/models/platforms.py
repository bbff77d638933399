"""Claude on other people's clouds (Bedrock, Vertex, Foundry), through the SDK's own clients: they sign, name and decode.

The clients need packages beside the SDK; without them the first request ends with a sentence. Knows nothing of
notebooks. Read `PlatformModel.stream`.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError, NbagentError
from nbagent.core.messages import Json, Usage
from nbagent.models import catalog
from nbagent.models.catalog import Facts
from nbagent.models.clients import failures, fault, warm_up
from nbagent.models.dialect import Dialect, request_body
from nbagent.models.endpoints import Endpoint
from nbagent.models.faults import Place

if TYPE_CHECKING:
    from nbagent.core.ports import Request

SILENCE = 90.0
"""Longest silence of a cloud in seconds."""


@dataclass(frozen=True, slots=True)
class _Cloud:
    """The SDK's client of a cloud, the package that it needs beside the SDK, and how our fields are called there."""

    client: str
    title: str
    needs: str = ""
    key: str = "api_key"
    region: str = ""
    project: str = ""


_CLOUDS = {
    "bedrock": _Cloud("AsyncAnthropicBedrock", "Amazon Bedrock", needs="boto3", region="aws_region"),
    "vertex": _Cloud(
        "AsyncAnthropicVertex",
        "Google Vertex AI",
        needs="google.auth",
        key="access_token",
        region="region",
        project="project_id",
    ),
    "foundry": _Cloud("AsyncAnthropicFoundry", "Microsoft Foundry", project="resource"),
}


class PlatformModel:
    """A Claude model of a cloud. `name` is its id there; credentials come from the cloud's own places, or the endpoint."""

    def __init__(self, name: str, endpoint: Endpoint, *, max_silence: float = SILENCE) -> None:
        entry = endpoint.entry(name)
        self._name, self._endpoint, self._max_silence = entry.id, endpoint, max_silence
        self._facts = entry.facts or Facts()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"PlatformModel({self._name!r}, {self._endpoint.name!r})"

    @property
    def name(self) -> str:
        """The model's id at the cloud."""
        return self._name

    @property
    def facts(self) -> Facts:
        """What the person wrote of its price and sizes: a cloud's prices are its own."""
        return self._facts

    @property
    def place(self) -> str:
        """The endpoint's name."""
        return self._endpoint.name

    def cost(self, usage: Usage) -> float | None:
        """Return the price of one reply in US dollars, None where the endpoint names none."""
        return catalog.cost_of(self._facts, usage)

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the raw events of one reply; raises as `AnthropicModel.stream` does."""
        client = await self._connect()
        dialect = Dialect.of(self._name, home=True)
        if self._endpoint.provider == "bedrock":  # it runs no tools itself
            request = replace(request, tools=tuple(tool for tool in request.tools if "type" not in tool))
        body = request_body(self._name, request, dialect, self._facts.max_output)
        try:
            async with asyncio.timeout(self._max_silence):
                reply: Any = await client.messages.create(**body)
        except TimeoutError:
            raise self._told.silent(self._max_silence) from None
        except (*failures(), ImportError, RuntimeError, ValueError) as error:
            raise self._failed(error) from None
        try:
            events = aiter(reply)
            while (event := await self._next(events)) is not None:
                yield event.model_dump(mode="json", exclude_unset=True, warnings=False)
        finally:
            await reply.close()

    async def aclose(self) -> None:
        """Close idle connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _told(self) -> Place:
        return Place(self._name, self._endpoint.base_url or f"https://{self._endpoint.provider}")

    async def _next(self, events: AsyncIterator[Any]) -> Any:
        try:
            async with asyncio.timeout(self._max_silence):
                return await anext(events, None)
        except TimeoutError:
            raise self._told.silent(self._max_silence) from None
        except (*failures(), ImportError, ValueError) as error:
            raise self._failed(error) from None

    async def _connect(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections end with their loop
            await asyncio.to_thread(warm_up)
            self._client, self._loop = self._made(), loop
        return self._client

    def _made(self) -> Any:
        import anthropic

        cloud, endpoint = _CLOUDS[self._endpoint.provider], self._endpoint
        _check(cloud, endpoint)
        given: dict[str, Any] = {"max_retries": 0, "open_telemetry": False}
        named = ((cloud.region, endpoint.region), (cloud.project, endpoint.project), ("base_url", endpoint.base_url))
        given |= {name: value for name, value in named if name and value}
        if key := endpoint.key().secret:
            given[cloud.key] = key
        if headers := endpoint.sent_headers():
            given["default_headers"] = headers
        try:
            return getattr(anthropic, cloud.client)(**given)
        except (anthropic.AnthropicError, ValueError, ImportError) as error:
            raise ConfigError(f"The endpoint {endpoint.name} ({cloud.title}) is not set up: {error}") from error

    def _failed(self, error: Exception) -> NbagentError:
        if isinstance(error, failures()):
            return fault(self._told, error)
        title = _CLOUDS[self._endpoint.provider].title
        return ConfigError(f"The endpoint {self._endpoint.name} ({title}) can't be used: {self._told.safe(str(error))}")


def _check(cloud: _Cloud, endpoint: Endpoint) -> None:
    """Raise `ConfigError` where the cloud's packages are not installed."""
    top = cloud.needs.partition(".")[0]
    try:
        there = not top or (
            importlib.util.find_spec(top) is not None and importlib.util.find_spec(cloud.needs) is not None
        )
    except (ImportError, ValueError):
        there = False
    if not there:
        raise ConfigError(
            f"{cloud.title} needs more packages than are installed: %pip install 'anthropic[{endpoint.provider}]', "
            "then restart the kernel."
        )
