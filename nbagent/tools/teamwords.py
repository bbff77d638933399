"""A team's board in words: how tasks, members and letters are told to a model, and to a person who asks.

Pure. Read `line`, then `told`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nbagent.core.board import Board
from nbagent.core.board_values import Letter, Task
from nbagent.core.messages import clean

_FRAME = "team-messages"
_LIKE_A_HEAD = re.compile(r"^\[", re.MULTILINE)


def line(board: Board, task: Task) -> str:
    """Return a task in one line: `3 [in_progress] Fix the parser · Ana · waits for 1, 2`."""
    parts = [f"{task.id} [{task.state}] {task.title}"]
    if task.owner:
        parts.append(task.owner if task.state != "pending" else f"for {task.owner}")
    if task.state == "pending" and (open_ := board.open_needs(task)):
        parts.append(f"waits for {', '.join(open_)}")
    if task.wants_plan and task.state != "completed":
        waits = bool(task.plan and not task.plan_answer)
        parts.append(f"plan: {'approved' if task.may_begin else 'waits for an answer' if waits else 'wanted'}")
    return " · ".join(parts)


def listed(board: Board) -> str:
    """Return all tasks and members as lines."""
    tasks = [line(board, task) for task in board.tasks] or ["No tasks yet."]
    members = [f"{one.name}: {one.state}" + (f" ({one.role})" if one.role else "") for one in board.members]
    return "\n".join([*tasks, *(["", "Members:", *members] if members else [])])


def whole(board: Board, task: Task) -> str:
    """Return all that the board says of a task."""
    needed = [f"needs {line(board, board.task(need))}" for need in task.needs]
    results = [f"result of {need}: {board.task(need).result}" for need in task.needs if board.task(need).result]
    blocks = [f"needed by {', '.join(found)}"] if (found := board.blocks(task.id)) else []
    plan = [f"plan:\n{task.plan}", f"answer: {task.plan_answer or 'none yet'}"] if task.plan else []
    past = [f"{stint.owner} had it before ({stint.why})" for stint in task.past]
    result = [f"result: {task.result}"] if task.result else []
    return "\n".join(
        [
            line(board, task),
            *([task.description] if task.description else []),
            *needed,
            *results,
            *blocks,
            *plan,
            *past,
            *result,
        ]
    )


def told(letters: Sequence[Letter]) -> str:
    """Return letters as they are told to a member at its next turn; "" where there are none.

    They are words of other agents: that they are not the person's is said, and none can end the frame, or look as another's.
    """
    if not letters:
        return ""
    said = "\n\n".join(f"{_head(one)}\n{_inside(one.text)}".rstrip() for one in letters)
    return f"<{_FRAME}>\nFrom members of your team, not from the person:\n\n{said}\n</{_FRAME}>"


def _inside(text: str) -> str:
    return _LIKE_A_HEAD.sub(r"\\[", clean(text)).replace(f"</{_FRAME}", f"<\\/{_FRAME}")


def _head(letter: Letter) -> str:
    match letter.kind:
        case "plan":
            return f"[{letter.sender} has a plan for task {letter.about}; answer it with answer_plan]"
        case "shutdown_request":
            return f"[{letter.sender} asks you to end when your task is done; answer with answer_shutdown]"
        case "shutdown_approved":
            return f"[{letter.sender} ends]"
        case "shutdown_rejected":
            return f"[{letter.sender} goes on, and says why]"
        case "idle":
            return f"[{letter.sender} is idle]"
        case _:
            return f"[{letter.sender}{' to all' if letter.to == '*' else ''}]"
