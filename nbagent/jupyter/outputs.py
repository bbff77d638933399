"""Collects the outputs of one piece of running code: merged, valid nbformat, bounded; and passes them on live.

What is collected is what was passed on, so that the cell and the model see the same. Of a flood of text the first
`HEAD` characters go through at once and the last `TAIL` at the end, with a line that counts what lies between and names
the file that has it all.
This module knows nothing of IPython. Read `Outputs.add` first.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from nbagent.core.messages import clean
from nbagent.core.ports import Output
from nbagent.jupyter.flood import Flood

HEAD = 1_000_000
TAIL = 50_000
_RICH_LIMIT = 500  # outputs that are not streams
_TEXT_LIMIT = 2_000_000  # characters of one text representation
_BINARY_LIMIT = 24_000_000  # characters of one base64 image
_BEAT = 0.05  # seconds between two pieces of a stream


class Outputs:
    """Takes writes and outputs from any thread.

    `emit` is called one at a time, from whichever thread has news: the one that runs the code or, for what was written
    and not followed by more, a helper thread.
    """

    def __init__(self, emit: Callable[[Output], None] | None, flood: Flood | None = None) -> None:
        self._emit = emit
        self._flood = flood or Flood(None)
        self._lock = threading.RLock()
        self._items: list[Output] = []
        self._ids: dict[int, str] = {}  # place in _items → display id
        self._parts: list[str] = []  # the text of the last stream in _items, not yet joined
        self._pending: list[str] = []
        self._pending_name = ""
        self._last_beat = 0.0
        self._streamed = 0
        self._tail: deque[tuple[str, str]] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._dropped_lines = 0
        self._after: list[Output] = []  # errors that came after a flood: they stand after its tail
        self._rich = 0
        self._rich_dropped = 0
        self._clear = False
        self._emitter: int | None = None
        self._wake = threading.Event()
        self._helper: threading.Thread | None = None
        self._closed = False
        self.flushing = False
        """Whether what comes now are the figures that are still open at the code's end."""
        self.errors = 0

    @property
    def emitting(self) -> bool:
        """Whether `emit` runs now, in this thread: what it prints is not an output of the code."""
        return self._emitter == threading.get_ident()

    def write(self, name: str, text: str) -> None:
        """Take a piece of the stream `name`; it is passed on within 50 ms."""
        if not text:
            return
        with self._lock:
            if self._closed:
                return
            if self._streamed >= HEAD:
                self._keep_tail(name, text)
                return
            if name != self._pending_name:
                self._flush()
                self._pending_name = name
            room = HEAD - self._streamed
            self._pending.append(text[:room])
            self._streamed += min(len(text), room)
            if len(text) > room:
                self._flush()
                self._keep_tail(name, text[room:])
            elif self._emit is None or time.monotonic() - self._last_beat >= _BEAT:
                self._flush()
            else:
                self._ask_helper()

    def flush(self) -> None:
        """Pass on what was written."""
        with self._lock:
            self._flush()

    def add(self, output: Output) -> None:
        """Take an output that is not a stream; displays may carry `_display_id` and `_update`."""
        with self._lock:
            if self._closed:
                return
            self._flush()
            if output["output_type"] == "clear_output":
                self._take_clear(output)
            elif output.get("_update"):
                self._take_update(output)
            elif output["output_type"] == "error" and (self._dropped or self._tail):
                self.errors += 1
                self._after.append(output)
            elif output["output_type"] == "error" or self._rich < _RICH_LIMIT:
                self._take(output)
            else:
                self._rich_dropped += 1

    def close(self) -> tuple[Output, ...]:
        """End: pass on the rest, and return all outputs as a notebook stores them."""
        with self._lock:
            self._flush()
            self._flood.end()
            self._pass_tail()
            for error in self._after:
                self.errors -= 1
                self._take(error)
            if self._rich_dropped:
                self._stream("stderr", f"[{self._rich_dropped:,} more outputs left out]\n")
            self._closed = True
            self._join()
            self._wake.set()
            items = tuple(self._items)
        if self._helper is not None:
            self._helper.join()
        return items

    def _take(self, output: Output) -> None:
        self._apply_clear()
        again = self.flushing or output["output_type"] == "execute_result"
        if again and (drawn := _picture(output)) and drawn in map(_picture, self._items):
            return  # it was shown by display() or as a value already
        self._join()
        if output["output_type"] == "error":
            self.errors += 1
        else:
            self._rich += 1
        if (display_id := output.get("_display_id")) is not None:
            self._ids[len(self._items)] = display_id
        self._items.append({key: value for key, value in output.items() if not key.startswith("_")})
        self._send(output)

    def _take_update(self, output: Output) -> None:
        """Change every output with that id; an id from elsewhere is passed on and changes nothing here."""
        for place, display_id in self._ids.items():
            if display_id == output.get("_display_id"):
                self._items[place] = {
                    **self._items[place],
                    "data": output["data"],
                    "metadata": output.get("metadata", {}),
                }
        self._send(output)

    def _take_clear(self, output: Output) -> None:
        self._clear = True
        self._send(output)
        if not output.get("wait"):
            self._apply_clear()

    def _apply_clear(self) -> None:
        if self._clear:
            self._clear = False
            self._items.clear()
            self._ids.clear()
            self._parts.clear()

    def _flush(self) -> None:
        if self._pending:
            text = "".join(self._pending)
            self._pending.clear()
            self._last_beat = time.monotonic()
            self._stream(self._pending_name, text)

    def _stream(self, name: str, text: str) -> None:
        self._apply_clear()
        text = clean(text)
        if not (self._items and self._items[-1]["output_type"] == "stream" and self._items[-1]["name"] == name):
            self._join()
            self._items.append({"output_type": "stream", "name": name, "text": ""})
        self._parts.append(text)
        self._send({"output_type": "stream", "name": name, "text": text})

    def _join(self) -> None:
        if self._parts:
            self._items[-1]["text"] += "".join(self._parts)
            self._parts.clear()

    def _send(self, output: Output) -> None:
        if self._emit is None:
            return
        self._emitter = threading.get_ident()
        try:
            self._emit(output)
        finally:
            self._emitter = None

    def _keep_tail(self, name: str, text: str) -> None:
        if self._flood.waits:
            self._flood.begin(self._so_far)
        self._flood.write(text)
        self._tail.append((name, text[-TAIL:]))
        self._tail_size += min(len(text), TAIL)
        cut = text[:-TAIL] if len(text) > TAIL else ""
        self._count(cut)
        while self._tail and self._tail_size - len(self._tail[0][1]) >= TAIL:
            _, old = self._tail.popleft()
            self._tail_size -= len(old)
            self._count(old)

    @property
    def _so_far(self) -> str:
        """The text of the streams that are kept, the last one's pieces too."""
        kept = (item["text"] for item in self._items if item["output_type"] == "stream")
        return "".join([*kept, *self._parts, *self._pending])

    def _count(self, cut: str) -> None:
        self._dropped += len(cut)
        self._dropped_lines += cut.count("\n")

    def _pass_tail(self) -> None:
        if not self._tail:
            return
        whole = f"; all of it is in {self._flood.path}" if self._flood.path else ""
        self._stream(
            self._tail[0][0],
            f"\n[… {self._dropped:,} characters ({self._dropped_lines:,} lines) of output left out here{whole} …]\n"
            if self._dropped
            else "",
        )
        merged: list[tuple[str, list[str]]] = []
        for name, text in self._tail:
            if not merged or merged[-1][0] != name:
                merged.append((name, []))
            merged[-1][1].append(text)
        self._tail.clear()
        for name, texts in merged:
            self._stream(name, "".join(texts))

    def _ask_helper(self) -> None:
        if self._helper is None:
            self._helper = threading.Thread(target=self._beat, name="nbagent-outputs", daemon=True)
            self._helper.start()
        if not self._wake.is_set():
            self._wake.set()

    def _beat(self) -> None:
        pause = threading.Event()
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            if not self._closed:
                pause.wait(_BEAT)
                self.flush()


