"""`%agent context`: what fills the model's window now, counted by its server where that can be asked, else estimated.

Read `context`; the picture is drawn in view/filling.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbagent.app.compacting import window_of
from nbagent.app.model import model_of
from nbagent.config import Settings
from nbagent.core import sizes
from nbagent.core.errors import NbagentError
from nbagent.core.messages import Block, Json, Message
from nbagent.core.ports import Model, Request
from nbagent.core.session import Session
from nbagent.view.filling import Part, picture

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

NOTHING = "There is no conversation yet; the first %%agent cell begins one."

SYSTEM, TOOLS, MCP, SUMMARY = "System prompt", "Tools", "Tools of MCP servers", "Summary of what was before"
CONTEXT, PERSON, MODEL = "Notebook and instructions", "Your words", "The model's words"
CALLS, RESULTS, IMAGES = "Calls", "Results", "Images"
_OF_MESSAGES = (SUMMARY, CONTEXT, PERSON, MODEL, CALLS, RESULTS, IMAGES)
_ONE: Message = {"role": "user", "content": [{"type": "text", "text": "."}]}


@dataclass(frozen=True, slots=True)
class Counted:
    """What a server counted: the system prompt, our tools, those of MCP servers, all messages."""

    system: int
    tools: int
    mcp: int
    messages: int


async def context(extension: Extension, _: str) -> str:
    """Carry out `%agent context`: show what fills the window of the last conversation's model."""
    conversation = extension.last
    if conversation is None:
        return NOTHING
    settings = extension.settings()
    model = model_of(settings)
    try:
        counted = await _counted(model, conversation.session)
    finally:
        if (close := getattr(model, "aclose", None)) is not None:
            await close()
    bundle = picture(
        parts_of(conversation.session, counted),
        window_of(settings, model),
        note=_note(settings, model, counted),
        model=model.name,
    )
    extension.shell.display_pub.publish(data=bundle, metadata={})
    return ""


def parts_of(session: Session, counted: Counted | None) -> list[Part]:
    """Return what fills the window. What the server counted is scaled to; within the messages it is always estimated."""
    mine, foreign = _split(session.tools)
    found = estimated(session.messages())
    whole = sum(found.values())
    total = counted.messages if counted is not None else whole
    scale = total / whole if whole else 0.0
    heads = (
        [
            Part(SYSTEM, counted.system, counted=True),
            Part(TOOLS, counted.tools, counted=True),
            Part(MCP, counted.mcp, counted=True),
        ]
        if counted is not None
        else [
            Part(SYSTEM, sizes.of_text(session.system)),
            Part(TOOLS, sizes.of_tools(mine)),
            Part(MCP, sizes.of_tools(foreign)),
        ]
    )
    return [*heads, *(Part(name, round(found[name] * scale)) for name in _OF_MESSAGES)]


def estimated(messages: Iterable[Message]) -> Counter[str]:
    """Return about how many tokens each kind of thing in `messages` takes."""
    found: Counter[str] = Counter()
    for message in messages:
        for block in message["content"]:
            _add(found, message["role"] == "assistant", block)
    return found


def _add(found: Counter[str], of_model: bool, block: Block) -> None:
    inner: Any = block.get("content")
    match block.get("type"):
        case "tool_result" if isinstance(inner, list):
            images = [one for one in inner if one.get("type") == "image"]
            found[IMAGES] += sizes.of_blocks(images)
            found[RESULTS] += sizes.of_block(block) - sizes.of_blocks(images)
        case "image":
            found[IMAGES] += sizes.of_block(block)
        case "compaction":
            found[SUMMARY] += sizes.of_block(block)
        case "text" if not of_model:
            text = str(block["text"])
            name = (
                SUMMARY
                if "<summary>" in text[:400]
                else CONTEXT
                if text.startswith(("<context>", "(From "))
                else PERSON
            )
            found[name] += sizes.of_block(block)
        case "text" | "thinking" | "redacted_thinking":
            found[MODEL] += sizes.of_block(block)
        case kind if str(kind).endswith("_tool_result") or kind == "tool_result":
            found[RESULTS] += sizes.of_block(block)
        case _:
            found[CALLS] += sizes.of_block(block)


def _split(tools: Sequence[Json]) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    foreign = tuple(tool for tool in tools if str(tool.get("name")).startswith("mcp__"))
    return tuple(tool for tool in tools if tool not in foreign), foreign


async def _counted(model: Model, session: Session) -> Counted | None:
    """Ask the server, None where it can't be asked: each part is what a request has more with it than without."""
    count = getattr(model, "count", None)
    if count is None:
        return None
    mine, _ = _split(session.tools)
    messages = list(session.messages()) or [_ONE]
    asked = [
        Request("", (), [_ONE]),
        Request(session.system, (), [_ONE]),
        Request(session.system, mine, [_ONE]),
        Request(session.system, session.tools, [_ONE]),
        Request(session.system, session.tools, messages),
    ]
    try:
        none, system, tools, every, whole = await asyncio.gather(*(count(request) for request in asked))
    except NbagentError:
        return None
    return Counted(max(system - none, 0), max(tools - system, 0), max(every - tools, 0), max(whole - every + none, 0))


def _note(settings: Settings, model: Model, counted: Counted | None) -> str:
    who = "System prompt, tools and the sum are counted by the server" if counted is not None else "Nothing is counted"
    said = f"{who}; ≈ is estimated from characters."
    window = window_of(settings, model)
    if window is None:
        return f"{said} The conversation is summed up when the server says that it is full (context_window says how large)."
    return f"{said} At {min(settings.compact_at, 1.0):.0%} the conversation is summed up; %agent compact does it now."
