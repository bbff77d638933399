"""How many tokens things take, estimated from their characters: for when no server has counted them.

Pure. Read `of_message`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from nbagent.core.messages import Block, Json, Message

IMAGE = 1_600
"""Tokens of one image, about: a server counts its pixels, and most figures are near this."""

_PER_TOKEN = 3.6
_PER_TOKEN_BEYOND_ASCII = 1.4
_OTHERS = re.compile(r"[^\x00-\x7f]+")


def of_text(text: str) -> int:
    """Return about how many tokens `text` is."""
    others = 0 if text.isascii() else sum(len(found) for found in _OTHERS.findall(text))
    return round((len(text) - others) / _PER_TOKEN + others / _PER_TOKEN_BEYOND_ASCII)


def of_block(block: Block) -> int:
    """Return about how many tokens a block of a message is; what is not known counts as its JSON."""
    match block.get("type"):
        case "text":
            return of_text(str(block.get("text") or "")) + 4
        case "image":
            return IMAGE
        case "thinking":
            return of_text(str(block.get("thinking") or ""))
        case "tool_result":
            content = block.get("content") or ()
            return 12 + (of_text(content) if isinstance(content, str) else of_blocks(content))
        case "compaction":
            return of_text(str(block.get("content") or ""))
        case _:
            return of_text(json.dumps(block, ensure_ascii=False, default=str))


def of_blocks(blocks: Iterable[Block]) -> int:
    """Return about how many tokens `blocks` are together."""
    return sum(of_block(block) for block in blocks)


def of_message(message: Message) -> int:
    """Return about how many tokens a message is."""
    content = message["content"]
    return 4 + (of_text(content) if isinstance(content, str) else of_blocks(content))


def of_tools(tools: Sequence[Json]) -> int:
    """Return about how many tokens the descriptions of `tools` are."""
    return sum(of_text(json.dumps(tool, ensure_ascii=False)) for tool in tools)
