"""Keeps ipykernel 7.0 to 7.3 from losing what the page asks: their kernel falls silent until something else is asked.

There a reply is sent on the very socket that a stream reads, past that stream. If a request arrives at that moment, the
stream is never told of it (zmq tells once), so a cell stays at [*] and a click on Approve does nothing. ipykernel 7.4
sends through the stream; this does the same to the older ones. Must not know of cells or agents. Read `Replies`.
"""

from __future__ import annotations

from typing import Any


class Replies:
    """How one kernel sends what it answers."""

    def __init__(self, kernel: Any) -> None:
        self._thread: Any = getattr(kernel, "shell_channel_thread", None)
        self._stream: Any = getattr(kernel, "shell_stream", None)
        self._sends: Any = None

    def install(self) -> None:
        """Send through the stream from now on; a kernel that has no thread for requests, or does so, is left as it is."""
        manager: Any = getattr(self._thread, "manager", None)
        if self._sends is not None or not hasattr(manager, "_shell_socket"):
            return
        self._sends = self._stream.send_multipart
        manager._send_on_shell_channel = self._sends  # noqa: SLF001  (of subshells that begin later; no public way)
        self._thread.io_loop.add_callback(_hand_over, manager, self._sends)

    def remove(self) -> None:
        """Leave the kernel as it was; where somebody else has changed it since, as it is."""
        manager: Any = getattr(self._thread, "manager", None)
        if self._sends is not None and vars(manager).get("_send_on_shell_channel") is self._sends:
            del manager._send_on_shell_channel  # noqa: SLF001
            self._thread.io_loop.add_callback(_hand_over, manager, manager._send_on_shell_channel)  # noqa: SLF001
        self._sends = None


def _hand_over(manager: Any, send: Any) -> None:
    """Have `send` get what the main thread and the subshells answer. On the thread of the streams that read it."""
    pairs = [manager._main_to_shell_channel]  # noqa: SLF001
    pairs += [subshell.subshell_to_shell_channel for subshell in list(manager._cache.values())]  # noqa: SLF001
    for pair in pairs:
        pair.to_stream.on_recv(send, copy=False)
