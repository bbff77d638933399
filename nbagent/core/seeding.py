"""The messages of one session as the beginning of another that can't replay them as they are.

Thinking is bound to the exact prefix and to who thought it, and what a server tool brought is sealed for the server that
brought it. Both are left out of the seed; what was searched and read stays there in words. Pure. Read `seed`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from nbagent.core.messages import Block, Message, text_block

_THINKING = frozenset({"thinking", "redacted_thinking"})
_SHOWN = 10


def seed(messages: Iterable[Message], keep: Collection[str] = ()) -> list[Message]:
    """Return `messages` without thinking, and with words in the place of what server tools brought, and of summaries.

    `keep` names the server tools that the new session has at the same server: their blocks stay as they are.
    """
    return [_seeded(message, keep) for message in in_words(list(messages))]


def begins_with_summary(messages: Sequence[Message]) -> bool:
    """Whether the API's own summary stands at the beginning."""
    return bool(messages) and any(block.get("type") == "compaction" for block in _blocks(messages[0]))


def in_words(messages: Sequence[Message]) -> Sequence[Message]:
    """Return `messages` with the API's own summary at their beginning as words: no other server takes its block."""
    if not begins_with_summary(messages):
        return messages
    said = [f"The conversation so far, summed up:\n{block.get('content') or ''}" for block in _blocks(messages[0])]
    return [{"role": "user", "content": [text_block("\n".join(said))]}, *messages[1:]]


def thinks(messages: Iterable[Message]) -> bool:
    """Whether any thinking stands in `messages`."""
    return any(block.get("type") in _THINKING for message in messages for block in _blocks(message))


def _blocks(message: Message) -> Sequence[Block]:
    content: Any = message.get("content")
    return content if isinstance(content, list) else ()


def _seeded(message: Message, keep: Collection[str]) -> Message:
    if not isinstance(message.get("content"), list):
        return message
    kept: list[Block] = []
    names = {str(b.get("id")): str(b.get("name")) for b in message["content"] if b.get("type") == "server_tool_use"}
    for block in message["content"]:
        kind = str(block.get("type"))
        if kind in _THINKING:
            continue
        name = names.get(str(block.get("tool_use_id") or block.get("id") or ""), "")
        if kind == "server_tool_use" and name not in keep:
            kept.append(text_block(f"({name}: {_asked(block)})"))
        elif kind.endswith("_tool_result") and name not in keep:
            kept += [text_block(f"({name} found: {found})")] if (found := found_of(block)) else []
        elif block.get("citations") and not (names and set(names.values()) <= set(keep)):
            kept.append({key: value for key, value in block.items() if key != "citations"})
        else:
            kept.append(block)
    return {**message, "content": kept or [text_block("(thinking only)")]}


def _asked(block: Block) -> str:
    given: Any = block.get("input")
    return str(given.get("query") or given.get("url") or "") if isinstance(given, dict) else ""


def found_of(block: Block) -> str:
    """Return titles and addresses of what a server tool's result block brought, "" where it brought nothing."""
    content: Any = block.get("content")
    found = content if isinstance(content, list) else [content]
    named = [
        f"{one.get('title') or ''} {one['url']}".strip() for one in found if isinstance(one, dict) and one.get("url")
    ]
    return "; ".join(named[:_SHOWN])
