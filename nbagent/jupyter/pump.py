"""Delivers clicks and the page's answers while a cell runs, on kernels that would hold them back until it ends.

ipykernel 6 takes shell messages from one queue, 7.0 to 7.3 wait on one lock, 7.4 delivers them at once. For the first
two, jupyter-ui-poll takes the messages in a side task and puts execute requests aside until the cell has ended.
Must not know of bridges or agents. Read `pumping`, then `own_parent`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

EVERY = 0.05
AT_ONCE = 10
DELIVERS_SINCE = (7, 4)


def is_queued(kernel: Any) -> bool:
    """Whether the kernel takes one shell message after the other, so that without a pump nothing arrives in a cell."""
    return hasattr(kernel, "do_one_iteration") and not hasattr(kernel, "_main_asyncio_lock")


def can_pump(kernel: Any) -> bool:
    """Whether a pump could help. On a kernel that delivers by itself it would break the lock that orders cells."""
    from ipykernel._version import version_info

    version = version_info[:2]
    return is_queued(kernel) or (hasattr(kernel, "_main_asyncio_lock") and version < DELIVERS_SINCE)


@contextmanager
def own_parent(kernel: Any) -> Generator[None]:
    """Around the handling of one request: it ends as the request that it began as.

    ipykernel 7.1 to 7.3 handle all messages of the main shell in one context, one after the other. With a pump a click is
    handled in the middle of a cell; what is published at the cell's end (idle) would then be said to be the click's, and
    a front end that waits for it would show the cell as running for ever.
    """
    ident, parent = kernel._parent_ident["shell"], kernel.get_parent("shell")  # noqa: SLF001
    try:
        yield
    finally:
        if kernel.get_parent("shell") is not parent:
            kernel.set_parent(ident, parent, "shell")


@asynccontextmanager
async def pumping(shell: Any) -> AsyncGenerator[None]:
    """Deliver what the page sends, as long as this is entered; enter it in the running cell, and once at a time."""
    from jupyter_ui_poll import ui_events

    events: Any = ui_events()
    # After each round jupyter-ui-poll puts the cell's parent back, with all channels' idents in place of the shell's: then
    # what the cell prints is fine, but input() has nobody to ask.
    events._original_parent = (shell.kernel._parent_ident["shell"], shell.kernel.get_parent())  # noqa: SLF001
    # jupyter-ui-poll ends itself at `post_run_cell`; code that calls `run_cell` inside this cell triggers that too, and
    # then the person's next cell would run in the middle of this one. So its hook is put back only at the end.
    hook = events._post_run_cell  # noqa: SLF001  (no public way)
    shell.events.unregister("post_run_cell", hook)
    try:
        async with events as poll:
            task = asyncio.create_task(_poll(poll))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])
    finally:
        shell.events.register("post_run_cell", hook)


@asynccontextmanager
async def delivering(kernel: Any) -> AsyncGenerator[None]:
    """Deliver clicks while a request waits before its code begins, on ipykernel 6; requests to run code stay in line.

    Later kernels deliver them by themselves, or on the thread of a subshell; 7.0 to 7.3 to a front end without one when
    the wait is over. Not by jupyter-ui-poll: that gives back what it puts aside only when code has run.
    """
    if not is_queued(kernel):
        yield
        return
    held: list[Any] = []
    task = asyncio.create_task(_deliver(kernel, held))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        while kernel.msg_queue.qsize():
            held.append(kernel.msg_queue.get_nowait())
        for item in held:
            kernel.msg_queue.put_nowait(item)


async def _deliver(kernel: Any, held: list[Any]) -> None:
    """Have all messages handled that come, but put requests to run code into `held`."""
    while True:
        if kernel.shell_stream:
            kernel.shell_stream.flush()
        if not kernel.msg_queue.qsize():
            await asyncio.sleep(EVERY)
            continue
        item = kernel.msg_queue.get_nowait()
        _, dispatch, given = item
        if _runs_code(kernel, given):
            held.append(item)
        else:
            with own_parent(kernel):
                await dispatch(*given)


def _runs_code(kernel: Any, given: tuple[Any, ...]) -> bool:
    """Whether a message in the kernel's queue is an execute request (or the end of aborting such requests)."""
    if len(given) != 1 or len(given[0]) == 0:
        return True
    frames = kernel.session.feed_identities(given[0], copy=False)[1]
    header = kernel.session.deserialize(frames, content=False, copy=False)["header"]
    return header.get("msg_type") == "execute_request"


async def _poll(poll: Callable[[int], Awaitable[None]]) -> None:
    while True:
        await poll(AT_ONCE)
        await asyncio.sleep(EVERY)
