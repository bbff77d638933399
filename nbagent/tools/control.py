"""Tools about the run itself: ask the person, and read a long result again.

They must not know who answers or how results are kept. Read `tools`.
"""

from __future__ import annotations

from nbagent.core.errors import ToolError
from nbagent.core.messages import clean, text_block
from nbagent.core.ports import Question
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools.results import ResultStore

_NOBODY = "Nobody can answer now. Decide yourself, go on, and state in your answer which assumption you made and why."
_PAGE = 10_000


def tools(store: ResultStore) -> list[Tool]:
    """Return ask_user and read_result."""
    return [_ask_user(), _read_result(store)]


def _ask_user() -> Tool:
    @tool(title=lambda given: given["question"].strip()[:120])
    async def ask_user(call: Call, question: str, choices: tuple[str, ...] = ()) -> Result:
        """Ask the person one question and wait for the answer. Only when you can't find it out yourself.

        Permission is asked for by itself when you call a tool: never ask for it with this.

        Args:
            question: one short, clear question.
            choices: possible answers to choose from; the person may also write another.
        """
        text = clean(question).strip()
        if not text:
            raise ToolError("the question is empty")
        offered = tuple(dict.fromkeys(c for c in (clean(choice).strip() for choice in choices) if c))
        answer = clean(await call.ask(Question(call.id, text, offered))).strip()
        if not answer:
            return Result((text_block(_NOBODY),), "no answer")
        return Result((text_block(f"The person answered: {answer}"),), answer.splitlines()[0][:120])

    return ask_user


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
