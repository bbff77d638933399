"""Turns what an MCP server gave (results, resources, prompts) into blocks that a transcript may hold.

Texts become one clean block, images go through `picture` (which scales and checks them), all else is named in a line.
Bounded: a server may send anything. The helper of Anthropic's SDK (lib.tools.mcp) is not used: one part that it does not
know (audio, a link) makes it refuse the whole result, and of texts in resources it makes documents, which other servers of
the Messages API do not take. Must not know of clients. Read `result_of`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nbagent.core.messages import Block, clean, text_block
from nbagent.core.tools import Result

if TYPE_CHECKING:
    from mcp import types

Picture = Callable[[bytes, str], Block]
"""Makes a block of an image: its bytes and media type; a text block that says why where it can't be shown."""

TEXT_LIMIT = 10_000_000
"""Characters of text of one result."""
IMAGES = 20
"""Images of one result."""
_ENCODED_LIMIT = 60_000_000  # characters of base64 of one image


def result_of(given: types.CallToolResult, picture: Picture) -> Result:
    """Return a tool's result: its content, and the structured one where the content does not say the same."""
    texts = [item.text for item in given.content if item.type == "text"]
    blocks = list(_converted(given.content, picture))
    structured = given.structured_content
    if structured is not None and not any(_says(text, structured) for text in texts):
        head = "Structured result:\n" if blocks else ""
        blocks.append(text_block(head + json.dumps(structured, ensure_ascii=False, default=str)))
    return Result(tuple(joined(blocks)) or (text_block("(no output)"),), is_error=bool(given.is_error))


def resource_of(given: types.ReadResourceResult, picture: Picture) -> Result:
    """Return what a resource holds."""
    blocks = [_resource(item, picture) for item in given.contents]
    return Result(tuple(joined(blocks)) or (text_block("(empty)"),))


def prompt_of(given: types.GetPromptResult, picture: Picture) -> list[Block]:
    """Return a prompt as blocks of one message; what the assistant is made to say in it is marked as such."""
    blocks: list[Block] = []
    for message in given.messages:
        for block in _converted([message.content], picture):
            said = message.role == "assistant" and block.get("type") == "text"
            blocks.append(text_block(f"[assistant] {block['text']}") if said else block)
    return joined(blocks)


def joined(blocks: Iterable[Block]) -> list[Block]:
    """Join texts that stand side by side, and cut what is too much: one long text can be read on, a thousand can't."""
    kept: list[Block] = []
    room, images, left_out = TEXT_LIMIT, 0, 0
    pieces: list[str] = []

    def flush() -> None:
        if pieces:
            kept.append(text_block("\n".join(pieces)))
            pieces.clear()

    for block in blocks:
        if block.get("type") == "text":
            text = str(block["text"])
            pieces.append(text if len(text) <= room else f"{text[:room]}\n[cut here: {len(text) - room:,} characters]")
            room = max(0, room - len(text))
        elif images < IMAGES:
            flush()
            kept.append(block)
            images += 1
        else:
            left_out += 1
    if left_out:
        pieces.append(f"[{left_out} more images left out]")
    flush()
    return kept


def _converted(items: Iterable[types.ContentBlock], picture: Picture) -> Iterable[Block]:
    for item in items:
        match item.type:
            case "resource":
                yield _resource(item.resource, picture)
            case "image":
                yield _image(item.data, item.mime_type, picture)
            case "text":
                if item.text.strip():
                    yield text_block(clean(item.text))
            case _:
                yield text_block(_named(item))


def _named(item: types.ContentBlock) -> str:
    if item.type == "resource_link":
        about = ", ".join(filter(None, [item.title or item.name, item.mime_type, _size(item.size)]))
        return f"[a link to the resource {item.uri}: {about}; read_mcp_resource reads it]"
    kind = getattr(item, "mime_type", None) or item.type
    return f"[{item.type} of type {kind}, which can't be shown]"


def _size(size: int | None) -> str:
    return "" if size is None else f"{size:,} bytes"


def _image(data: str, kind: str, picture: Picture) -> Block:
    if len(data) > _ENCODED_LIMIT:
        return text_block(f"[an image of type {kind}, too large to be shown]")
    try:
        return picture(base64.b64decode(data, validate=True), kind)
    except ValueError:  # binascii.Error is one
        return text_block(f"[an image of type {kind} that is not valid base64]")


def _resource(item: types.TextResourceContents | types.BlobResourceContents, picture: Picture) -> Block:
    """Convert an embedded resource: text under its address, an image as an image, other data named."""
    kind = item.mime_type or ""
    text = getattr(item, "text", None)
    if isinstance(text, str):
        return text_block(f"[resource {item.uri}]\n{clean(text)}")
    data = str(getattr(item, "blob", ""))
    if kind.startswith("image/"):
        return _image(data, kind, picture)
    if kind.startswith("text/") or kind == "application/json":
        try:
            return text_block(f"[resource {item.uri}]\n{base64.b64decode(data, validate=True).decode()}")
        except ValueError:  # no base64, or no UTF-8
            pass
    return text_block(f"[resource {item.uri}: {len(data) * 3 // 4:,} bytes of type {kind or 'unknown'}]")


def _says(text: str, structured: Any) -> bool:
    """Whether a text is the JSON of the structured result, as servers should send it for older clients."""
    try:
        return bool(text.strip()) and json.loads(text) == structured
    except (ValueError, RecursionError):
        return False
