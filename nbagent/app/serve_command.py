"""Composes `nbagent mcp-serve`: the place that is served, and the policy of this folder. Read `served`."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path

from nbagent.app.serve import NEEDS_MCP, Service, serve
from nbagent.config import load
from nbagent.core.errors import ConfigError
from nbagent.core.ports import Notebook


def served(notebook: Notebook | None, kernel: str, timeout: float | None) -> None:
    """Serve until the other side closes. Raises `ConfigError` for what has to be changed first."""
    if find_spec("mcp") is None:
        raise ConfigError(NEEDS_MCP)
    asyncio.run(_served(notebook, kernel, timeout))


async def _served(notebook: Notebook | None, kernel: str, timeout: float | None) -> None:
    from nbagent.app.serve_places import OfKernel, of_file, own_kernel

    folder = Path.cwd()
    settings = load(folder, os.environ)
    limit = timeout or settings.cell_timeout
    gate = settings.policy()
    if not kernel:
        offered = of_file(own_kernel(folder), notebook, timeout=limit)
        await serve(Service(offered, gate, notebook.path if notebook is not None else ""))
        return
    from nbagent.app.served import MIME
    from nbagent.headless.remote import RemoteKernel

    remote = RemoteKernel(kernel, "nbagent.app.served", MIME)
    try:
        await serve(Service(OfKernel(remote, timeout=limit), gate))
    finally:
        remote.close()
