"""Reaches the open notebook outside of a run: for the `%agent` commands that change something in it, and for clicks.

Must not know of agents or sessions. Read `open_document`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from nbagent.app.extension import current
from nbagent.core.errors import ConfigError

if TYPE_CHECKING:
    from nbagent.jupyter.notebook import LiveNotebook

NOT_HERE = "This notebook can't be changed from here: no page that shows it answered."


@asynccontextmanager
async def open_document(shell: Any) -> AsyncGenerator[LiveNotebook]:
    """Give the notebook of the page that shows the running cell; raises `ConfigError` where there is none."""
    if getattr(shell, "kernel", None) is None:
        raise ConfigError("There is no notebook here: this is a terminal.")
    async with find_document(shell) as notebook:
        if notebook is None:
            raise ConfigError(NOT_HERE)
        yield notebook


@asynccontextmanager
async def find_document(shell: Any, clicked: str | None = None) -> AsyncGenerator[LiveNotebook | None]:
    """Give the notebook of the page that shows the running cell, or `clicked` while none runs; None if no page answers."""
    if getattr(shell, "kernel", None) is None:
        yield None
        return
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.front_end import reach, running_cell
    from nbagent.jupyter.notebook import LiveNotebook

    cell = clicked or running_cell(shell)
    async with AsyncExitStack() as closing:
        bridge = Bridge(cell=cell)
        closing.callback(bridge.close)
        if clicked:
            hello = await bridge.hello()
        else:
            hello = await closing.enter_async_context(reach(bridge, shell, current(shell).silent))
        there = hello is not None and hello.document
        yield LiveNotebook(bridge, hello, own_cell=cell) if hello is not None and there else None
