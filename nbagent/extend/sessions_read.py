"""Reads sessions from disk: all of one (`read_session`), or what a list tells of it (`outline`).

A file may be torn at its end (the kernel was killed), written by another version, or not be ours: lines that can't be
read are passed over, and what comes out is always a transcript that the API takes once `Stored.closing` is appended.
Must not know how sessions are written on, nor what is done with them. Read `Stored`, then `read_session`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nbagent.core.messages import Block, Json, Message, Usage, text_block
from nbagent.core.session import MAYBE, NEVER_BEGAN, result_block

SEALED = b'{"seal": "%s", '
"""How a sealed line begins; the seal is made of the seal before it and of the line without this."""

LINE = 64_000_000
"""Bytes of one line that are read; a longer one is passed over."""

_HEAD = 300
_SEAL = re.compile(rb'\{"seal": "([0-9a-f]{64})", ')
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_WORDS = 400
_RUNTIME = "(From the runtime"


class Checks(Protocol):
    """Checks seals (`extend.seals.Seals`)."""

    def holds(self, data: bytes, seal: object) -> bool:
        """Whether `seal` was made of `data`."""
        ...


@dataclass(frozen=True, slots=True)
class OldRun:
    """One run as it was kept: its first message, what it said at its start, and all it reported, as JSON."""

    first: int
    started: Json
    events: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as it is on disk: its first record, and the messages of its transcript.

    `closing` are results for the calls that the last message leaves open, in words that say what is known of them. `began`:
    of each cell whose last run is finished, the first message of that run. `sealed`: all of it was written by this
    person's nbagent; `last` is the last seal.
    """

    about: Json
    messages: tuple[Message, ...]
    closing: Mapping[str, Block] = field(default_factory=dict[str, Block])
    began: Mapping[str, int] = field(default_factory=dict[str, int])
    runs: tuple[OldRun, ...] = ()
    title: str = ""
    unfinished: str = ""
    """The cell whose run was cut off last, "" where none was."""
    sealed: bool = False
    last: str = ""
    kernel: str = ""
    """In which kernel it went on last, "" where that is not known."""

    @property
    def model(self) -> str:
        """The model of its last run, "" where that is not known."""
        return str(self.runs[-1].started.get("model") or "") if self.runs else ""

    @property
    def spent(self) -> tuple[Usage, float | None]:
        """The tokens and US dollars of its runs; runs that were cut off count by their replies."""
        usage, cost = Usage(), 0.0
        for run in self.runs:
            used, price, _ = _spent(run.events)
            usage += used
            if price is None or cost is None:
                cost = None
            else:
                cost += price
        return usage, cost


@dataclass(frozen=True, slots=True)
class Outline:
    """What a list tells of a session. `at`, `last`: when it began and was written last (seconds since 1970).

    `moved`: the notebook went over to it (a branch is beside the notebook's conversation until then).
    """

    path: Path
    about: Json
    at: float
    last: float
    notebook: str
    title: str = ""
    prompt: str = ""
    runs: int = 0
    turns: int = 0
    cost: float | None = 0.0
    messages: int = 0
    moved: bool = False

    @property
    def id(self) -> str:
        """The session's id."""
        return self.path.stem

    @property
    def beside(self) -> bool:
        """Whether it is not the notebook's own conversation: a branch, or an errand of a subagent's."""
        return bool(self.about.get("errand") or (self.about.get("beside") and not self.moved))


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file without their ends; none of a file that can't be read; links are not followed."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb")
    except OSError:
        return
    with file:
        while line := file.readline(LINE):
            if len(line) == LINE and not line.endswith(b"\n"):
                while (line := file.readline(LINE)) and not line.endswith(b"\n"):
                    pass
                continue
            if line.strip():
                yield line.rstrip(b"\r\n")