_SVG_IDS = re.compile(r"""id="[^"]*"|"#[^"]*"|url\(#[^)]*\)|<dc:date>[^<]*""")


def _picture(output: Output) -> str:
    """What tells one picture from another, "" for an output without one. SVG has new ids each time it is drawn."""
    data = output.get("data") or {}
    drawn = data.get("image/png") or data.get("image/jpeg") or data.get("image/svg+xml") or ""
    return drawn if "image/png" in data or "image/jpeg" in data else _SVG_IDS.sub("", str(drawn))


def clean_bundle(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mime bundle as JSON: bytes in base64, surrogates replaced, representations of excess size left out."""
    bundle: dict[str, Any] = {}
    for mime, value in data.items():
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode("ascii")  # noqa: PLW2901
        if isinstance(value, str):
            limit = _BINARY_LIMIT if mime.startswith("image/") else _TEXT_LIMIT
            if len(value) > limit:
                if mime == "text/plain":
                    bundle[mime] = f"{clean(value[:TAIL])}\n[… {len(value) - TAIL:,} characters left out …]"
                continue
            bundle[mime] = clean(value)
        else:
            bundle[str(mime)] = as_json(value)
    return bundle


def as_json(value: Any) -> Any:
    """Return `value` as plain JSON; what JSON has no word for becomes text."""
    return json.loads(json.dumps(value, default=_as_text))


def _as_text(value: Any) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else f"<{type(value).__name__}>"
