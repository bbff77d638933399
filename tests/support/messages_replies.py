"""What `MessagesServer` can answer: replies, faults, and short ways to write them."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.messages_rules import Json

_CALL_NUMBERS = itertools.count(1)  # test support only: ids must be unique over all servers of a test run


@dataclass
class Reply:
    """One reply as a stream of events, with what should go wrong in it.

    `content` is text or blocks; `thinking` puts a signed thinking block before it. Event numbers count from 0
    (message_start) and name what is the first thing NOT sent well. `pace` is seconds between events.
    """

    content: str | list[Json] = ""
    stop_reason: str | None = None
    thinking: str = ""
    usage: Json | None = None
    chunk: int = 5
    odd: bool = True  # cut the bytes at odd places; False: an HTTP chunk for every event, faster for long replies
    pace: float = 0.0
    whole: bool = False  # one JSON message instead of a stream
    end_after: int | None = None  # clean end before event N
    cut_after: int | None = None  # connection reset before event N
    cut_bytes: int | None = None  # connection reset after N bytes of the stream
    hang_after: int | None = None  # silence before event N, socket open
    ping_after: int | None = None  # nothing but pings before event N, one every `ping_every` seconds
    ping_every: float = 0.02
    garble_at: int | None = None  # event N is not JSON
    error_at: tuple[int, str] | None = None  # (N, type): an error event in place of event N
    extra: dict[int, str] = field(default_factory=dict)  # raw text put before event N, e.g. ": comment\n\n"
    events: list[Json] | None = None  # raw events instead of `content`


@dataclass
class Status:
    """An answer that is no stream: an HTTP status with the API's error shape, or with `body` as it is."""

    code: int
    kind: str = ""
    message: str = "scripted fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    content_type: str = "application/json"


@dataclass
class Reset:
    """The connection is reset before any byte of an answer."""


@dataclass
class Silence:
    """The request is read, and no byte is ever sent."""


Scripted = Reply | Status | Reset | Silence | str | list[Json]

HTML = Status(200, body="<html><body>Please log in</body></html>", content_type="text/html")


def say(text: str, **options: Any) -> Reply:
    """A reply of text."""
    return Reply(text, **options)


def calls(tool: str, /, *, text: str = "", **arguments: Any) -> Reply:
    """A reply that calls one tool, after `text` if given; put several `call` blocks into a Reply for more."""
    before: list[Json] = [{"type": "text", "text": text}] if text else []
    return Reply([*before, call(tool, **arguments)])


def call(tool: str, /, **arguments: Any) -> Json:
    """A tool_use block with an id of its own."""
    return {"type": "tool_use", "id": f"toolu_{next(_CALL_NUMBERS):06d}", "name": tool, "input": arguments}


def refused_url() -> str:
    """A URL of this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
