"""The shared list of a team: tasks with needs and owners, members, letters. Pure and frozen; every change is a new `Board`.

A claim has a number (`Task.claims`): whoever renews, completes or releases a task says which claim it means, so that an
owner who lost its lease can never overwrite the work of the next one. Times (`now`, `began`, …) are wall-clock seconds that
people are shown; nothing is ever decided by comparing them, since machines' clocks differ: when a lease has ended is
judged by `leases.Watch`. Must not know where a board is kept (extend/boards) or who works. Read `Task`, then `Board.claim`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from nbagent.core import board_json, board_rules
from nbagent.core.board_values import LEAD, Kind, Letter, Member, MemberState, State, Stint, Task
from nbagent.core.errors import BoardError
from nbagent.core.messages import Json

__all__ = [
    "APPROVED",
    "LEAD",
    "LETTERS",
    "TASKS",
    "Board",
    "Kind",
    "Letter",
    "Member",
    "MemberState",
    "State",
    "Stint",
    "Task",
]

APPROVED = "approved"
"""The answer to a plan that lets its task begin; any other words ask for another plan."""
LETTERS = 200
"""Letters that have reached everybody are kept for the panel up to this number."""
TASKS = 500
"""Tasks of one board; more is no help to anybody."""

Freed = Literal["released", "reassigned", "lease ended", "left", "reopened"]


@dataclass(frozen=True, slots=True)
class Board:
    """What a team shares. `version` counts the changes (whoever keeps the board counts); `more` are fields of newer ones."""

    goal: str = ""
    tasks: tuple[Task, ...] = ()
    members: tuple[Member, ...] = ()
    letters: tuple[Letter, ...] = ()
    last_task: int = 0
    last_letter: int = 0
    version: int = 0
    more: Json | None = None

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def task(self, task_id: str) -> Task:
        """Return a task; raises `BoardError` that names those that there are."""
        return board_rules.task(self.tasks, task_id)

    def member(self, name: str) -> Member:
        """Return a member; raises `BoardError` with the nearest name."""
        return board_rules.member(self.members, name)

    def open_needs(self, task: Task) -> tuple[str, ...]:
        """Return the ids of the tasks that must be completed before `task` can begin."""
        done = {one.id for one in self.tasks if one.state == "completed"}
        return tuple(need for need in task.needs if need not in done)

    def blocks(self, task_id: str) -> tuple[str, ...]:
        """Return the ids of the tasks that need `task_id`."""
        return tuple(one.id for one in self.tasks if task_id in one.needs)

    def claimable(self, owner: str) -> tuple[Task, ...]:
        """Return what `owner` could claim now, in this order: what was assigned to it, then what is nobody's; lowest id first."""
        open_ = [one for one in self.tasks if one.state == "pending" and not self.open_needs(one)]
        mine = [one for one in open_ if one.owner == owner]
        return (*mine, *(one for one in open_ if not one.owner))

    def held(self, owner: str) -> tuple[Task, ...]:
        """Return the tasks that `owner` has claimed and not completed."""
        return tuple(one for one in self.tasks if one.owner == owner and one.state == "in_progress")

    @property
    def is_done(self) -> bool:
        """Whether no task is left to do."""
        return all(one.state == "completed" for one in self.tasks)

    def letters_for(self, name: str) -> tuple[Letter, ...]:
        """Return the letters that have not reached `name` yet, oldest first."""
        return tuple(one for one in self.letters if name in one.waiting)

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def reserve(self) -> tuple[Board, str]:
        """Return the board and an id that no other task will ever get, for `create` (hooks are told of it before)."""
        return replace(self, last_task=self.last_task + 1), str(self.last_task + 1)

    def create(
        self, title: str, description: str = "", *, needs: Iterable[str] = (), owner: str = "", wants_plan: bool = False,
        by: str = "", now: float = 0.0, task_id: str = "",
    ) -> Board:  # fmt: skip
        """Add a task; `task_id` is one that was reserved. Raises `BoardError` for needs or an owner that there are not."""
        board, number = (self, task_id) if task_id else self.reserve()
        if len(self.tasks) >= TASKS:
            raise BoardError(f"the board has {TASKS} tasks already: finish or delete some before you add more")
        if not number.isdecimal() or int(number) > board.last_task or any(one.id == number for one in self.tasks):
            raise BoardError(f"task {number} can't be made: its id is taken or was never reserved")
        made = Task(
            number, board_rules.title(title), board_rules.text(description, "description"), owner=owner,
            wants_plan=wants_plan, by=by, made=now, needs=board_rules.needs(self.tasks, number, needs),
        )  # fmt: skip
        self._knows(owner)
        tasks = sorted((*self.tasks, made), key=lambda one: int(one.id))
        return replace(board, tasks=tuple(tasks))

    def edit(
        self, task_id: str, *, title: str | None = None, description: str | None = None,
        needs: Iterable[str] | None = None, wants_plan: bool | None = None,
    ) -> Board:  # fmt: skip
        """Change what a task says; what is None stays. Raises `BoardError` for a circle of needs, which it names."""
        old = self.task(task_id)
        if needs is not None and old.state != "pending":
            raise BoardError(f"task {task_id} is {old.state}: what it needs can be changed only before it has begun")
        new = replace(
            old,
            title=old.title if title is None else board_rules.title(title),
            description=old.description if description is None else board_rules.text(description, "description"),
            needs=old.needs if needs is None else board_rules.needs(self.tasks, task_id, needs),
            wants_plan=old.wants_plan if wants_plan is None else wants_plan,
        )
        return self._with(new)

    def delete(self, task_id: str) -> Board:
        """Take a task away; nothing needs it any more. Raises `BoardError` while someone works on it."""
        if (gone := self.task(task_id)).state == "in_progress":
            raise BoardError(f"{gone.owner} works on task {task_id}: have it released before you delete it")
        left = (one for one in self.tasks if one.id != task_id)
        return replace(self, tasks=tuple(replace(o, needs=tuple(n for n in o.needs if n != task_id)) for o in left))

    def assign(self, task_id: str, owner: str, now: float = 0.0) -> Board:
        """Give a task to a member ("": to nobody). Who works on it loses it: its claim no longer counts."""
        old = self.task(task_id)
        self._knows(owner)
        if old.state == "completed":
            raise BoardError(
                f"task {task_id} is completed: reopen it (status pending) before you give it to {owner or 'nobody'}"
            )
        if old.owner == owner:
            return self
        return self._with(replace(_freed(old, "reassigned", now), owner=owner))

    def claim(self, owner: str, now: float, lease: float, task_id: str = "") -> Board:
        """Take the next task that `owner` can have (`claimable`), or `task_id`; the board as it is where there is none.

        `lease` is how many seconds the claim holds without a `renew`. Raises `BoardError` where `owner` has one in hand,
        or where `task_id` can't be had, with the reason.
        """
        if not owner or lease <= 0:
            raise BoardError("a claim needs an owner and a lease of more than 0 seconds")
        if in_hand := self.held(owner):
            raise BoardError(f"{owner} has task {in_hand[0].id} in hand: complete or release it first")
        can = self.claimable(owner)
        if task_id:
            wanted = self.task(task_id)
            if wanted not in can:
                raise BoardError(board_rules.why_not(wanted, self.open_needs(wanted)))
            can = (wanted,)
        if not can:
            return self
        first = can[0]
        taken = replace(first, owner=owner, state="in_progress", claims=first.claims + 1, beat=first.beat + 1,
                        lease=lease, began=now, ended=0.0)  # fmt: skip
        return self._with(taken)

    def renew(self, task_id: str, owner: str, claim: int) -> Board:
        """Give a sign of life for a claim; raises `BoardError` where it no longer counts."""
        task = self._claimed(task_id, owner, claim, "renew")
        return self._with(replace(task, beat=task.beat + 1))

    def release(self, task_id: str, owner: str, claim: int, now: float = 0.0) -> Board:
        """Give a claimed task back: it is nobody's; raises `BoardError` where the claim no longer counts."""
        return self._with(_freed(self._claimed(task_id, owner, claim, "release"), "released", now))

    def free(self, overdue: Mapping[str, int], now: float = 0.0) -> Board:
        """Free the tasks of `overdue` (id → the beat that was seen too long) that have given no sign of life since."""
        ended = [one for one in self.tasks if one.state == "in_progress" and overdue.get(one.id) == one.beat]
        return self._with(*(_freed(task, "lease ended", now) for task in ended))

    def complete(self, task_id: str, owner: str, claim: int, result: str = "", now: float = 0.0) -> Board:
        """Mark a task as completed, with what came of it. Saying so twice changes nothing.

        Raises `BoardError` where the claim no longer counts (the task is another's, or free again: the result stays
        theirs), or where the task's plan was not approved.
        """
        result = board_rules.text(result, "result")
        task = self.task(task_id)
        if (task.state, task.owner, task.claims, task.result) == ("completed", owner, claim, result):
            return self
        task = self._claimed(task_id, owner, claim, "complete")
        if not task.may_begin:
            raise BoardError(f"task {task_id} wants a plan that is approved before its work begins")
        return self._with(replace(task, state="completed", result=result, ended=now))

    def reopen(self, task_id: str, now: float = 0.0) -> Board:
        """Make a completed task pending again, nobody's; what needs it waits again. Its result stays to be read."""
        task = self.task(task_id)
        if task.state != "completed":
            raise BoardError(f"task {task_id} is {task.state}: only a completed one can be reopened")
        return self._with(_freed(task, "reopened", now))

    # ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def propose(self, task_id: str, owner: str, claim: int, plan: str) -> Board:
        """Put a plan for a claimed task up for an answer; raises `BoardError`."""
        task = self._claimed(task_id, owner, claim, "plan")
        if not (said := board_rules.text(plan, "plan").strip()):
            raise BoardError("the plan is empty: say what is to be done, step by step")
        return self._with(replace(task, plan=said, plan_answer=""))

    def answer_plan(self, task_id: str, answer: str) -> Board:
        """Answer a plan: `APPROVED`, or what it should say instead; raises `BoardError` where no plan waits."""
        task = self.task(task_id)
        if not task.plan or task.plan_answer:
            raise BoardError(f"no plan of task {task_id} waits for an answer")
        if not answer.strip():
            raise BoardError("the answer to a plan is empty: approve it, or say what is to be changed")
        return self._with(replace(task, plan_answer=board_rules.text(answer, "answer").strip()))

    # ── members ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def join(self, member: Member) -> Board:
        """Add a member, or one that is gone anew; raises `BoardError` where one of that name is there."""
        board_rules.name(member.name)
        there = [one for one in self.members if one.name == member.name]
        if there and there[0].state != "gone":
            raise BoardError(f"the team has a member {member.name!r} already: names are for one each")
        return replace(self, members=(*(one for one in self.members if one.name != member.name), member))

    def now_is(self, name: str, state: MemberState, now: float = 0.0) -> Board:
        """Say what a member does; one that is gone gives its tasks back."""
        old = self.member(name)
        if old.state == state:
            return self
        new = replace(old, state=state, since=now)
        board = replace(self, members=tuple(new if one.name == name else one for one in self.members))
        if state != "gone":
            return board
        left = (task for task in self.tasks if task.owner == name and task.state != "completed")
        return replace(board, tasks=self._with(*(_freed(task, "left", now) for task in left)).tasks)

    # ── letters ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def post(
        self, sender: str, to: str, text: str, at: float = 0.0, *, kind: Kind = "message", about: str = ""
    ) -> Board:
        """Send a letter to a member, or to all others ("*"); `about` is a task's id. Raises `BoardError`."""
        if not text.strip() and kind == "message":
            raise BoardError("the message is empty")
        there = [one.name for one in self.members if one.state != "gone" and one.name != sender]
        if to != "*" and self.member(to).state == "gone":
            raise BoardError(f"{to} has left the team. There are: {', '.join(there) or 'nobody else'}")
        if to == sender:
            raise BoardError(f"the message is from {sender} to {to}: nobody writes to themselves")
        waiting = tuple(there) if to == "*" else (to,)
        letter = Letter(
            str(self.last_letter + 1), sender, to, board_rules.text(text, "message"), at, kind, about, waiting
        )
        return replace(self, letters=_kept((*self.letters, letter)), last_letter=self.last_letter + 1)

    def delivered(self, name: str, ids: Iterable[str]) -> Board:
        """Say that letters have reached `name`: they are not delivered again."""
        gone = set(ids)
        if not any(one.id in gone and name in one.waiting for one in self.letters):
            return self
        letters = (
            replace(one, waiting=tuple(w for w in one.waiting if w != name)) if one.id in gone else one
            for one in self.letters
        )  # fmt: skip
        return replace(self, letters=_kept(tuple(letters)))

    def take(self, name: str) -> tuple[Board, tuple[Letter, ...]]:
        """Return the board with all letters to `name` delivered, and these."""
        letters = self.letters_for(name)
        return self.delivered(name, (one.id for one in letters)), letters

    # ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def to_json(self) -> Json:
        """Return the board as JSON; fields of newer versions, which were read, are in it."""
        return board_json.to_json(self)

    @classmethod
    def from_json(cls, data: object) -> Board:
        """Return the board of its JSON; raises `BoardError` where it is none."""
        return board_json.from_json(cls, data)

    # ── the small steps ──────────────────────────────────────────────────────────────────────────────────────────────

    def _with(self, *changed: Task) -> Board:
        by_id = {task.id: task for task in changed}
        return replace(self, tasks=tuple(by_id.get(one.id, one) for one in self.tasks)) if changed else self

    def _claimed(self, task_id: str, owner: str, claim: int, deed: str) -> Task:
        task = self.task(task_id)
        if (task.state, task.owner, task.claims) != ("in_progress", owner, claim):
            raise BoardError(board_rules.lost(task, owner, deed))
        return task

    def _knows(self, owner: str) -> None:
        if owner and self.members:
            self.member(owner)


def _freed(task: Task, why: Freed, now: float) -> Task:
    """Return a task as nobody's and pending; who had it stays on record, its plan goes with it."""
    worked = task.state != "pending"
    past = (*task.past, Stint(task.owner, task.began, task.ended or now, why)) if worked else task.past
    return replace(task, owner="", state="pending", past=past, plan="", plan_answer="")


def _kept(letters: tuple[Letter, ...]) -> tuple[Letter, ...]:
    """Return all letters that still wait, and the latest of the others."""
    spare = len(letters) - LETTERS
    kept: list[Letter] = []
    for letter in letters:
        if spare > 0 and not letter.waiting:
            spare -= 1
        else:
            kept.append(letter)
    return tuple(kept)
