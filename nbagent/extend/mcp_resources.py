"""The two tools with which the model lists and reads what MCP servers hold, and `@server:uri` in a person's words.

Must not know of clients. Read `resource_tools`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nbagent.core.errors import ToolError
from nbagent.core.messages import text_block
from nbagent.core.tools import Call, Kind, Result, Tool, tool

if TYPE_CHECKING:
    from nbagent.extend.mcp import Servers
    from nbagent.extend.mcp_client import Connection

RESOURCE_TOOLS = frozenset({"list_mcp_resources", "read_mcp_resource"})
_LISTED = 100
_AT = re.compile(r"(?<!\S)@([^\s:@]+):([a-zA-Z][\w+.-]*:\S+)")


def resource_tools(servers: Servers) -> list[Tool]:
    """Return `list_mcp_resources` and `read_mcp_resource` over the servers of a kernel."""

    @tool(title=lambda given: f"list resources of {given['server'] or 'MCP servers'}")
    async def list_mcp_resources(_call: Call, server: str = "") -> Result:
        """List what the MCP servers hold that can be read: addresses, names, types.

        Args:
            server: only this server's.
        """
        found = servers.with_resources()
        if server and server not in {connection.spec.name for connection in found}:
            raise ToolError(f"no MCP server “{server}” that holds resources is running")
        lines = [line for c in found if server in ("", c.spec.name) for line in _lines(c)]
        return Result((text_block("\n".join(lines) or "(no resources)"),), f"{len(lines)} resources")

    @tool(kind=Kind.READ, subject="uri", title=lambda given: f"read {given['uri'][:80]} of {given['server']}")
    async def read_mcp_resource(call: Call, server: str, uri: str) -> Result:
        """Read one resource of an MCP server.

        Args:
            server: the server's name.
            uri: the resource's address, as list_mcp_resources shows it.
        """
        return await servers.read(server, uri, call)

    return [list_mcp_resources, read_mcp_resource]


def attachments(prompt: str, servers: Iterable[str]) -> list[tuple[str, str]]:
    """Return the servers and addresses that `prompt` names as `@server:uri`, of servers that there are."""
    known = set(servers)
    return [(server, uri.rstrip(".,;!?)")) for server, uri in _AT.findall(prompt) if server in known]


def _lines(connection: Connection) -> list[str]:
    offers, name = connection.offers, connection.spec.name
    lines = [
        f"{name}: {r.uri}  {r.title or r.name}{f' ({r.mime_type})' if r.mime_type else ''}"
        + (f": {r.description[:200]}" if r.description else "")
        for r in offers.resources[:_LISTED]
    ]
    lines += [f"{name}: {t.uri_template}  {t.title or t.name} (fill in the braces)" for t in offers.templates[:_LISTED]]
    left = len(offers.resources) + len(offers.templates) - len(lines)
    return [*lines, f"{name}: {left} more"] if left > 0 else lines
