"""Waits of the loop without a clock's nap: a turn, and bounded waiting until something holds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any


async def turns(count: int = 1) -> None:
    """Let all that is due on the loop happen, `count` times."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


async def until(holds: Callable[[], object], within: float = 10) -> None:
    """Return as soon as `holds` does; TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not holds():
            await turns()


def wait_until(holds: Callable[[], object], within: float = 60) -> None:
    """Block until `holds` does, where what is waited for is another process; TimeoutError after `within` seconds."""
    pause, end = threading.Event(), time.monotonic() + within
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not hold within {within:g} s")
        pause.wait(0.02)


async def at_once(value: Any) -> Any:
    """Return `value`: what a callback that is awaited gives where nothing has to be waited for."""
    return value