def _record(line: bytes) -> Json | None:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("type"), str) else None


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    seals: Checks | None
    about: Json = field(default_factory=dict[str, Any])
    messages: list[Message] = field(default_factory=list[Message])
    began: dict[str, int] = field(default_factory=dict[str, int])
    events: list[Json] = field(default_factory=list[Json])
    runs: list[tuple[int, list[Json]]] = field(default_factory=list[tuple[int, list[Json]]])
    title: str = ""
    unfinished: str = ""
    last: str = ""
    sealed: bool = True
    kernel: str = ""

    def check(self, line: bytes) -> None:
        """Follow the chain of seals over one line that could be read."""
        found = _SEAL.match(line)
        seal = found[1].decode("ascii") if found is not None else ""
        body = b"{" + line[found.end() :] if found is not None else line
        if self.seals is None or not seal or not self.seals.holds(self.last.encode("ascii") + body, seal):
            self.sealed = False
        self.last = seal

    def take(self, record: Json) -> None:
        match record:
            case {"type": "message", "message": {"role": "user" | "assistant", "content": list()} as message}:
                self.messages.append(message if all(map(_is_block, message["content"])) else {**message, "content": []})
                self.events = []
            case {"type": "event", "event": {"type": str() as kind} as event}:
                if kind == "run_started":
                    self.runs.append((len(self.messages), []))
                if not self.runs and kind == "reply_ended":  # of a run that began in the session before this one
                    self.runs.append((0, [{"type": "run_started"}]))
                if self.runs:
                    self.runs[-1][1].append(event)
                self.events.append(event)
            case {"type": "cell", "cell": str() as cell, "first": first}:
                self.began.pop(cell, None)
                self.unfinished = cell if first is None else ""
                if isinstance(first, int):
                    self.began[cell] = first
            case {"type": "title", "title": str() as title}:
                self.title = title
            case {"type": "resumed" | "session", "kernel": str() as kernel}:
                self.kernel = kernel
            case _:
                pass

    def end(self) -> Stored:
        messages = valid(self.messages)
        began = self.about.get("began")
        inherited = {str(k): v for k, v in began.items() if isinstance(v, int)} if isinstance(began, dict) else {}
        whole = len(messages) == len(self.messages)
        return Stored(
            self.about,
            messages,
            closing=_closing(messages, self.events if whole else ()),
            began={cell: first for cell, first in {**inherited, **self.began}.items() if first <= len(messages)},
            runs=tuple(
                OldRun(first, events[0], tuple(events)) for first, events in self.runs if first <= len(messages)
            ),
            title=self.title or str(self.about.get("title") or ""),
            unfinished=self.unfinished,
            sealed=self.sealed,
            last=self.last,
            kernel=self.kernel,
        )


def read_session(path: Path, seals: Checks | None = None) -> Stored | None:
    """Return the session in a file, None where there is none; a line that can't be read (torn at the end) is left out."""
    reading = _Reading(seals)
    for line in lines(path):
        record = _record(line)
        if not reading.about:
            if record is None or record["type"] != "session" or record.get("v") != 1:
                return None
            reading.about = record
        if record is not None:
            reading.check(line)
            reading.take(record)
    return reading.end() if reading.about else None


def _is_block(block: Any) -> bool:
    """Whether a block has what is read of it here; a message with another one is taken as none."""
    named = {"tool_use": "id", "tool_result": "tool_use_id"}
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and isinstance(block.get(named.get(kind, "type")), str)


def calls_of(message: Message) -> list[str]:
    """Return the ids of the calls of one message, in order."""
    return [str(b.get("id")) for b in message["content"] if isinstance(b, dict) and b.get("type") == "tool_use"]


