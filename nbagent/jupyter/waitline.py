"""The line that a cell shows while it waits for its turn. Read `WaitLine`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, Self

AFTER = 0.3
"""Seconds that a cell may wait without a word: most turns are shorter."""
EVERY = 1.0


class WaitLine:
    """While entered, shows `text()` in the cell that runs (None: nothing), renewed each second; afterwards it is gone.

    `publish` sends a message of a kind, with its content, to the cell. Nothing of it stays in the saved notebook.
    """

    def __init__(self, publish: Callable[[str, dict[str, Any]], None], text: Callable[[], str] | None) -> None:
        self._publish, self._text = publish, text
        self._id = f"nbagent-{secrets.token_hex(8)}"
        self._shown = False
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if self._text is not None:
            self._timer = asyncio.get_running_loop().call_later(AFTER, self._show, self._text)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._shown:  # an empty update would leave an empty output behind
            self._publish("clear_output", {"wait": False})

    def _show(self, text: Callable[[], str]) -> None:
        kind = "update_display_data" if self._shown else "display_data"
        content = {"data": {"text/plain": text()}, "metadata": {}, "transient": {"display_id": self._id}}
        self._publish(kind, content)
        self._shown = True
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._show, text)
