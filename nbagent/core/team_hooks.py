"""Where a team asks the hooks: before a task is made, before one counts as completed, before a teammate goes idle.

`ask` is `Call.hook`, or what fires a payload for a teammate outside of a call. Read `may_create`, then `Held`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nbagent.core.board_values import Task
from nbagent.core.hooks import Verdict
from nbagent.core.payloads import Payload, TaskCompleted, TaskCreated, TeammateIdle

Ask = Callable[[Payload], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Held:
    """What the hooks say: `why` it is held back ("": it is not), `stop` with what the whole teammate is ended ("": it is not)."""

    why: str = ""
    stop: str = ""

    def __bool__(self) -> bool:
        """Whether it is held back, or all ended."""
        return bool(self.why or self.stop)


async def may_create(ask: Ask, task_id: str, title: str, description: str = "", teammate: str = "") -> Held:
    """Ask about a task that is to be made; held back, it is not made. `teammate` is who makes it ("": the lead)."""
    payload = TaskCreated(
        task_id=task_id, task_subject=title, task_description=description or None, teammate_name=teammate or None
    )
    return _held(await ask(payload))


async def may_complete(ask: Ask, task: Task, teammate: str = "") -> Held:
    """Ask about a task that is to be completed; held back, it stays in progress, and who has it is told why."""
    payload = TaskCompleted(
        task_id=task.id,
        task_subject=task.title,
        task_description=task.description or None,
        teammate_name=teammate or None,
    )
    return _held(await ask(payload))


async def may_idle(ask: Ask, teammate: str, team: str = "") -> Held:
    """Ask about a teammate that is to go idle; held back, it goes on, with the reason as what to do."""
    return _held(await ask(TeammateIdle(teammate_name=teammate, team_name=team or None)))


def _held(verdict: Verdict) -> Held:
    return Held(verdict.why_blocked, verdict.stop)
