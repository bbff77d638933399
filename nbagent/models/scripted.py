"""A model whose replies a person wrote down: for demos, lessons and tests; no network, no key.

A script is a list of turns. Each is a value, or a function of the transcript that returns one, so that a script can
answer with what the tools really returned. Ships as product. Knows nothing of notebooks. Read `ScriptedModel` first.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ModelError, Rejected
from nbagent.core.messages import Block, Json, Message, Usage, plain_text, reply_events, text_block

if TYPE_CHECKING:
    from nbagent.core.ports import Request


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply in full. `stop_reason` None is what the content suggests; `cut` ends the stream after so many events."""

    content: str | Block | Sequence[Block]
    stop_reason: str | None = None
    usage: Usage | None = None
    cut: int | None = None


REFUSED = ("Denied", "Not allowed", "It did not run")
"""How a result begins whose call was refused: by the person, by a rule, or because nobody was there to be asked."""

Value = str | Block | Sequence[Block] | Turn | ModelError
"""What a turn may be: text, a block, blocks, a `Turn`, or an error that the model raises."""

Scripted = Value | Callable[[Sequence[Message]], Value]


def say(text: str) -> Block:
    """Return a text block."""
    return text_block(text)


def think(text: str) -> Block:
    """Return a thinking block, unsigned as only a scripted model's are."""
    return {"type": "thinking", "thinking": text, "signature": ""}


def call(tool: str, /, **arguments: Any) -> Block:
    """Return a call of `tool` with a new id."""
    return {"type": "tool_use", "id": _new_id(), "name": tool, "input": arguments}


class ScriptedModel:
    """Answers request k with turn k of its script; it is an error to ask for more.

    Args:
        turns: The script.
        name: The name that is shown.
        pace: Seconds to wait before each piece of text, for demos; 0 only lets the event loop breathe.
    """

    def __init__(self, turns: Sequence[Scripted], name: str = "scripted", *, pace: float = 0.0) -> None:
        self._turns = list(turns)
        self._name = name
        self._pace = pace
        self._ids: set[str] = set()
        self.played = 0
        """How many turns were asked for so far."""
        self.last_request: Request | None = None
        """The newest request; its `messages` are the live transcript."""

    @property
    def name(self) -> str:
        """The name that is shown."""
        return self._name

    def cost(self, usage: Usage) -> float | None:  # noqa: ARG002 - the port's signature
        """Return None: a script has no price."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the events of the next turn; raises Rejected when the script is over, or the error that is the turn."""
        self.last_request = request
        if self.played >= len(self._turns):
            raise Rejected(
                f"The script of {self._name!r} has {len(self._turns)} turns, and one more was asked for. "
                "It goes with its own prompt only: run that cell, or ask a real model."
            )
        scripted = self._turns[self.played]
        self.played += 1
        value = scripted(request.messages) if callable(scripted) else scripted
        if isinstance(value, ModelError):
            raise value
        turn = value if isinstance(value, Turn) else Turn(value)
        events = reply_events(
            self._blocks(turn.content),
            turn.stop_reason,
            usage=_raw_usage(turn.usage),
            message_id=f"msg_scripted_{self.played}",
            model=self._name,
        )
        for event in events[: turn.cut]:
            await asyncio.sleep(self._pace if event["type"] == "content_block_delta" else 0)
            yield event

    def assert_complete(self) -> None:
        """Raise AssertionError unless every turn of the script was asked for."""
        if self.played != len(self._turns):
            raise AssertionError(
                f"the script of {self._name!r} has {len(self._turns)} turns, {self.played} were played"
            )

    def _blocks(self, content: str | Block | Sequence[Block]) -> list[Block]:
        if isinstance(content, str):
            return [say(content)]
        blocks = [content] if isinstance(content, dict) else list(content)
        return [self._with_own_id(block) if block.get("type") == "tool_use" else block for block in blocks]

    def _with_own_id(self, block: Block) -> Block:
        """Give a call that is in the script twice a new id: the API takes no id a second time."""
        if block.get("id") in self._ids:
            block = {**block, "id": _new_id()}
        self._ids.add(block["id"])
        return block


def last_results(transcript: Sequence[Message]) -> list[str]:
    """Return the texts of the results in the newest message that has any, in call order."""
    for message in reversed(transcript):
        texts = [result_text(block) for block in _blocks(message, "tool_result")]
        if texts:
            return texts
    return []


def result_text(result: Block) -> str:
    """Return the text of a tool_result block; an image in it reads as [image]."""
    return plain_text(result.get("content") or "")


def result_of(transcript: Sequence[Message], tool: str, /, *, last: int = 1) -> str:
    """Return the text of the newest result of `tool` (`last=2`: the one before); raises LookupError if there is none."""
    ids = [block["id"] for message in transcript for block in _blocks(message, "tool_use") if block["name"] == tool]
    texts = {b["tool_use_id"]: result_text(b) for message in transcript for b in _blocks(message, "tool_result")}
    found = [texts[call_id] for call_id in ids if call_id in texts]
    if len(found) < last:
        raise LookupError(f"the transcript has {len(found)} results of {tool!r}, the script asks for number {last}")
    return found[-last]


def prompt_text(transcript: Sequence[Message]) -> str:
    """Return the text of the newest message of the person (one without results), or "" if there is none."""
    for message in reversed(transcript):
        if message.get("role") == "user" and not any(_blocks(message, "tool_result")):
            return plain_text(message["content"])
    return ""


def _blocks(message: Message, kind: str) -> Iterator[Block]:
    content = message.get("content")
    return (block for block in content if block.get("type") == kind) if isinstance(content, list) else iter(())


def _new_id() -> str:
    return f"toolu_{uuid.uuid4().hex[:16]}"


def _raw_usage(usage: Usage | None) -> Json | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    }
