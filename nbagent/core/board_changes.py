"""What has happened between two states of a board, in order and in words: for the panel, the lead and the log.

Pure. Read `changes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nbagent.core.board import APPROVED, Board
from nbagent.core.board_values import Letter, Member, State, Stint, Task

What = Literal[
    "task_created", "task_assigned", "task_claimed", "plan_proposed", "plan_answered", "task_freed", "task_completed",
    "task_reopened", "task_deleted", "task_unblocked", "task_edited", "member_joined", "member_working", "member_idle",
    "member_gone", "letter",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that has happened: `who` did it or is meant, `text` says it to people. `task` and `letter` are as they are now."""

    what: What
    who: str
    text: str
    task: Task | None = None
    letter: Letter | None = None


def changes(old: Board, new: Board) -> tuple[Change, ...]:
    """Return what has happened from `old` to `new`: members, tasks by id, what was unblocked, letters."""
    return (*_members(old, new), *_tasks(old, new), *_unblocked(old, new), *_letters(old, new))


def _members(old: Board, new: Board) -> Iterator[Change]:
    before = {one.name: one for one in old.members}
    for one in new.members:
        was = before.get(one.name)
        if was is None or (was.state == "gone" and one.state != "gone"):
            yield Change("member_joined", one.name, f"{one.name} joined{_role(one)}")
        elif was.state != one.state:
            words = {"working": "works", "idle": "is idle", "gone": "has left"}[one.state]
            what: dict[str, What] = {"working": "member_working", "idle": "member_idle", "gone": "member_gone"}
            yield Change(what[one.state], one.name, f"{one.name} {words}")


def _role(member: Member) -> str:
    return f" ({member.role})" if member.role else ""


def _tasks(old: Board, new: Board) -> Iterator[Change]:
    before = {one.id: one for one in old.tasks}
    for task in new.tasks:
        was = before.pop(task.id, None)
        if was is None:
            yield _of("task_created", task.by, f"task {task.id}: {task.title}", task)
            was = Task(task.id, task.title, task.description, task.needs, wants_plan=task.wants_plan)
        yield from _task(was, task)
    for gone in before.values():
        yield _of("task_deleted", "", f"task {gone.id} was deleted: {gone.title}", gone)


def _task(was: Task, now: Task) -> Iterator[Change]:
    name = f"task {now.id} ({now.title})"
    if (was.title, was.description, was.needs, was.wants_plan) != (
        now.title,
        now.description,
        now.needs,
        now.wants_plan,
    ):
        yield _of("task_edited", "", f"{name} was changed", now)
    state, owner = was.state, was.owner
    for stint in now.past[len(was.past) :]:
        yield _ended(stint, name, now)
        state, owner = "pending", ""
    yield from _taken(state, owner, was.claims, now, name)
    if now.plan and now.plan != was.plan:
        yield _of("plan_proposed", now.owner, f"{now.owner} has a plan for {name}", now)
    if now.plan_answer and now.plan_answer != was.plan_answer:
        words = "was approved" if now.plan_answer == APPROVED else "is to be changed"
        yield _of("plan_answered", now.owner, f"the plan for {name} {words}", now)
    if now.state == "completed" and (was.state != "completed" or len(now.past) > len(was.past)):
        yield _of("task_completed", now.owner, f"{now.owner} completed {name}", now)


def _taken(state: State, owner: str, claims: int, now: Task, name: str) -> Iterator[Change]:
    if now.state != "pending" and now.claims > claims:
        yield _of("task_claimed", now.owner, f"{now.owner} works on {name}", now)
    elif state == "pending" and now.state == "pending" and now.owner != owner:
        words = f"is for {now.owner}" if now.owner else "is nobody's"
        yield _of("task_assigned", now.owner, f"{name} {words}", now)


def _ended(stint: Stint, name: str, now: Task) -> Change:
    if stint.why == "reopened":
        return _of("task_reopened", stint.owner, f"{name} is to be done again", now)
    words = {
        "lease ended": f"nothing was heard from {stint.owner}: {name} is free again",
        "left": f"{stint.owner} has left: {name} is free again",
        "reassigned": f"{name} was taken from {stint.owner}",
    }.get(stint.why, f"{stint.owner} gave {name} back")
    return _of("task_freed", stint.owner, words, now)


def _of(what: What, who: str, text: str, task: Task) -> Change:
    return Change(what, who, text, task)


def _unblocked(old: Board, new: Board) -> Iterator[Change]:
    before = {one.id: one for one in old.tasks}
    for task in new.tasks:
        was = before.get(task.id)
        if was and task.state == "pending" and old.open_needs(was) and not new.open_needs(task):
            yield _of("task_unblocked", task.owner, f"task {task.id} ({task.title}) can begin", task)


def _letters(old: Board, new: Board) -> Iterator[Change]:
    for letter in new.letters:
        if int(letter.id) > old.last_letter:
            to = "all" if letter.to == "*" else letter.to
            yield Change("letter", letter.sender, f"{letter.sender} to {to}: {letter.text}", letter=letter)
