"""A decoder of server-sent events: bytes in, events out, whatever way the bytes were cut.

It follows the WHATWG algorithm (LF, CRLF and CR end lines; comments, ids and retry fields are passed over; text is
UTF-8 with U+FFFD for what is not). It knows nothing of what the events mean. Read `SseDecoder.feed` first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its name ("message" if the server gave none) and its data, lines joined by newlines."""

    name: str
    data: str


class SseDecoder:
    """Decodes one stream. Feed it every chunk in order, then `close` it to get an event that nobody ended."""

    __slots__ = ("_at_start", "_data", "_name", "_rest", "_skip_lf")

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # pieces of a line whose end has not come; joined once, so a long line costs O(n)
        self._data: list[bytes] = []
        self._name = b""
        self._skip_lf = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete."""
        if self._skip_lf and chunk:  # the CR before was a line end, so this LF belongs to it
            self._skip_lf = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk.endswith(b"\r")
            first, *others = _LINE_END.split(chunk)
        else:
            first, *others = chunk.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        lines = [b"".join(self._rest), *others]
        self._rest = [lines.pop()]
        events: list[SseEvent] = []
        for line in lines:
            self._line(line, events)
        return events

    def close(self) -> list[SseEvent]:
        """Return the event, if any, that the stream's end left without its blank line."""
        events: list[SseEvent] = []
        line, self._rest = b"".join(self._rest), []
        if line:
            self._line(line, events)
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                data = b"\n".join(self._data).decode("utf-8", "replace")
                events.append(SseEvent(self._name.decode("utf-8", "replace") or "message", data))
                self._data = []
            self._name = b""
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")
