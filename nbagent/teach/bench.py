"""A bench for lessons: the product's own loop with a script for a model, on the learner's desk instead of in a cell's panel.

Nothing here is a second loop: `bench(...)` puts together what `nbagent.core.loop.run` needs, and hands out its events. Must not
know of widgets or of the kernel. Read `Bench.events`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from nbagent.core.events import Event
from nbagent.core.limits import Limits
from nbagent.core.loop import run
from nbagent.core.messages import Message, text_block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Answered, Approval, Approver, Model, Question
from nbagent.core.run import Agent, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Tool, Toolset
from nbagent.models.scripted import Scripted, ScriptedModel


class Nobody:
    """An approver where no person is: every approval is denied and every question left open."""

    present = False

    async def ask(self, approval: Approval) -> Answered:  # noqa: ARG002 - the port's signature
        """Deny."""
        return Answered(False)

    async def question(self, question: Question) -> str:  # noqa: ARG002 - the port's signature
        """Leave the question open."""
        return ""


class Says:
    """An approver that says the same to every approval."""

    present = True

    def __init__(self, answer: Answered) -> None:
        self._answer = answer

    async def ask(self, approval: Approval) -> Answered:  # noqa: ARG002 - the port's signature
        """Give the answer."""
        return self._answer

    async def question(self, question: Question) -> str:  # noqa: ARG002 - the port's signature
        """Leave a question open."""
        return ""


@dataclass(slots=True)
class Bench:
    """A model, tools and limits, ready to run once or again; each prompt goes on in the same session.

    `mode` is one of the product's modes; what it would ask a person is answered by `approver`.
    """

    model: Model
    tools: Toolset
    limits: Limits
    mode: Mode
    approver: Approver
    session: Session
    stop: Stop = field(default_factory=Stop)

    async def events(self, prompt: str) -> AsyncGenerator[Event]:
        """Run the prompt and yield every event of `nbagent.core.loop.run`; close it (`aclosing`) to end early."""
        agent = Agent(
            model=self.model, tools=self.tools, gate=Policy(self.mode), approver=self.approver, limits=self.limits
        )
        async with aclosing(run(agent, self.session, [text_block(prompt)], prompt=prompt, stop=self.stop)) as events:
            async for event in events:
                yield event

    async def collect(self, prompt: str) -> list[Event]:
        """Run the prompt to its end and return all its events."""
        async with aclosing(self.events(prompt)) as events:
            return [event async for event in events]

    @property
    def transcript(self) -> tuple[Message, ...]:
        """The messages so far, as the model gets them."""
        return tuple(self.session.transcript)


def bench(
    script: Sequence[Scripted] | Model,
    tools: Sequence[Tool] = (),
    *,
    max_turns: int = 25,
    mode: str = "default",
    approver: Approver | None = None,
    limits: Limits | None = None,
    system: str = "You are a careful assistant.",
) -> Bench:
    """Put a bench together: a script (a list of turns) or any model, tools, and how far a run may go.

    `limits` replaces `max_turns` where more than turns is to be bounded. Raises `ValueError` for a mode that is none.
    """
    model = ScriptedModel(list(script)) if isinstance(script, Sequence) else script
    offered = Toolset(list(tools))
    session = Session(uuid.uuid4().hex[:8], system=system, tools=offered.params(), store=NoStore())
    return Bench(
        model,
        offered,
        limits or Limits(max_turns=max_turns, longest_wait=0.0),
        Mode(mode),
        approver or Nobody(),
        session,
    )
