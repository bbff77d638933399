"""Finds out, by asking and not by names, who shows this notebook and whether somebody can click there.

Read `reach`. Must not know of agents.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from nbagent.jupyter.bridge import Bridge, Hello
from nbagent.jupyter.pump import can_pump, is_queued, pumping

FIRST_AT = (0.0, 0.4)
FIRST_TOTAL = 1.0
AGAIN_AT = (0.0, 0.5, 1.5, 3.0, 5.0)
AGAIN_TOTAL = 2.5
AGAIN_TOTAL_OF_A_PAGE = 8.0
"""Where the cell's id came with the request a page is there for sure; it may have to load the widget's module first."""
SILENT_AT = (0.0,)
SILENT_TOTAL = 0.3
SILENT_TOTAL_OF_A_PAGE = 1.0
"""Where a cell of the same client went by without a word from any page: one that has come since answers this fast."""


def running_cell(shell: Any) -> str | None:
    """Return the id of the cell that runs now, where the front end sends it (JupyterLab, Notebook 7), else None."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return None
    parent: Any = kernel.get_parent() or {}
    found = (parent.get("metadata") or {}).get("cellId")
    return found if isinstance(found, str) else None


def takes_input(shell: Any) -> bool:
    """Whether who asked for the running cell can be asked for a line of text (papermill and nbconvert can't)."""
    kernel = getattr(shell, "kernel", None)
    parent: Any = (kernel.get_parent() if kernel is not None else None) or {}
    return (parent.get("content") or {}).get("allow_stdin") is True


def in_a_job(shell: Any) -> bool:
    """Whether a job runs the cell (papermill, nbconvert): a kernel that nobody can be asked in."""
    return getattr(shell, "kernel", None) is not None and not takes_input(shell)


def asking_client(shell: Any) -> str:
    """Return the session id of the client that asked for the running cell: another tab, console or job has another one."""
    kernel = getattr(shell, "kernel", None)
    parent: Any = (kernel.get_parent() if kernel is not None else None) or {}
    return str((parent.get("header") or {}).get("session") or "")


@asynccontextmanager
async def reach(bridge: Bridge, shell: Any, silent: set[str] | None = None) -> AsyncGenerator[Hello | None]:
    """Enter with a bridge made in the running cell: gives what the page said, None where nobody answers.

    That takes 3.5 s at most, or 9 s where the front end has shown by sending the cell's id that it is a page. `silent`
    holds the clients of this kernel that were waited for in vain, and is kept up to date: for them it takes 0.3 s or 1 s,
    until a page says something by itself while a cell of theirs runs.

    While entered, the page's messages and all widgets' clicks arrive although the cell runs: by the kernel itself,
    or by a pump where the kernel holds them back (known from its build, or found by a hello without an answer).
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        yield None
        return
    async with AsyncExitStack() as stack:
        if is_queued(kernel):
            await stack.enter_async_context(pumping(shell))
        silent, client, page = silent if silent is not None else set(), asking_client(shell), running_cell(shell)
        known = client in silent
        hello = None if known else await bridge.hello(FIRST_AT, FIRST_TOTAL)
        if hello is None:
            if can_pump(kernel) and not is_queued(kernel):
                await stack.enter_async_context(pumping(shell))
            if known:
                total = SILENT_TOTAL if page is None else SILENT_TOTAL_OF_A_PAGE
            else:
                total = AGAIN_TOTAL if page is None else AGAIN_TOTAL_OF_A_PAGE
            hello = await bridge.hello(SILENT_AT if known else AGAIN_AT, total)
        if client and not bridge.heard:
            silent.add(client)
        try:
            yield hello
        finally:
            if bridge.heard:
                silent.discard(client)
