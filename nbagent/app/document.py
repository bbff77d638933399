"""Reaches the open notebook outside of a run, for the `%agent` commands that change something in it.

Must not know of agents or sessions. Read `open_document`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
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
    from nbagent.jupyter.bridge import Bridge
    from nbagent.jupyter.front_end import reach, running_cell
    from nbagent.jupyter.notebook import LiveNotebook

    cell = running_cell(shell)
    bridge = Bridge(cell=cell)
    try:
        async with reach(bridge, shell, current(shell).silent) as hello:
            if hello is None or not hello.document:
                raise ConfigError(NOT_HERE)
            yield LiveNotebook(bridge, hello, own_cell=cell)
    finally:
        bridge.close()
