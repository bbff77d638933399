"""The pipe from which ipykernel reads what is written to descriptor 1 or 2 past `sys.stdout` and `sys.stderr`.

A thread of ipykernel's (the watcher) reads it and hands what it got to the stream's `write`, some time later. To know
that all has come, a mark is written to the descriptor and waited for. This module must not know where the text goes.
Read `Watched.read_up` first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import select
import sys
import threading
from collections.abc import Callable
from typing import Any

_WITHIN = 5.0  # seconds for the watcher to come to the mark
_LOOK = 0.005  # seconds between two looks whether a full pipe has room again


class Watched:
    """What a stream of ipykernel's watches. Make one by `Watched.of`."""

    def __init__(self, stream: Any, watcher: threading.Thread) -> None:
        self.watcher = watcher
        self._descriptor: int = stream._original_stdstream_fd  # noqa: SLF001
        # both ends of a pipe are one file; on macOS they are two, so there the end that we write to is remembered
        self._pipe = os.fstat(stream._fid if sys.platform == "linux" else self._descriptor)  # noqa: SLF001
        self._mark = ""
        self._held = ""
        self._tell: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, stream: Any) -> Watched | None:
        """Return what `stream` watches; None where it watches nothing (a terminal, Windows, a closed descriptor)."""
        watcher = getattr(stream, "watch_fd_thread", None)
        if watcher is None:
            return None
        try:
            return cls(stream, watcher)
        except OSError:
            return None

    async def read_up(self) -> None:
        """Wait until all that has been written so far was handed on, at most 5 s."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
                loop.call_soon_threadsafe(arrived.set)

        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_WITHIN):
                if not self.watcher.is_alive() or not os.path.samestat(os.fstat(self._descriptor), self._pipe):
                    return  # the code has led its descriptor elsewhere: nothing is to be written there
                while not select.select([], [self._descriptor], [], 0)[1]:
                    await asyncio.sleep(_LOOK)
                self._tell, self._mark = tell, _mark()
                os.write(self._descriptor, self._mark.encode())
                await arrived.wait()

    def hand_on(self, text: str, put: Callable[[str], object]) -> None:
        """Give `put` what the watcher has read, without the mark, and tell who waits for that; the watcher calls this."""
        if not self._mark:
            put(text)
            return
        text, self._held = self._held + text, ""
        before, found, after = text.partition(self._mark)
        if not found:
            cut = max((n for n in range(1, len(self._mark)) if text.endswith(self._mark[:n])), default=0)
            before, self._held = text[: len(text) - cut], text[len(text) - cut :]
        else:
            self._mark = ""
        try:
            put(before + after)
        finally:
            if found:
                self._tell()


def _mark() -> str:
    """Return characters that no program writes by chance and no terminal shows: the kernel's own terminal gets them too."""
    return "".join("\0\x7f"[int(bit)] for bit in f"{secrets.randbits(64):064b}")
