"""What a model sees, as HTML for the person who is the model: system prompt, tools with their schemas, messages.

All text is data: it is escaped, and what is hidden in it is made visible. Pure. Read `turn_html`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nbagent.core.messages import Block, Json, Message, plain_text
from nbagent.core.shown import visible_plain
from nbagent.models.human import Reply, Turn
from nbagent.view.text import count, escape

_LONGEST = 20_000
"""Characters of one text that are shown to a person; a model gets all of it, and the page says so."""


def turn_html(turn: Turn) -> str:
    """Return what the model is asked with: new messages open, all else folded."""
    served = [tool for tool in turn.tools if "input_schema" not in tool]
    own = [tool for tool in turn.tools if "input_schema" in tool]
    parts = [
        _fold("System prompt", f"{len(turn.system):,} characters", _pre(turn.system)),
        _fold("Tools", str(len(own)), "".join(_tool(tool) for tool in own)),
        _fold("Tools of the server", str(len(served)), _pre(_json(served))) if served else "",
        _fold("Earlier messages", str(len(turn.earlier)), messages_html(turn.earlier)) if turn.earlier else "",
    ]
    return (
        f'<div class="nbagent-asktitle"><b>You are the model.</b> Reply {turn.number} of this conversation; about {turn.tokens:,} tokens to read.</div>'
        f'<div class="nbagent-seen">{"".join(parts)}'
        f'<div class="nbagent-newmessages">{messages_html(turn.new)}</div></div>'
    )


def messages_html(messages: Sequence[Message]) -> str:
    """Return messages, block by block, each with its role and what it is."""
    return "".join(_block(str(message.get("role")), block) for message in messages for block in _blocks(message))


def reply_html(reply: Reply) -> str:
    """Return a reply as the JSON that goes into the transcript."""
    return _pre(_json(reply.to_json()))


def problems_html(found: Sequence[str]) -> str:
    """Return what is wrong with a reply, and how to send it all the same; "" for nothing."""
    if not found:
        return ""
    rows = "".join(f"<li>{escape(visible_plain(one))}</li>" for one in found)
    said = "The runtime would answer with an error. Mend it, or untick “Check before sending” and see what it says."
    return f'<div class="nbagent-problems" role="alert"><ul>{rows}</ul>{said}</div>'


def field_html(name: str, type_name: str, more: str, description: str) -> str:
    """Return the label of a field: its name, its type, and what it is for."""
    about = f'<div class="nbagent-size">{escape(visible_plain(description))}</div>' if description else ""
    return (
        f'<div><b class="nbagent-fieldname">{escape(visible_plain(name))}</b> '
        f'<span class="nbagent-size">{escape(visible_plain(f"{type_name}, {more}" if more else type_name))}</span>{about}</div>'
    )


def _blocks(message: Message) -> list[Block]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _block(role: str, block: Block) -> str:
    match block.get("type"):
        case "text":
            what, body = "text", str(block.get("text"))
        case "tool_use":
            what, body = f"call {block.get('name')} ({block.get('id')})", _json(block.get("input"))
        case "tool_result":
            kind = "error result" if block.get("is_error") else "result"
            what, body = f"{kind} of {block.get('tool_use_id')}", plain_text(block.get("content") or "")
        case kind:
            what, body = str(kind), ""
    return (
        f'<div class="nbagent-seenblock"><div class="nbagent-size">{escape(visible_plain(role))}: '
        f"{escape(visible_plain(what))}</div>{_pre(body)}</div>"
    )


def _tool(tool: Json) -> str:
    schema = tool.get("input_schema") or {}
    names = ", ".join(schema.get("properties") or {}) or "no arguments"
    description = str(tool.get("description") or "")
    return _fold(str(tool.get("name")), names, _pre(description) + _pre(_json(schema)), open_in=True)


def _fold(name: str, more: str, body: str, *, open_in: bool = False) -> str:
    inner = ' class="nbagent-seentool"' if open_in else ""
    return (
        f"<details{inner}><summary><b>{escape(visible_plain(name))}</b> "
        f'<span class="nbagent-size">{escape(visible_plain(more))}</span></summary>{body}</details>'
    )


def _pre(text: str) -> str:
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n[… {count(len(text) - _LONGEST, 'character')} more]"
    return f"<pre>{escape(visible_plain(cut))}</pre>"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)
