"""What an MCP server says beside its messages (its error output), kept within bounds, and failures as short sentences.

Must not know of clients or of tools. Read `Lines`, then `failure`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Generator
from typing import TextIO

from nbagent.core.messages import clean
from nbagent.core.shown import visible_plain

LINES = 200
_LINE = 500  # characters of one line


class Lines:
    """The last lines that a server wrote to its error output or logged; written and read on any thread."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES)
        self.count = 0
        """How many lines there were in all."""

    def add(self, text: str) -> None:
        """Keep the lines of a text."""
        for line in text[: _LINE * LINES].splitlines():
            if line.strip():
                self.count += 1
                self._lines.append(visible_plain(clean(line[:_LINE].rstrip()), spaces=False))

    def last(self, count: int) -> list[str]:
        """Return the last lines, oldest first."""
        return list(self._lines)[-count:] if count > 0 else []

    @contextlib.contextmanager
    def pipe(self) -> Generator[TextIO]:
        """Yield a file to be a process's error output; it is read until the last process that has it is gone.

        A thread reads it: a server that writes while the kernel is busy must not wait.
        """
        reading, writing = os.pipe()
        thread = threading.Thread(target=self._read, args=(reading,), name="nbagent-mcp-stderr", daemon=True)
        thread.start()
        with os.fdopen(writing, "w", encoding="utf-8") as file:
            yield file

    def _read(self, reading: int) -> None:
        rest = b""
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(65_536):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines[-LINES:]:
                    self.add(line.decode("utf-8", "replace"))
                rest = rest[:_LINE]  # a line without an end
        if rest:
            self.add(rest.decode("utf-8", "replace"))


def failure(error: BaseException | None, status: int = 0) -> str:
    """Return why a server failed, as a short sentence without a full stop; `status` is the last HTTP error."""
    if needs_login(status):
        return f'it asks for a login (HTTP {status}). Put a header into its entry, e.g. "Authorization": "Bearer ${{TOKEN}}"'
    if error is None:
        return "it ended at once"
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = clean(str(error)).strip().splitlines()
    said = text[0][:300] if text else ""
    http = f" (HTTP {status})" if status else ""
    if said == "Connection closed":
        return f"it ended before it had answered{http}"
    return (said.rstrip(".") or type(error).__name__) + http


def needs_login(status: int) -> bool:
    """Whether an HTTP status says that the server wants to know who asks."""
    return status in {401, 403}


def failures() -> tuple[type[BaseException], ...]:
    """What the SDK and its transports raise when a server or its network fails."""
    from httpx2 import HTTPError
    from mcp import MCPError

    return (MCPError, HTTPError, OSError, ValueError, RuntimeError, ExceptionGroup)


def is_closed(error: BaseException) -> bool:
    """Whether an error, or one in the group that it is, says that the connection was closed."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    if isinstance(error, BaseExceptionGroup):
        return any(is_closed(inner) for inner in error.exceptions)
    # servers use the code for other things too
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and error.message == "Connection closed"


def lost(what: str) -> str:
    """Return what to tell the model of a call whose server ended."""
    return (
        f"{what}: the server ended while this was under way. It may have taken effect, so it was not sent again: look "
        "first. The next call starts the server again."
    )


def progress_words(done: float, total: float | None, message: str | None) -> str:
    """Return how far a call is, in a short line."""
    of = f"{done:g} of {total:g}" if total else f"{done:g}"
    return f"{of}: {message[:300]}" if message else of
