"""The loop as an explicit state machine: one `step` is one transition, and whoever drives it decides when. The state is fields."""

from __future__ import annotations

from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Any

from nbagent.teach.carriers.job import (
    Event,
    Job,
    Messages,
    OnEvent,
    Stopped,
    beginning,
    calls,
    never,
    results,
    said,
)


class State(StrEnum):
    """What the machine does at its next step."""

    IDLE = "idle"
    CALLING_MODEL = "calling_model"
    EXECUTING_TOOLS = "executing_tools"
    CHECKING_STOP = "checking_stop"
    DONE = "done"


class AgentMachine:
    """A machine: `state`, and a `step` that does what the state says and moves on. `close` gives back what it holds."""

    def __init__(self, job: Job, messages: Messages, stopped: Stopped = never) -> None:
        self.state = State.IDLE
        self._job, self._messages, self._stopped = job, messages, stopped
        self._reply: dict[str, Any] = {}
        self._held = AsyncExitStack()

    async def step(self) -> list[Event]:
        """Make one transition; return what happened in it."""
        match self.state:
            case State.IDLE:
                await self._held.enter_async_context(self._job.connection())
                self.state = State.CHECKING_STOP
                return []
            case State.CHECKING_STOP:
                if self._stopped():
                    return await self._end("aborted")
                self.state = State.CALLING_MODEL
                return [("think", self._job.asked + 1)]
            case State.CALLING_MODEL:
                self._reply = await self._job.model(self._messages)
                self._job.keep(self._messages, said(self._reply))
                self.state = State.EXECUTING_TOOLS
                return [("reply", self._reply)]
            case State.EXECUTING_TOOLS:
                if not calls(self._reply):
                    return await self._end("end_turn")
                blocks = [await self._job.tool(block) for block in calls(self._reply)]
                self._job.keep(self._messages, results(blocks))
                self.state = State.CHECKING_STOP
                return [("result", block) for block in blocks]
            case State.DONE:
                return []

    async def close(self) -> None:
        """Give back what the machine holds. Whoever drives it must not forget this."""
        self.state = State.DONE
        await self._held.aclose()

    async def _end(self, reason: str) -> list[Event]:
        await self.close()
        return [("done", reason)]


async def consume(job: Job, on_event: OnEvent, stopped: Stopped = never, messages: Messages | None = None) -> None:
    """Use it as its users do: step it, handle what happened, step again; and give back what it holds, whatever happens."""
    machine = AgentMachine(job, beginning() if messages is None else messages, stopped)
    try:
        while machine.state is not State.DONE:
            for event in await machine.step():
                if not await on_event(event):
                    return
    finally:
        await machine.close()
