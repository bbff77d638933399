"""The time limit of a run: an alarm that can be held while a person looks at a run that rests. Read `TimeLimit`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class TimeLimit:
    """The seconds that a run may take (None: any); while it is held they don't pass. Use it on the thread of the loop."""

    def __init__(self, seconds: float | None) -> None:
        self._left = seconds
        self._ring: Callable[[], object] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._holds = 0

    def start(self, ring: Callable[[], object]) -> None:
        """Have the seconds pass from now on; `ring` is called when they have."""
        self._ring = ring
        self._set()

    def hold(self) -> None:
        """Have no second pass until `go_on` was called as often as this."""
        self._holds += 1
        if self._alarm is not None:
            self._left = max(0.0, self._alarm.when() - asyncio.get_running_loop().time())
            self._unset()

    def go_on(self) -> None:
        """Take one `hold` back."""
        self._holds -= 1
        self._set()

    def end(self) -> None:
        """Never ring any more."""
        self._ring = None
        self._unset()

    def _set(self) -> None:
        if self._ring is not None and self._left is not None and self._alarm is None and not self._holds:
            self._alarm = asyncio.get_running_loop().call_later(self._left, self._ring)

    def _unset(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
