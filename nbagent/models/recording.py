"""The file of a recording: JSON lines in ASCII, one request after the other, each with the stream that answered it.

ASCII and one value a line, so that no tool that changes line ends or encodings on its way can change what it holds. A request is its new
messages and where the ones before them stand, never these again. Each request is written whole and at once: a crash leaves all
that were answered before. Must not know of models. Read `Recorded`, then `read_recording`.

    {"recording": 1, "model": "claude-sonnet-5-5", "when": "2026-12-01T09:00:00Z", …}
    {"request": 1, "system": "You are …"}                      and its tools, one a line
    {"request": 1, "message": {"role": "user", "content": […]}}
    {"request": 1, "at": 412, "event": {"type": "message_start", …}}
    {"request": 1, "ended": "whole", "key": "9f2c…"}
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Block, Json, Message
from nbagent.core.ports import Request
from nbagent.models.likeness import VOLATILE, canonical, key_of, pattern_of
from nbagent.models.streamed import changed, retexted

VERSION = 1
WHOLE, CUT = "whole", "cut"
"""How the stream of a request ended: with its last event, or because nobody took more of it. Else with an error's name."""

FOLDER = "<nbagent-folder>"
"""Stands in a recording for the folder in which it was made; a replay puts its own there."""

REPLAYED = ", replayed"
"""What the name of a model ends with that answers from a recording."""

Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Piece:
    """One raw event of the stream, and how many milliseconds after the request it came."""

    at: int
    event: Json


