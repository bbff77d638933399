"""What stands on a team's board: a task, a member, a letter. Plain frozen values; what may happen to them is in `board`.

Every value has `more`: fields that a newer version wrote, kept as they were. Read `Task`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nbagent.core.messages import Json

State = Literal["pending", "in_progress", "completed"]
MemberState = Literal["working", "idle", "gone"]
Kind = Literal[
    "message", "idle", "plan", "plan_answer", "shutdown_request", "shutdown_approved", "shutdown_rejected", "notice"
]
"""What a letter is: words; "I am idle"; a plan and its answer; asking to end, and the answers; what happened to a task."""

LEAD = "lead"
"""The name of a team's lead, whom no teammate may be named after."""


@dataclass(frozen=True, slots=True)
class Stint:
    """A claim that is over without the task being completed: who had it, from when to when, and why it ended."""

    owner: str
    began: float = 0.0
    ended: float = 0.0
    why: str = ""
    more: Json | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of work. `id` is a number as text; times are wall-clock seconds, for people only.

    `needs` are ids of tasks that must be completed before. `owner` is whom a pending task is assigned to ("" nobody), who
    works on one in progress, or who has completed it. `claims` is the number of the claim in force; `beat` grows with each
    sign of life of an owner, `lease` is how many seconds it may stay the same. `wants_plan`: a plan must be approved first;
    `plan_answer` is "approved", or what the plan should say instead, "" while it waits. `past` are claims that ended early.
    """

    id: str
    title: str
    description: str = ""
    needs: tuple[str, ...] = ()
    owner: str = ""
    state: State = "pending"
    claims: int = 0
    beat: int = 0
    lease: float = 0.0
    result: str = ""
    wants_plan: bool = False
    plan: str = ""
    plan_answer: str = ""
    by: str = ""
    made: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    past: tuple[Stint, ...] = ()
    more: Json | None = None

    @property
    def may_begin(self) -> bool:
        """Whether its work may begin: no plan is wanted, or it was approved."""
        return not self.wants_plan or self.plan_answer == "approved"


@dataclass(frozen=True, slots=True)
class Member:
    """The lead or a teammate: `role` is its kind of agent, `branch` where its work goes, `since` when its state began."""

    name: str
    role: str = ""
    state: MemberState = "working"
    branch: str = ""
    since: float = 0.0
    more: Json | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """A message. `to` is a name, or "*" for all others; `waiting` are those whom it has not reached yet."""

    id: str
    sender: str
    to: str
    text: str
    at: float = 0.0
    kind: Kind = "message"
    about: str = ""
    waiting: tuple[str, ...] = ()
    more: Json | None = None
