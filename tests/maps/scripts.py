"""A model for maps, by a server's function: the answer is computed from the input, so the table can be checked."""

from __future__ import annotations

from typing import Any

from tests.support.messages_server import Scripted, call, say

PROMPT = "Sum the digits of {item}."
"""Takes two requests an input: it looks at the variables first."""


def told(body: dict[str, Any]) -> str:
    """Return the prompt of a run from its request."""
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def digits(text: str) -> int:
    """Return the sum of the digits in a text."""
    return sum(int(one) for one in text if one.isdigit())


def adding(body: dict[str, Any]) -> Scripted:
    """Look at the kernel first, then answer with the sum of the digits: by the tool `answer` where there is one."""
    if len(body["messages"]) < 3:
        return [call("list_variables")]
    found = digits(told(body))
    if any(tool.get("name") == "answer" for tool in body["tools"]):
        return [call("answer", total=found)]
    return say(f"The sum is {found}.")