def valid(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages up to the first that the API would refuse after those before it: a record is missing there."""
    kept: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        results = [b["tool_use_id"] for b in message["content"] if b.get("type") == "tool_result"]
        begins = bool(kept) or any(b.get("type") == "compaction" for b in message["content"])
        wrong = message["role"] == "assistant" and (waiting or not begins)
        if wrong or results != waiting or not message["content"]:
            break
        kept.append(message)
        waiting = calls_of(message) if message["role"] == "assistant" else []
    return tuple(kept)


def _closing(messages: Sequence[Message], events: Sequence[Json]) -> dict[str, Block]:
    """Return results for the calls of the last message: what they gave, or what is known of those that were cut off."""
    if not messages or messages[-1]["role"] != "assistant":
        return {}
    events = [event for event in events if isinstance(event.get("call_id"), str)]
    ended = {event.get("call_id"): event for event in events if event["type"] == "call_ended"}
    begun = {
        event.get("call_id")
        for event in events
        if event["type"] == "call_started" or (event["type"] == "approval_answered" and event.get("approved"))
    }
    closing: dict[str, Block] = {}
    for call in calls_of(messages[-1]):
        content = ended[call].get("content") if call in ended else None
        if isinstance(content, list) and content:
            closing[call] = result_block(call, content, is_error=ended[call].get("status") != "ok")
        else:
            said = MAYBE if call in begun else NEVER_BEGAN
            closing[call] = result_block(call, [text_block(said)], is_error=True)
    return closing


def _spent(events: Sequence[Json]) -> tuple[Usage, float | None, int]:
    """Return tokens, US dollars and turns of one run; without its end, those of the replies that came."""
    ends = [event for event in events if event["type"] == "run_ended"] or [
        e for e in events if e["type"] == "reply_ended"
    ]
    usage, cost = Usage(), 0.0
    for event in ends:
        used = event.get("usage")
        usage += _usage(used) if isinstance(used, dict) else Usage()
        price = event.get("cost")
        cost = None if cost is None or not isinstance(price, int | float) else cost + price
    turns = sum(int(e["turns"]) if isinstance(e.get("turns"), int) else 1 for e in ends)
    return usage, cost, turns


def _usage(used: Json) -> Usage:
    counts = [used.get(name) for name in ("input", "output", "cache_write", "cache_read")]
    return Usage(*(count if isinstance(count, int) else 0 for count in counts))


def prompt_of(message: Message) -> str:
    """Return the readable part of a prompt's message: its last text; "" for what is no prompt of a person's."""
    if message["role"] != "user" or any(block.get("type") == "tool_result" for block in message["content"]):
        return ""
    texts = [str(block.get("text")) for block in message["content"] if block.get("type") == "text"]
    own = [text for text in texts if not text.startswith(("<context>", "<hook", _RUNTIME))]
    return own[-1] if own else ""


def prompts(messages: Sequence[Message]) -> list[int]:
    """Return where the prompts stand in a transcript, in order."""
    return [place for place, message in enumerate(messages) if prompt_of(message)]


_TOLD = (
    b'"type": "session"',
    b'"run_started"',
    b'"run_ended"',
    b'"reply_ended"',
    b'"type": "title"',
    b'"type": "resumed"',
)


def outline(path: Path) -> Outline | None:
    """Return what a list tells of a session, None for a file that is none; only the lines that tell it are parsed."""
    about: Json = {}
    runs: list[list[Json]] = []
    title, first, messages, moved, at = "", "", 0, False, 0.0
    for line in lines(path):
        head = line[:_HEAD]
        is_message = b'"type": "message"' in head
        messages += is_message
        if about and not any(word in head for word in _TOLD) and not (is_message and messages == 1):
            continue
        record = _record(line)
        if not about:
            if record is None or record["type"] != "session" or record.get("v") != 1:
                return None
            about, at = record, _when(record)
        match record:
            case {"type": "event", "event": {"type": "run_started"} as event}:
                runs.append([event])
            case {"type": "event", "event": {"type": "run_ended" | "reply_ended"} as event}:
                runs = runs or [[{"type": "run_started"}]]  # of a run that began in the session before this one
                runs[-1].append(event)
            case {"type": "message", "message": {"content": list()} as message}:
                first = prompt_of(message) if all(map(_is_block, message["content"])) else ""
            case {"type": "title", "title": str() as text}:
                title = text
            case {"type": "resumed"}:
                moved = moved or bool(record.get("moved"))
            case _:
                pass
    if not about:
        return None
    found = Outline(path, about, at, _changed(path), str(about.get("notebook") or ""), messages=messages, moved=moved)
    return _with_runs(found, runs, title or str(about.get("title") or ""), first)


def _with_runs(found: Outline, runs: list[list[Json]], title: str, first: str) -> Outline:
    spent = [_spent(events) for events in runs]
    costs = [cost for _, cost, _ in spent]
    started = [events[0] for events in runs]
    return Outline(
        found.path, found.about, found.at or _time_of(found.id), found.last,
        notebook=next((str(e["notebook"]) for e in reversed(started) if e.get("notebook")), found.notebook),
        title=title,
        prompt=(next((str(e["prompt"]) for e in started if e.get("prompt")), "") or first)[:_WORDS],
        runs=len(runs),
        turns=sum(turns for _, _, turns in spent),
        cost=None if any(cost is None for cost in costs) else sum(cost or 0.0 for cost in costs),
        messages=found.messages,
        moved=found.moved,
    )  # fmt: skip


def _when(record: Json) -> float:
    when = record.get("when")
    return float(when) if isinstance(when, int | float) else 0.0


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _time_of(session: str) -> float:
    try:
        return time.mktime(time.strptime("-".join(session.split("-")[:2]), "%Y%m%d-%H%M%S"))
    except (ValueError, OverflowError):
        return 0.0
