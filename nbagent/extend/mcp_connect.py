"""How a server is reached: as a process of its own (guarded), by streamable HTTP, or by SSE, with the SDK's transports.

Must not know of tasks that own connections. Read `process`, then `remote`.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.extend import mcp_guard
from nbagent.extend.mcp_config import Launch
from nbagent.extend.mcp_words import Lines

NEEDS_MCP = "MCP servers need the package mcp, which is not installed: %pip install 'jupyter-nbagent[mcp]'"
REFUSED: ContextVar[list[int] | None] = ContextVar("REFUSED", default=None)
"""Gets the HTTP statuses that are errors of what the current task sends: the SDK sends a request in its sender's context."""
_SSE_QUIET = 3600.0  # seconds for which a server may say nothing before it counts as gone


def check(launch: Launch) -> None:
    """Raise `ConfigError` that says what is missing, before anything is started."""
    if find_spec("mcp") is None:
        raise ConfigError(NEEDS_MCP)
    if launch.kind != "stdio":
        return
    path = launch.env.get("PATH") or os.environ.get("PATH")
    inside = launch.folder / launch.command
    if shutil.which(launch.command, path=path) is None and not inside.is_file():
        raise ConfigError(f"there is no command {launch.command!r} here: install it, or write its whole path")


def load_sdk() -> None:
    """Import the SDK, on any thread: it takes a second or more, in which a page should not stand still.

    What its loggers have to say of a server's nonsense is kept out of the person's cells; the server's lines tell it.
    """
    for name in ("mcp.client.stdio", "mcp.client.streamable_http", "jsonschema.validators"):
        import_module(name)
    for name in ("mcp", "client"):  # the SDK's session logs under the second name
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())


async def process(launch: Launch, lines: Lines, stack: AsyncExitStack) -> Any:
    """Start a server's process and return its streams; what it writes to its error output goes to `lines`."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command, *args = guarded([launch.command, *launch.args])
    parameters = StdioServerParameters(
        command=command, args=args, env=dict(launch.env), cwd=launch.folder, encoding_error_handler="replace"
    )
    with lines.pipe() as errors:  # the process has its own copy as soon as it runs
        return await stack.enter_async_context(stdio_client(parameters, errlog=errors))


async def remote(launch: Launch, refused: Callable[[int], None], stack: AsyncExitStack) -> Any:
    """Reach a server by HTTP and return its streams; `refused` is told each HTTP status that is an error."""
    import httpx2
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    async def answered(response: Any) -> None:
        if response.status_code >= 400:
            refused(int(response.status_code))
            if (mine := REFUSED.get()) is not None:
                mine.append(int(response.status_code))

    def made(headers: dict[str, str] | None = None, timeout: Any = None, auth: Any = None) -> Any:
        limits = timeout or httpx2.Timeout(30.0, read=300.0)  # a server may hold a stream open
        return httpx2.AsyncClient(headers=headers, timeout=limits, auth=auth, event_hooks={"response": [answered]})

    headers = dict(launch.headers)
    if launch.kind == "sse":
        transport = sse_client(launch.url, headers, sse_read_timeout=_SSE_QUIET, httpx_client_factory=made)
        return await stack.enter_async_context(transport)
    http = await stack.enter_async_context(made(headers))
    return await stack.enter_async_context(streamable_http_client(launch.url, http_client=http))


def guarded(command: list[str]) -> list[str]:
    """Return the command that runs `command` and ends it when this process is gone (see `mcp_guard`)."""
    if os.name != "posix":
        return command
    return [sys.executable, "-I", "-S", mcp_guard.__file__, str(os.getpid()), *command]
