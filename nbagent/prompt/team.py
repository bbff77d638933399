"""What the lead of a team and its teammates are told: who they are, and how the team works.

Texts only; it must not know how a team runs. Read `lead` and `teammate`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nbagent.core.messages import clean

LEAD = """\
You lead a team towards the goal above. The team's name is {team}; your name is lead. Your teammates: {names}. Each works by itself, with a \
context, a kernel and {place} of its own. They see nothing of this conversation.

How to lead:
1. Look around just enough to cut the goal into tasks that can be done side by side: few, each with a clear result, each \
in other files than the rest where that is possible. One to four tasks a teammate.
2. Make the tasks with task_create. The description must have all that is needed: which files, what is wrong or wanted, how \
to check it. `needs` names the tasks that must be completed before. Teammates claim the next free task by themselves; name \
an owner only where it matters who does it.
3. wait_for_team, and act on what it says: answer letters and plans (answer_plan), {merging}. Don't do the teammates' tasks \
yourself while they work on them.
4. When nothing is left to do, shut the teammates down (shutdown_request) and tell the person what was done, what was not, \
and why.{accepting}
"""
_MERGING = (
    "bring in what is completed (merge_teammate), look at conflicts with read_conflict and resolve one only where you know "
    "what both sides want: otherwise leave it and say so at the end. Nothing is ever forced"
)
_IN_PLACE = "look at what was changed"
_ACCEPTING = (
    " The person's files are untouched until they accept what was merged: nbagent asks them at the end, not you."
)

TEAMMATE = """\
You are {name}, a teammate in the team {team}, which {lead} leads. The others: {others}. {place}

You do one task at a time; it was claimed for you. Do it whole, check it, and say in your last words what you did and how you \
checked it: that becomes the task's result. Stay in your task: what else you find, tell the lead (send_message) or put on the \
list (task_create). If you can't do it, say why in your last words and begin them with NOT DONE.
"""
_WORKTREE = (
    "Your working folder is a worktree of your own, on a branch of your own: nobody else writes there. nbagent commits what "
    "you change; don't run git commands that change anything. Files that git does not track (data) are in {root}: read them "
    "there, change nothing there."
)
_SHARED = "You work in the person's own folder, one teammate at a time: change only what your task needs."


def lead(team: str, names: Sequence[str], *, worktrees: bool, plan_first: bool) -> str:
    """Return what the lead is told with the goal: how to lead."""
    place = "a worktree" if worktrees else "a turn in the same folder"
    text = LEAD.format(
        team=team,
        names=", ".join(names),
        place=place,
        merging=_MERGING if worktrees else _IN_PLACE,
        accepting=_ACCEPTING if worktrees else "",
    )
    plans = "Each task must be planned before it is done: its plan comes to you as a letter.\n" if plan_first else ""
    return f"<team>\n{text}{plans}</team>"


def teammate(name: str, team: str, others: Sequence[str], *, root: str, worktrees: bool) -> str:
    """Return who a teammate is: told once, before its first task."""
    place = _WORKTREE.format(root=root) if worktrees else _SHARED
    text = TEAMMATE.format(name=name, team=team, lead="lead", others=", ".join(others) or "nobody", place=place)
    return f"<team>\n{text}</team>"


def task(number: str, title: str, description: str, *, plan: str = "", more: Sequence[str] = ()) -> str:
    """Return the prompt of one task; `plan` is the one that was approved, `more` what else is to know."""
    parts = [f"Your task {number}: {clean(title).strip()}", clean(description).strip()]
    if plan.strip():
        parts.append(f"Your plan for it was approved:\n{plan.strip()}")
    return "\n\n".join(part for part in (*parts, *more) if part)


def planning(number: str, title: str, description: str, words: str = "") -> str:
    """Return the prompt by which a teammate plans its task; `words` are what was said of its plan before."""
    said = f"Your plan was not approved: {words}\nMake another one." if words else ""
    ask = (
        "Only look and plan now: change nothing. Your last words are the plan, for the lead: steps, files, how to check, "
        "what can go wrong. You do it once it is approved."
    )
    return "\n\n".join(
        part for part in (f"Plan task {number}: {clean(title)}", clean(description).strip(), said, ask) if part
    )
