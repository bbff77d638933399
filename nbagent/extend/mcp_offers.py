"""What an MCP server offers, asked page by page within bounds, and a stream that tells when its server has ended.

Must not know of tasks or of tools. Read `learned`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from nbagent.core.messages import clean_value
from nbagent.extend.mcp_schema import Arguments

if TYPE_CHECKING:
    from mcp import Client, types

TOOLS = 200
"""Tools of one server that are offered; the first ones."""
_PAGES = 50
_ITEMS = 500  # resources and prompts of one server


@dataclass(slots=True)
class Offers:
    """What a server offers, as it said last."""

    tools: list[types.Tool] = field(default_factory=list[Any])
    prompts: list[types.Prompt] = field(default_factory=list[Any])
    resources: list[types.Resource] = field(default_factory=list[Any])
    templates: list[types.ResourceTemplate] = field(default_factory=list[Any])
    has_resources: bool = False
    instructions: str = ""
    arguments: dict[str, Arguments] = field(default_factory=dict[str, Arguments])
    """Of each tool, once they were asked for (`takes`)."""
    version: str = ""
    """The server's own name and version, and the protocol's."""

    def takes(self, tool: types.Tool) -> Arguments:
        """Return what one of the tools takes: read once, since a schema may be long."""
        if tool.name not in self.arguments:
            self.arguments[tool.name] = Arguments.of(tool.input_schema)
        return self.arguments[tool.name]


async def learned(client: Client) -> Offers:
    """Ask a server what it offers: all pages, within bounds."""
    has, info = client.server_capabilities, client.server_info
    named = f"{info.name} {info.version}".strip() if info is not None else "no name given"
    offers = Offers(instructions=client.instructions or "", version=f"{named}, protocol {client.protocol_version}")
    if has.tools is not None:
        offers.tools = await _pages(client.list_tools, "tools", TOOLS)
    if has.prompts is not None:
        offers.prompts = await _pages(client.list_prompts, "prompts", _ITEMS)
    if has.resources is not None:
        offers.has_resources = True
        offers.resources = await _pages(client.list_resources, "resources", _ITEMS)
        offers.templates = await _pages(client.list_resource_templates, "resource_templates", _ITEMS)
    return offers


async def _pages(ask: Callable[..., Coroutine[Any, Any, Any]], key: str, limit: int) -> list[Any]:
    from mcp import MCPError

    items: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        try:
            page = await ask(cursor=cursor)
        except MCPError:  # it says that it has them, and then does not know the question
            break
        items += getattr(page, key)
        cursor = page.next_cursor
        if not cursor or len(items) >= limit:
            break
    return items[:limit]


def mended(item: Any) -> Any:
    """Return what came in; a message that was refused for half a character (a lone surrogate) is read after all.

    Without this the call that it answers would wait until its time is over.
    """
    if not isinstance(item, ValueError):
        return item
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if not isinstance(item, ValidationError):
        return item
    try:
        raw = item.errors(include_url=False)[0]["input"]
        value: Any = json.loads(raw)
        return SessionMessage(jsonrpc_message_adapter.validate_python(clean_value(value), by_name=False))
    except (ValueError, TypeError, RecursionError):
        return item


class Watched:
    """A read stream that says when it has ended, which the SDK's client keeps to itself."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """What the SDK hands from the sender of a message to whoever handles it."""
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return mended(await self._stream.__anext__())
        except StopAsyncIteration:
            self._ended()
            raise

    async def receive(self) -> Any:
        """Return the next message."""
        return await self._stream.receive()

    async def aclose(self) -> None:
        """Close it."""
        await self._stream.aclose()

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        return await self._stream.__aexit__(*raised)
