"""How many images one request may carry, and the view of a transcript in which the older ones are left out.

The transcript keeps every image for good; only what is sent changes. Thinking is bound to the exact prefix, so replies
from before the cut are sent without it. Knows nothing of servers. Read `without_images`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nbagent.core.messages import Block, Message, text_block

ROOM = 20_000_000
"""Characters of base64 of all images of one request; the API takes 32 MB in all."""

COUNT = 90
"""Images of one request; the API takes 100."""

LEFT_OUT = "[An image was here. It is not sent: there is no room, or this server takes no images. The person sees it.]"
_THINKING = frozenset({"thinking", "redacted_thinking"})


def images(messages: Iterable[Message]) -> Iterator[Block]:
    """Yield the image blocks of `messages`, those in results included."""
    for message in messages:
        for block in message["content"]:
            inner = block.get("content") if block.get("type") == "tool_result" else [block]
            yield from (b for b in inner or () if b.get("type") == "image")


def too_many(messages: Iterable[Message]) -> bool:
    """Whether the images of `messages` are more than one request may carry."""
    sizes = [len(str(block["source"].get("data") or "")) for block in images(messages)]
    return len(sizes) > COUNT or sum(sizes) > ROOM


def without_images(messages: Sequence[Message], before: int) -> list[Message]:
    """Return `messages` as a view in which those before index `before` have a line of text for each image."""
    return [*(_without(message) for message in messages[:before]), *messages[before:]]


def _without(message: Message) -> Message:
    if message["role"] == "assistant":
        kept = [block for block in message["content"] if block.get("type") not in _THINKING]
        return {**message, "content": kept or [text_block("(thinking only)")]}
    if not any(images([message])):
        return message
    return {**message, "content": [_replaced(block) for block in message["content"]]}


def _replaced(block: Block) -> Block:
    if block.get("type") == "image":
        return text_block(LEFT_OUT)
    if block.get("type") == "tool_result":
        return {**block, "content": [_replaced(inner) for inner in block["content"]]}
    return block
