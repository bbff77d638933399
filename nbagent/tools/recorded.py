"""Tools that give what was recorded and run nothing: for a replay without the data, the packages or the risk.

Must not know of recordings, only of results by the ids of their calls. Read `answered`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.tools import Call, Kind, Result, Tool

MARK = " (recorded: it did not run)"


def answered(tools: Iterable[Tool], results: Mapping[str, Block]) -> list[Tool]:
    """Return `tools`, each call of which gives its result in `results`; they only look, so nobody is asked about one."""
    return [_answered(tool, results) for tool in tools]


def _answered(tool: Tool, results: Mapping[str, Block]) -> Tool:
    async def recorded(call: Call, **_: Any) -> Result:
        block = results.get(call.id)
        if block is None:
            raise ToolError("the recording ends before the result of this call, and nothing runs in this replay")
        content: Any = block.get("content") or ""
        blocks = [text_block(content)] if isinstance(content, str) else content
        return Result(tuple(blocks), is_error=bool(block.get("is_error")))

    def title(given: Json) -> str:
        return tool.title(given) + MARK

    return replace(tool, function=recorded, kind=lambda _: Kind.READ, title=title, target=None, amend=None)
