"""The to-do list of a long run: the model writes it whole each time, and the person sees one list that changes in place.

The list lives in the transcript and nowhere else (`of_messages`), so that it is the session's own: a resumed one has it, a
fork has the one of its point. It must not know how it is shown. Read `todo_write`, then `of_messages`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, Message, clean, text_block
from nbagent.core.tools import Call, Result, Tool, tool

NAME = "todo_write"
AT_MOST = 40
"""Items of a list; more is no help to anybody."""
LONGEST = 300
"""Characters of one item."""

Status = Literal["pending", "in_progress", "completed"]

MARKS: Mapping[str, str] = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
"""How a list is told to the model, and by `%agent todos`."""


_TOLD = re.compile(r"<todo-list>\n((?:\[[x> ]\] [^\n]+\n)+)</todo-list>")
"""A list as it was told in a message (`reminder`)."""


@dataclass(frozen=True, slots=True)
class Todo:
    """One item: what is to be done (`content`), and the same as it is said while it is done (`activeForm`)."""

    content: str
    status: Status
    activeForm: str = ""  # noqa: N815  (the name that Claude Code gave it)


def tools() -> list[Tool]:
    """Return todo_write."""
    return [_todo_write()]


def _todo_write() -> Tool:
    @tool(name=NAME, subject=lambda _: "", title=lambda given: f"to-do list: {done_words(given['todos'])}")
    async def todo_write(call: Call, todos: tuple[Todo, ...]) -> Result:
        """Write the to-do list that the person watches while you work. Each call replaces the whole list.

        For a task of three or more steps, or one that the person gave as a list. Not for what one or two calls do. Mark an
        item in_progress before you begin it, one at a time, and completed as soon as it is done and checked: not when it
        failed or is half done. Add what you find on the way, take out what is not needed any more.

        Args:
            todos: all items in order. content: what to do ("Join the orders"); activeForm: the same while it is done
                ("Joining the orders"); status: pending, in_progress (at most one) or completed.
        """
        items = checked(todos)
        call.todos_are(items)
        return Result((text_block(_told(items)),), done_words(items))

    return todo_write


def checked(todos: Sequence[Json | Todo]) -> list[Json]:
    """Return the items in a clean form; raises `ToolError` where the list is none that a person can follow."""
    items: list[Json] = []
    for todo in todos:
        item = asdict(todo) if isinstance(todo, Todo) else todo
        content = " ".join(clean(str(item["content"])).split())
        active = " ".join(clean(str(item.get("activeForm") or "")).split())
        items.append({"content": content, "status": item["status"], "activeForm": active or content})
    if len(items) > AT_MOST:
        raise ToolError(f"{len(items)} items are too many for one list: at most {AT_MOST}. Put steps together")
    for place, item in enumerate(items, 1):
        if not item["content"]:
            raise ToolError(f"item {place} is empty")
        if len(item["content"]) > LONGEST or len(item["activeForm"]) > LONGEST:
            raise ToolError(f"item {place} is too long: at most {LONGEST} characters")
    begun = [item["content"] for item in items if item["status"] == "in_progress"]
    if len(begun) > 1:
        raise ToolError(
            f"{len(begun)} items are in_progress ({'; '.join(begun)}): only one may be. The list is as it was before"
        )
    contents = [item["content"] for item in items]
    if twice := next((content for content in contents if contents.count(content) > 1), ""):
        raise ToolError(f"two items have the same content ({twice}): nobody could tell them apart")
    return items


def done_words(todos: Sequence[Json]) -> str:
    """Return how far a list is in a few words, e.g. "2 of 5 done"."""
    done = sum(item.get("status") == "completed" for item in todos)
    return f"{done} of {len(todos)} done" if todos else "empty"


def _told(items: Sequence[Json]) -> str:
    if not items:
        return "The list is empty now."
    now = next((item["activeForm"] for item in items if item["status"] == "in_progress"), "")
    if all(item["status"] == "completed" for item in items):
        return "All items are done. If one of them was not checked yet, check it before you say so."
    after = f"now: {now}" if now else "no item is in_progress: mark the one that you begin"
    return f"The person sees the list: {done_words(items)}; {after}. Go on, and change the list as things get done."


def of_messages(messages: Sequence[Message]) -> list[Json]:
    """Return the list as it stands at the end of a transcript, [] where none was written.

    Only a call that was carried out counts: one that was refused or broke off has changed nothing. Where a summary took the
    place of the calls, the list stands in what was told with it (`reminder`).
    """
    refused: set[str] = set()
    for message in reversed(messages):
        blocks = message.get("content")
        if not isinstance(blocks, list):
            continue
        if message["role"] == "user":
            told = "\n".join(str(b.get("text", "")) for b in blocks if b.get("type") == "text")
            if found := _TOLD.search(told):
                return [_item(line) for line in found[1].splitlines()]
            refused.update(
                str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result" and b.get("is_error")
            )
            continue
        for block in reversed(blocks):
            if block.get("type") != "tool_use" or block.get("name") != NAME or str(block.get("id")) in refused:
                continue
            try:
                return checked(block["input"]["todos"])
            except (ToolError, KeyError, TypeError, AttributeError):  # no list of ours
                continue
    return []


def _item(line: str) -> Json:
    status = next(status for status, mark in MARKS.items() if line.startswith(mark))
    content = line[len(MARKS[status]) + 1 :]
    return {"content": content, "status": status, "activeForm": content}


def is_open(todos: Sequence[Json]) -> bool:
    """Whether anything of a list is left to do."""
    return any(item["status"] != "completed" for item in todos)


def lines(todos: Sequence[Json]) -> list[str]:
    """Return a list as plain lines."""
    return [f"{MARKS[item['status']]} {item['content']}" for item in todos]


def reminder(todos: Sequence[Json]) -> str:
    """Return what the model is told of an open list where it may not remember it: a new run, a resumed session, a summary."""
    if not is_open(todos):
        return ""
    return "\n".join([
        f"Your to-do list ({done_words(todos)}; [x] completed, [>] in progress, [ ] pending):",
        "<todo-list>", *lines(todos), "</todo-list>",
        f"If what the person asks for now is something else, replace the list with `{NAME}` or leave it; don't mention it.",
    ])  # fmt: skip
