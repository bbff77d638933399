"""What all five carriers do: the same model, tool, transcript and connection, so that only the carrying differs.

Must not know how a loop is carried. Read `Job`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Event = tuple[str, Any]
"""What happened, and more about it: think, reply, result, done."""

OnEvent = Callable[[Event], Awaitable[bool]]
"""A consumer: it is given each event, may take its time, and says whether it wants to go on."""

Stopped = Callable[[], bool]
"""Whether somebody has asked the loop to end (the seed's `abortSignal.aborted`)."""

Messages = list[dict[str, Any]]


def never() -> bool:
    """Say that nobody has asked the loop to end."""
    return False


def nothing() -> None:
    """Measure nothing."""


@dataclass(slots=True)
class Job:
    """A task of `steps` turns with one call each, and then an answer. Counts what is done, whoever carries it.

    `window` messages are kept at most (None: all), so that a carrier's own memory can be told from the transcript's. `probe`
    is called inside each tool call, at the deepest place of a turn.
    """

    steps: int = 3
    window: int | None = None
    probe: Callable[[], None] = nothing
    asked: int = 0
    opened: int = 0
    closed: int = 0
    called: list[int] = field(default_factory=list[int])

    async def model(self, messages: Messages) -> dict[str, Any]:  # noqa: ARG002 - it is asked with them, and counts instead
        """Return the next reply: a call of `step` as long as there are steps, then the answer."""
        await asyncio.sleep(0)  # as a request does, it lets others run
        self.asked += 1
        if self.asked > self.steps:
            return {"stop_reason": "end_turn", "content": [{"type": "text", "text": f"{self.steps} steps done."}]}
        block = {"type": "tool_use", "id": f"toolu_{self.asked}", "name": "step", "input": {"number": self.asked}}
        return {"stop_reason": "tool_use", "content": [block]}

    async def tool(self, block: dict[str, Any]) -> dict[str, Any]:
        """Run one call and return its result block."""
        await asyncio.sleep(0)
        self.probe()
        if self.window is None:
            self.called.append(block["input"]["number"])
        return {
            "type": "tool_result",
            "tool_use_id": block["id"],
            "content": f"step {block['input']['number']} is done",
        }

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[None]:
        """Hold something that must be given back: it counts in `closed` when it was."""
        self.opened += 1
        try:
            yield
        finally:
            self.closed += 1

    def keep(self, messages: Messages, message: dict[str, Any]) -> None:
        """Append a message, and forget the oldest ones beyond the window."""
        messages.append(message)
        if self.window is not None:
            del messages[: -self.window]


@dataclass(slots=True)
class HangingJob(Job):
    """A job whose third call never comes back; `hung` is set when it has begun."""

    hung: asyncio.Event = field(default_factory=asyncio.Event)

    async def tool(self, block: dict[str, Any]) -> dict[str, Any]:
        """Run a call; the third one waits for ever."""
        if len(self.called) == 2:
            self.hung.set()
            await asyncio.Event().wait()
        return await Job.tool(self, block)


def beginning(prompt: str = "Do all steps.") -> Messages:
    """Return a transcript that begins with the prompt."""
    return [{"role": "user", "content": prompt}]


def said(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply as a message."""
    return {"role": "assistant", "content": reply["content"]}


def results(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the results of one reply as a message."""
    return {"role": "user", "content": blocks}


def calls(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a reply."""
    return [block for block in reply["content"] if block["type"] == "tool_use"]
