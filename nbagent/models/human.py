"""A model that is a person: they see what a model sees and write the reply that a model would write.

The person is asked through `Ask`, so this knows of no page and no terminal. What they write is streamed as any other reply;
whether its calls are good is for the runtime to say. Read `HumanModel.stream`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core import sizes
from nbagent.core.errors import Rejected
from nbagent.core.messages import Block, Json, Message, Usage, reply_events, text_block
from nbagent.core.ports import Request
from nbagent.models.catalog import Facts, Price

NAME = "human"

NOBODY = (
    "-m human means that you are the model, and nobody can be asked here. Run this cell in JupyterLab, Notebook 7 or a "
    "terminal, or say who answers where nobody is there: --fallback MODEL."
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model is asked with: the same that a server would get.

    `number` counts the replies of the conversation, from 1; `new` are the messages since the last one.
    """

    number: int
    system: str
    tools: tuple[Json, ...]
    earlier: tuple[Message, ...]
    new: tuple[Message, ...]

    @classmethod
    def of(cls, request: Request) -> Turn:
        """Return the turn that `request` asks for."""
        messages = list(request.messages)
        replies = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
        seen = replies[-1] + 1 if replies else 0
        return cls(len(replies) + 1, request.system, request.tools, tuple(messages[:seen]), tuple(messages[seen:]))

    @property
    def tokens(self) -> int:
        """About how many tokens this is: what a server would count, and charge for."""
        messages = sum(sizes.of_message(message) for message in (*self.earlier, *self.new))
        return sizes.of_text(self.system) + sizes.of_tools(self.tools) + messages


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person answers: blocks of text and calls. `stop_reason` None is what the content suggests."""

    content: tuple[Block, ...]
    stop_reason: str | None = None

    @classmethod
    def of(cls, text: str, calls: Sequence[Block] = ()) -> Reply:
        """Return the reply with these words, where there are any, and these calls."""
        return cls((*([text_block(text)] if text.strip() else []), *calls))

    def to_json(self) -> Json:
        """Return what a server would send for this reply."""
        called = any(block.get("type") == "tool_use" for block in self.content)
        reason = self.stop_reason or ("tool_use" if called else "end_turn")
        return {"role": "assistant", "stop_reason": reason, "content": list(self.content)}


Ask = Callable[[Turn], Awaitable[Reply]]
"""Asks the person for one reply and waits, without a limit; cancelled where the run is stopped meanwhile."""


class HumanModel:
    """Asks a person through `ask`; None: nobody is there, and each request is refused with a sentence."""

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask

    @property
    def name(self) -> str:
        """The name that is shown."""
        return NAME

    @property
    def facts(self) -> Facts:
        """A person costs the learner nothing, and has no window that a program could know."""
        return Facts(Price(0, 0))

    def asking(self, ask: Ask) -> HumanModel:
        """Return the model that asks through `ask`."""
        return HumanModel(ask)

    def cost(self, usage: Usage) -> float | None:  # noqa: ARG002 - the port's signature
        """Return 0: it is free."""
        return 0.0

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the events of the reply that the person writes; raises `Rejected` where nobody is there."""
        if self._ask is None:
            raise Rejected(NOBODY)
        reply = await self._ask(Turn.of(request))
        message_id = f"msg_human_{uuid.uuid4().hex[:12]}"
        for event in reply_events(list(reply.content), reply.stop_reason, message_id=message_id, model=NAME):
            yield event


def call_block(tool: str, given: Any) -> Block:
    """Return a call of `tool` with a new id. `given` should be an object with its arguments; the runtime answers what is not."""
    return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:16]}", "name": tool, "input": given}


def blocks_of(text: str) -> tuple[Block, ...]:
    """Return the content blocks that are written in `text` as JSON: a list, or one block. A call without an id gets one.

    Raises `ValueError` with a sentence for what no server could send. What a server could send and the runtime refuses is
    let through: an unknown tool, wrong arguments.
    """
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(f"This is not JSON: {error}.") from None
    blocks = [value] if isinstance(value, dict) else value
    if not isinstance(blocks, list):
        raise ValueError('Write a list of blocks, such as [{"type": "text", "text": "…"}].')  # noqa: TRY004 - a bad value
    return tuple(_block(place, block) for place, block in enumerate(blocks, 1))


def _block(place: int, block: Any) -> Block:
    match block:
        case {"type": "text", "text": str(text)}:
            return text_block(text)
        case {"type": "tool_use", "name": str(name), "input": given}:
            return {**call_block(name, given), **({"id": block["id"]} if isinstance(block.get("id"), str) else {})}
        case {"type": "text" | "tool_use"}:
            raise ValueError(f'Block {place}: a text has "text", a call has "name" and "input".')
        case _:
            raise ValueError(f'Block {place} needs "type": "text" or "tool_use".')