@dataclass(frozen=True, slots=True)
class Failure:
    """With what error a stream ended: the name of its class in `core.errors`, its text, the seconds to wait that it asked for."""

    kind: str
    text: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it is compared (`asked`: system, tools, messages …), and what came back; `number` counts from 1."""

    number: int
    asked: Json
    pieces: tuple[Piece, ...]
    failure: Failure | None = None
    cut: bool = False

    def key(self, volatile: Mapping[str, str] = VOLATILE) -> str:
        """Return the hash by which it is found (see `likeness.key_of`)."""
        return key_of(self.asked, pattern_of(volatile))


@dataclass(frozen=True, slots=True)
class File:
    """A recording as it was read: `model` is who answered, `volatile` what differs from run to run, `about` the rest of the header."""

    path: Path
    model: str
    requests: tuple[Recorded, ...]
    volatile: Mapping[str, str] = field(default_factory=lambda: dict(VOLATILE))
    about: Json = field(default_factory=dict[str, Any])

    def results(self) -> dict[str, Block]:
        """Return the result of each call by its id, as the model was told it."""
        messages = [message for one in self.requests for message in one.asked["messages"]]
        blocks = [b for m in messages if isinstance(m.get("content"), list) for b in m["content"]]
        return {str(b["tool_use_id"]): b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"}


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What a recording must not hold: secrets (`mask` takes them out), the person's home folder, the folder that it is made in."""

    mask: Mask = str
    home: str = ""
    folder: str = ""

    @classmethod
    def here(cls, mask: Mask = str, folder: Path | None = None) -> Cleaning:
        """Return the one for this person and `folder` (None: the current one)."""
        return cls(mask, str(Path.home()), str((folder or Path()).resolve()))

    def clean(self, text: str) -> str:
        """Return a text without them."""
        text = self.mask(text)
        for place, mark in ((self.folder if self.folder != self.home else "", FOLDER), (self.home, "~")):
            if len(place) > 1 and place in text:
                text = re.sub(rf"{re.escape(place)}(?![\w-])", mark, text)
        return text

    def put_back(self, text: str) -> str:
        """Return a recorded text with the folder of now."""
        return text.replace(FOLDER, self.folder) if self.folder else text

    def asked(self, request: Request) -> Json:
        """Return a request as it is recorded and compared."""
        found: Json = {"system": request.system, "tools": list(request.tools), "messages": list(request.messages)}
        found |= {"max_tokens": request.max_tokens}
        if request.compaction is not None:
            found["compaction"] = request.compaction
        cleaned: Json = json.loads(json.dumps(changed(found, self.clean)))
        return cleaned


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tape:
    """A recording that is being made. A file that is there is written anew, if it is a recording; else `ConfigError`."""

    def __init__(self, path: Path, *, cleaning: Cleaning | None = None, about: Mapping[str, Any] | None = None) -> None:
        self.path, self.cleaning = path, cleaning or Cleaning.here()
        self._about = dict(about or {})
        self._written: list[Json] = []
        self._begun = False
        refuse_other(path)

    def add(self, asked: Json, pieces: Sequence[Piece], model: str, failure: Failure | None, *, cut: bool) -> None:
        """Write one request and its stream to the end of the file; it is on disk when this returns. Raises `ConfigError`."""
        if not self._begun:
            self._put([self._header(model)], mode="w")
            self._begun = True
        self._put(list(self._lines(asked, pieces, failure, cut=cut)), mode="a")

    def write(self, request: Request, pieces: Sequence[Piece], model: str) -> None:
        """Write a request that was answered whole, cleaned, with what came. Raises `ConfigError`."""
        events = retexted([piece.event for piece in pieces], self.cleaning.clean)
        cleaned = [Piece(piece.at, event) for piece, event in zip(pieces, events, strict=True)]
        self.add(self.cleaning.asked(request), cleaned, model, None, cut=False)

    def _header(self, model: str) -> Json:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        places = {"~": "the home folder", FOLDER: "the folder of the notebook"}
        return {"recording": VERSION, "model": model.removesuffix(REPLAYED), "when": when, **self._about,
                "places": places, "volatile": VOLATILE}  # fmt: skip

    def _lines(self, asked: Json, pieces: Sequence[Piece], failure: Failure | None, *, cut: bool) -> Iterator[Json]:
        self._written.append(asked)
        n = len(self._written)
        of, count = self._known(asked["messages"])
        head: Json = {"request": n, "max_tokens": asked["max_tokens"]}
        if "compaction" in asked:
            head["compaction"] = asked["compaction"]
        yield head | ({"after": {"request": of, "messages": count}} if of else {})
        before = self._written[of - 1] if of else {}
        if before.get("system") != asked["system"]:
            yield {"request": n, "system": asked["system"]}
        if before.get("tools") != asked["tools"]:
            yield {"request": n, "tools": len(asked["tools"])}
            yield from ({"request": n, "tool": tool} for tool in asked["tools"])
        yield from ({"request": n, "message": message} for message in asked["messages"][count:])
        yield from ({"request": n, "at": piece.at, "event": piece.event} for piece in pieces)
        ended: Json = {"request": n, "ended": failure.kind if failure else CUT if cut else WHOLE}
        if failure is not None:
            ended |= {"text": failure.text}
            ended |= {"retry_after": failure.retry_after} if failure.retry_after is not None else {}
        yield ended | {"key": key_of(asked, pattern_of(VOLATILE))}

    def _known(self, messages: list[Message]) -> tuple[int, int]:
        """Return after which request these messages go on, and after how many of its: the one that has most of them."""
        best = (0, 0)
        for number, asked in enumerate(self._written[:-1], 1):
            other = asked["messages"]
            if len(other) > len(messages) or len(other) < best[1]:
                continue
            if all(one == two for one, two in zip(reversed(other), reversed(messages[: len(other)]), strict=True)):
                best = (number, len(other))
        return best

    def _put(self, lines: Sequence[Json], mode: str) -> None:
        text = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open(mode, encoding="ascii", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ConfigError(f"The recording can't be written to {self.path}: {error.strerror}.") from error


def refuse_other(path: Path) -> None:
    """Raise `ConfigError` where a file is there that is no recording: it would be lost."""
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{path} can't be a recording: {error.strerror}.") from error
    if first.strip() and not first.startswith(b'{"recording": '):
        raise ConfigError(f"{path} is there and is no recording, so it is not written over. Choose another name.")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Open:
    """One request while its lines are read."""

    number: int
    asked: Json
    pieces: list[Piece] = field(default_factory=list[Piece])

    def take(self, line: Json) -> None:
        if "event" in line:
            self.pieces.append(Piece(int(line["at"]), dict(line["event"])))
        elif "message" in line:
            self.asked["messages"].append(line["message"])
        elif "tool" in line:
            self.asked["tools"].append(line["tool"])
        elif "tools" in line:
            self.asked["tools"] = []
        elif "system" in line:
            self.asked["system"] = line["system"]

    def recorded(self, line: Json) -> Recorded:
        ended = str(line["ended"])
        failure = None if ended in {WHOLE, CUT} else Failure(ended, str(line.get("text")), line.get("retry_after"))
        return Recorded(self.number, self.asked, tuple(self.pieces), failure, cut=ended == CUT)


def read_recording(path: Path) -> File:
    """Read a recording; a request that was not written to its end is left out. Raises `ConfigError` that says what is wrong."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"The recording {path} can't be read: {error.strerror}.") from error
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    header: Json = {}
    found: list[Recorded] = []
    open_now: _Open | None = None
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = _line(text)
            if not header:
                header = _headed(path, line)
            elif "max_tokens" in line:
                open_now = _opened(line, found)
            elif open_now is not None and "ended" in line:
                found.append(open_now.recorded(line))
                open_now = None
            elif open_now is not None:
                open_now.take(line)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            if number == len(lines):  # the machine stopped while it was written
                break
            raise ConfigError(f"The recording {path} is damaged in line {number}: {error}.") from None
    if not header:
        raise ConfigError(f"The recording {path} is empty.")
    volatile: Any = header.get("volatile")
    return File(path, str(header.get("model") or "recorded"), tuple(found),
                {str(k): str(v) for k, v in volatile.items()} if isinstance(volatile, dict) else dict(VOLATILE), header)  # fmt: skip


def _headed(path: Path, line: Any) -> Json:
    if not isinstance(line, dict) or "recording" not in line:
        raise ConfigError(
            f"{path} is no recording of nbagent: its first line does not say so. %%agent --record FILE makes one."
        )
    if line["recording"] != VERSION:
        raise ConfigError(
            f"{path} is a recording of version {line['recording']}; this nbagent reads version {VERSION}."
        )
    return line


def _opened(line: Json, found: Sequence[Recorded]) -> _Open:
    asked: Json = {"system": "", "tools": [], "messages": [], "max_tokens": line["max_tokens"]}
    if (after := line.get("after")) is not None:
        before = found[int(after["request"]) - 1].asked
        asked |= {"system": before["system"], "tools": before["tools"]}
        asked["messages"] = list(before["messages"][: int(after["messages"])])
    if "compaction" in line:
        asked["compaction"] = line["compaction"]
    return _Open(int(line["request"]), asked)


def _line(text: bytes | str) -> Json:
    line: Any = json.loads(text)
    if not isinstance(line, dict):
        raise TypeError("the line is no JSON object")
    return line


def same_but_when(path: Path) -> str:
    """Return the text of a recording without what differs when it is made anew: when, and how fast the pieces came."""
    lines: list[str] = []
    for text in path.read_bytes().splitlines():
        line: Json = json.loads(text)
        lines.append(canonical({name: value for name, value in line.items() if name not in {"when", "at"}}))
    return "\n".join(lines)
