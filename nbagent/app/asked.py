"""What makes a run one that only answers: `%%ask`, `%agent ask`, `explain`, `review`, and the summary of a report.

Nothing is changed or run for it and no card comes up: it works in read-only mode, behind the gate of a subagent that only
looks (one definition of that), with nobody to ask. Its conversation is the notebook's. Read `only_answers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event
from nbagent.core.messages import Json
from nbagent.core.narrowing import Narrowed
from nbagent.core.policy import Mode
from nbagent.core.ports import Notebook
from nbagent.core.run import Agent

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.config import Settings

OPTION = "ask"
NO_MODE = "--ask only looks, so it goes with no --mode. Leave one of them out."
TOLD = (
    "(From the runtime, not the person:) The person only asks. Nothing can be changed or run for this prompt, and nobody is "
    "asked: look at what is there, and answer. Code that would help stands in the answer. If it can't be told without "
    "running something, say what would have to run."
)
_LOOKS = AgentSpec("ask", "Answers a question.", only_looks=True, source="built-in")


@runtime_checkable
class Checking(Protocol):
    """What makes a prompt, and looks up afterwards what the answer cites."""

    async def __call__(self, notebook: Notebook | None, words: str) -> tuple[str, str]:
        """Return what people read of the prompt, and what the model is told more."""
        ...

    def events(self, stream: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Wrap the run's events."""
        ...


def is_asked(given: Json) -> bool:
    """Whether the options of a cell say that it only asks; raises `ConfigError` where they also name a mode."""
    if not given.get(OPTION):
        return False
    if given.get("mode") not in (None, str(Mode.READ_ONLY)):
        raise ConfigError(NO_MODE)
    return True


def settings_for(settings: Settings, outside: Settings) -> Settings:
    """Return the settings of a run that only answers: what the notebook itself allows has no use there, and needs no yes."""
    allow = tuple(rule for rule in settings.allow if rule in outside.allow)
    return replace(settings, mode=Mode.READ_ONLY, allow=allow)


async def files_read(extension: Extension, place: Place) -> bool:
    """Read the folder's files without asking about them: what waits for the person's trust goes on waiting."""
    del place
    await asyncio.to_thread(extension.files.load)
    return False


def only_answers(agent: Agent) -> Agent:
    """Return `agent` as one that can only look: no call that does more, no card, no agent that outlives it."""
    from nbagent.jupyter.approval import PolicyApprover

    return replace(agent, gate=Narrowed(agent.gate, _LOOKS), approver=PolicyApprover(), start=None, answers=True)
