"""Tools about the run itself: ask the person, show what is to be done, and read a long result again.

They must not know who answers or how results are kept. Read `tools`.
"""

from __future__ import annotations

from nbagent.core.messages import text_block
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools import todo
from nbagent.tools.asking import ask_user
from nbagent.tools.results import ResultStore

_PAGE = 10_000


def tools(store: ResultStore) -> list[Tool]:
    """Return ask_user, todo_write and read_result."""
    return [ask_user(), *todo.tools(), _read_result(store)]


def _read_result(store: ResultStore) -> Tool:
    @tool(title=lambda given: f"read {given['ref']} from {given['offset']}")
    async def read_result(_call: Call, ref: str, offset: int = 0, limit: int = _PAGE) -> Result:
        """Read a part of a long result that was cut. The cut result names its ref.

        Args:
            ref: the name of the kept result, e.g. "r1".
            offset: the character to begin at, from 0.
            limit: how many characters to read, at most 10000.
        """
        text = store.read(ref, max(offset, 0), min(max(limit, 1), _PAGE))
        return Result((text_block(text),), f"{len(text)} characters of {ref}")

    return read_result
