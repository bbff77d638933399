"""One turn's exact request and reply: put together from the new messages of each request, and checked against the hash of what was sent.

What is not kept is said: HTTP headers and keys never are, and where only events are known, neither are the system prompt and
the tools. Read `exchange_html`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbagent.core.ports import Request
from nbagent.models.dialect import Dialect, request_body
from nbagent.view.loopview.blocks import long_html, raw_json
from nbagent.view.text import count, escape

if TYPE_CHECKING:
    from nbagent.core.messages import Json, Message
    from nbagent.view.loopview.seen import Asked, LoopSeen

STRING = 2_000
"""Characters of one string inside the JSON of a request."""

LIMIT = 60_000
"""Characters of the JSON of one request or reply."""

ROOM = 150_000
"""Characters of HTML that one of them may have."""

ENDS = 6
"""Messages at the beginning and at the end that are shown of a request with many."""

NOT_KEPT = "HTTP headers and keys are kept nowhere."
NO_BEFORE = "System prompt and tools are not among the events; %agent trace shows them of a finished run."


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A request as it can be told: `body` as it goes to the server, `whole` whether its hash is that of what was sent."""

    body: Json
    whole: bool
    known: bool

    @property
    def verdict(self) -> str:
        """What is known of it, in a sentence."""
        if not self.whole:
            return "This is a part of it: messages that these events do not hold come before, or images were left out."
        said = "All messages are here: their hash is that of what was sent."
        return said if self.known else f"{said} {NO_BEFORE}"


def rebuilt(seen: LoopSeen, asked: Asked) -> Rebuilt:
    """Return a request, put together from what is known."""
    messages: list[Message] = [said.message for said in seen.messages[asked.first : asked.upto]]
    if seen.before is not None and not asked.first:
        messages = [*seen.before.messages, *messages]
    system = seen.before.system if seen.before is not None else ""
    tools = seen.before.tools if seen.before is not None else ()
    dialect = Dialect.of(asked.model, home=asked.host == "api.anthropic.com")
    body = request_body(asked.model, Request(system, tools, messages), dialect)
    return Rebuilt(body, hash_of(messages) == asked.prefix, seen.before is not None)


def hash_of(messages: list[Message]) -> str:
    """Return the hash of messages as `core.session.Transcript.prefix` makes it."""
    digest = hashlib.sha256()
    for message in messages:
        digest.update(json.dumps(message, sort_keys=True, default=str).encode("utf-8", "replace"))
    return digest.hexdigest()[:16]


def exchange_html(seen: LoopSeen, turn: int) -> str:
    """Return the exact request and the exact reply of a turn, side by side."""
    asked = seen.request_of(turn)
    if asked is None:
        return ""
    return (
        f"<h4>Turn {turn}: the exact request and the exact reply</h4>"
        f'<div class="nbl-two"><div>{_request(seen, asked)}</div><div>{_reply(seen, turn)}</div></div>'
    )


def _request(seen: LoopSeen, asked: Asked) -> str:
    found = rebuilt(seen, asked)
    where = f" to {asked.host}" if asked.host else ""
    tries = f", sent {asked.tries} times" if asked.tries > 1 else ""
    messages = found.body["messages"]
    head = f"Request{where}, {asked.model}: {count(len(messages), 'message')}, {asked.new} new{tries}. {found.verdict} {NOT_KEPT}"
    new = messages[len(messages) - asked.new :] if asked.new and not asked.summing else []
    fresh = long_html(raw_json(new, STRING), LIMIT, ROOM) if new else ""
    whole = long_html(raw_json({**found.body, "messages": _ends(messages)}, STRING), LIMIT, ROOM)
    return (
        f'<div class="nbl-small">{escape(head)}</div>'
        + (f'<div class="nbl-small">new in it</div><div class="nbl-fresh">{fresh}</div>' if new else "")
        + f"<details><summary>the whole request: system, {count(len(found.body.get('tools', ())), 'tool')}, "
        f"{count(len(messages), 'message')}</summary>{whole}</details>"
    )


def _ends(messages: list[Message]) -> list[Message | str]:
    """Return the first and the last of many messages; those between are in the transcript below."""
    left = len(messages) - 2 * ENDS
    return (
        [*messages[:ENDS], f"… {left:,} messages: see the transcript …", *messages[-ENDS:]] if left > 0 else [*messages]
    )


def _reply(seen: LoopSeen, turn: int) -> str:
    replied = seen.reply_of(turn)
    if replied is None:
        said = "The reply streams in now." if seen.writing else "No whole reply was received."
        return f'<div class="nbl-small">{said}</div>'
    usage = replied.usage
    body = {
        "role": "assistant",
        "content": list(replied.content),
        "stop_reason": replied.stop_reason,
        "usage": {"input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
                  "cache_creation_input_tokens": usage.cache_write, "output_tokens": usage.output},
    }  # fmt: skip
    head = f"Reply: {count(len(replied.content), 'block')}, stopped with {replied.stop_reason or 'nothing'}. Ids and time stamps of the server are not kept."
    return f'<div class="nbl-small">{escape(head)}</div>{long_html(raw_json(body, STRING), LIMIT, ROOM)}'
