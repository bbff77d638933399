r"""What a running cell's outputs are, kept in the kernel: the truth that pages are patched from.

Streams are folded as a terminal would (`\r`, backspace), so that what enters the document never has to be rewritten
in the middle; their total is bounded, head and tail kept. Knows nothing of pages or threads (its owner locks).
Read `Mirror.take`, then `Mirror.patch`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from nbagent.core.messages import Json, clean
from nbagent.core.ports import Output

TEXT_LIMIT = 1_000_000
"""Characters of stream text of one cell that are shown; a longer stream keeps this head and a tail."""
TAIL_LIMIT = 50_000
OUTPUT_LIMIT = 1_000
"""Outputs of one cell that are kept."""

_CONTROL = re.compile(r"[\n\r\x08]")


@dataclass(slots=True)
class Stream:
    """One stream output, folded: `lines` are finished pieces of text, `line` is the last, still open line."""

    name: str
    lines: list[str] = field(default_factory=list[str])
    line: str = ""
    length: int = 0
    _column: int | None = None  # where the next character goes after a carriage return; None: at the end
    _sent_lines: int = 0
    _sent_line: str = ""

    def feed(self, text: str) -> None:
        """Add text as a terminal would show it."""
        before, position = len(self.line), 0
        for found in _CONTROL.finditer(text):
            self._write(text[position : found.start()])
            position = found.end()
            match found[0]:
                case "\n":
                    self.lines.append(self.line + "\n")
                    self.length += 1
                    self.length += len(self.line) - before
                    self.line, self._column, before = "", None, 0
                case "\r":
                    self._column = 0
                case _:
                    self._back()
        self._write(text[position:])
        self.length += len(self.line) - before

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._column is None:
            self.line += text
        elif "\x1b" in self.line:  # colour codes have no width: overwriting would cut them in two
            self.line, self._column = text, None
        else:
            end = self._column + len(text)
            self.line = self.line[: self._column] + text + self.line[end:]
            self._column = None if end >= len(self.line) else end

    def _back(self) -> None:
        if self._column is None:
            self.line = self.line[:-1]
        elif self._column > 0:
            self._column -= 1

    @property
    def text(self) -> str:
        """The whole text as it is now."""
        return "".join(self.lines) + self.line

    def change(self) -> tuple[int, str]:
        """Return what turns the text of the last call into the text of now: UTF-16 units to drop, text to add."""
        new = "".join(self.lines[self._sent_lines :]) + self.line
        old = self._sent_line
        same = len(old) if new.startswith(old) else next(i for i, c in enumerate(old) if new[i : i + 1] != c)
        self._sent_lines, self._sent_line = len(self.lines), self.line
        return len(old[same:].encode("utf-16-le", "surrogatepass")) // 2, new[same:]


class Mirror:
    """The outputs of one cell's run, and what of them the page has already."""

    def __init__(self) -> None:
        self._items: list[Output | Stream] = []
        self._ids: dict[int, str] = {}
        self._sent = 0
        self._changed_from: int | None = None
        self._whole = False
        self._clear_next = False
        self._kept = 0
        self._left_out = 0
        self._tail = ""
        self._tail_name = "stdout"
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """All outputs as they are stored in a notebook."""
        return tuple(_stored(item) for item in self._items)

    def take(self, output: Output) -> None:
        """Add one output, or play a `clear_output` or a display update (see `ports.CellSink.emit`)."""
        kind = output.get("output_type")
        if kind == "clear_output":
            if output.get("wait"):
                self._clear_next = True
            else:
                self._clear()
            return
        if output.get("_update"):
            self._update(output)
            return
        if self._clear_next:
            self._clear()
        if kind == "stream":
            self._take_text(str(output.get("name") or "stdout"), clean(_joined(output.get("text"))))
        elif len(self._items) >= OUTPUT_LIMIT:
            self._dropped += 1
        else:
            if (display_id := output.get("_display_id")) is not None:
                self._ids[len(self._items)] = str(display_id)
            self._items.append({k: v for k, v in output.items() if not k.startswith("_")})

    def close(self) -> None:
        """Say what was left out, with the tail of a stream that was too long. Nothing may be taken afterwards."""
        if self._left_out:
            gone = self._left_out - len(self._tail)
            gap = f"\n[… {gone:,} characters left out …]\n" if gone else ""
            self._stream(self._tail_name).feed(gap + self._tail)
            self._left_out = 0
        if self._dropped:
            self._stream("stderr").feed(f"[… {self._dropped:,} more outputs left out …]\n")
            self._dropped = 0

    def resend(self) -> None:
        """Make the next patch hold all outputs."""
        self._whole = True

    def patch(self) -> Json | None:
        """Return what brings the page up to date, None if it is; the page counts as up to date from then on.

        `base` is the number of outputs that it must have now (-1: any), `keep` how many of them stay, `drop` and
        `text` change the end of the last of them (a stream; `drop` in UTF-16 units), `add` are new outputs.
        """
        if self._whole:
            self._whole = False
            return self._replace(base=-1, keep=0)
        base = self._sent
        if self._changed_from is not None and self._changed_from < base:
            return self._replace(base=base, keep=self._changed_from)
        drop, text = 0, ""
        if base and isinstance(last := self._items[base - 1], Stream):
            drop, text = last.change()
        add = self._add(base)
        if not (drop or text or add):
            return None
        return {"base": base, "keep": base, "drop": drop, "text": text, "add": add}

    def _replace(self, *, base: int, keep: int) -> Json:
        return {"base": base, "keep": keep, "drop": 0, "text": "", "add": self._add(keep)}

    def _add(self, start: int) -> list[Output]:
        self._sent, self._changed_from = len(self._items), None
        for item in self._items[start:]:
            if isinstance(item, Stream):
                item.change()
        return [_stored(item) for item in self._items[start:]]

    def _stream(self, name: str) -> Stream:
        last = self._items[-1] if self._items else None
        if isinstance(last, Stream) and last.name == name:
            return last
        self._items.append(stream := Stream(name))
        return stream

    def _take_text(self, name: str, text: str) -> None:
        if not text:
            return
        if len(self._items) >= OUTPUT_LIMIT or self._kept >= TEXT_LIMIT:
            self._leave_out(name, text)
            return
        stream = self._stream(name)
        room = TEXT_LIMIT - self._kept
        before = stream.length
        stream.feed(text[:room])
        self._kept += stream.length - before
        if rest := text[room:]:
            self._leave_out(name, rest)

    def _leave_out(self, name: str, text: str) -> None:
        self._kept = TEXT_LIMIT  # once cut, always cut: a later piece must not slip in before the tail
        self._left_out += len(text)
        self._tail = (self._tail + text[-TAIL_LIMIT:])[-TAIL_LIMIT:]
        self._tail_name = name

    def _clear(self) -> None:
        self._items.clear()
        self._ids.clear()
        self._clear_next = False
        self._changed_from = 0
        self._kept = self._left_out = self._dropped = 0
        self._tail = ""

    def _update(self, output: Output) -> None:
        for index, display_id in self._ids.items():
            if display_id != str(output.get("_display_id")):
                continue
            item: Any = self._items[index]
            self._items[index] = {**item, "data": output.get("data", {}), "metadata": output.get("metadata", {})}
            self._changed_from = min(index, self._changed_from if self._changed_from is not None else index)


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text or "")


def _stored(item: Output | Stream) -> Output:
    if isinstance(item, Stream):
        return {"output_type": "stream", "name": item.name, "text": item.text}
    return item
