"""What a board refuses, and in which words: names, needs in a circle, claims that no longer count.

Pure functions of values, each raising `BoardError` with a sentence that a model and a person can act on. Read `needs`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from nbagent.core.board_values import Member, Task
from nbagent.core.errors import BoardError
from nbagent.core.messages import clean

TITLE = 200
TEXT = 20_000
"""Characters of a title, and of any longer text of a board."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


def name(given: str) -> str:
    """Return a member's name, which is part of branch and folder names; raises `BoardError`."""
    if not _NAME.fullmatch(given):
        raise BoardError(f"{given!r} is no name for a teammate: a letter, then letters, digits, - or _, at most 40")
    return given


def title(given: str) -> str:
    """Return a title as one clean line; raises `BoardError` where nothing is left, or too much."""
    line = " ".join(clean(given).split())
    if not line:
        raise BoardError("the task's title is empty")
    if len(line) > TITLE:
        raise BoardError(
            f"the task's title has {len(line)} characters, at most {TITLE}: put the rest into its description"
        )
    return line


def text(given: str, what: str) -> str:
    """Return a longer text, cleaned; raises `BoardError` where it is too long."""
    if len(given) > TEXT:
        raise BoardError(
            f"the {what} has {len(given):,} characters, at most {TEXT:,}: put it into a file and name that"
        )
    return clean(given)


def task(tasks: Sequence[Task], task_id: str) -> Task:
    """Return the task of that id; raises `BoardError`."""
    for one in tasks:
        if one.id == task_id:
            return one
    there = ", ".join(one.id for one in tasks[:20]) + (", …" if len(tasks) > 20 else "")
    raise BoardError(f"there is no task {task_id!r}. There are: {there or 'none yet'}")


def member(members: Sequence[Member], wanted: str) -> Member:
    """Return the member of that name; raises `BoardError`."""
    names = {one.name: one for one in members}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted.lower(), [one.lower() for one in names], 1)
    hint = next((f" Did you mean {one}?" for one in names if near and one.lower() == near[0]), "")
    raise BoardError(f"the team has no member {wanted!r}.{hint} There are: {', '.join(names) or 'none yet'}")


def needs(tasks: Sequence[Task], task_id: str, wanted: Iterable[str]) -> tuple[str, ...]:
    """Return what a task needs, each once; raises `BoardError` for ids that there are not, and for a circle, named."""
    given = tuple(dict.fromkeys(wanted))
    for need in given:
        if need == task_id:
            raise BoardError(f"task {task_id} can't need itself")
        task(tasks, need)
    by_id = {one.id: one.needs for one in tasks} | {task_id: given}
    if circle := _circle(by_id, task_id):
        raise BoardError(f"tasks can't need each other in a circle: {' needs '.join(circle)}")
    return given


def _circle(needs_of: dict[str, tuple[str, ...]], start: str) -> list[str]:
    """Return a way from `start` along needs back to it, [] where there is none."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop()
        for need in needs_of.get(way[-1], ()):
            if need == start:
                return [*way, need]
            if need not in seen:
                seen.add(need)
                ways.append([*way, need])
    return []


def why_not(wanted: Task, open_needs: Sequence[str]) -> str:
    """Return why a task can't be claimed."""
    if wanted.state == "completed":
        return f"task {wanted.id} is completed already, by {wanted.owner}"
    if wanted.state == "in_progress":
        return f"{wanted.owner} works on task {wanted.id}"
    if open_needs:
        return f"task {wanted.id} waits for {', '.join(open_needs)}"
    return f"task {wanted.id} is assigned to {wanted.owner}"


def lost(found: Task, owner: str, deed: str) -> str:
    """Return why `owner` can't do `deed` to a task: its claim does not count any more."""
    now = {
        "pending": "it is free again" if not found.owner else f"it is assigned to {found.owner}",
        "in_progress": f"{found.owner} works on it now" if found.owner != owner else f"a later claim of {owner} counts",
        "completed": f"{found.owner} has completed it",
    }[found.state]
    return (
        f"{owner} can't {deed} task {found.id}: its claim does not count any more ({now}). Leave it, and claim another"
    )
