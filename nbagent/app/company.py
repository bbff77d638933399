"""What a run has because it works with others: the lead of a team or one of its teammates.

The seam between `cell` (how a run goes) and teams: it must not know of either. Read `Company`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from nbagent.core.events import Event
from nbagent.core.run import Agent
from nbagent.core.session import Session
from nbagent.core.tools import Tool

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.app.starts import Ground
    from nbagent.config import Settings


class Company(Protocol):
    """Those a run works with. Its methods are called in this order."""

    async def ground(self, extension: Extension, place: Place, settings: Settings) -> Ground | None:
        """Return on what conversation the run stands; None: where a cell without any company would."""
        ...

    def tools(self) -> Sequence[Tool]:
        """Return the tools that the run has besides; subagents of the run don't get them."""
        ...

    def joined(self, agent: Agent, show: Callable[[Event], None], session: Session) -> Agent:
        """Return the agent as it is in this company; `show` shows an event that the loop itself doesn't report."""
        ...

    def events(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Wrap the events of the run (see `drive.Middleware`): what is to happen before its last one."""
        ...
