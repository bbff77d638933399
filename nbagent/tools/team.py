"""The tools by which a lead and its teammates share work: tasks, messages, plans, ending. In the shape of Claude Code's.

They change the team's board and nothing else: no kernel, no git, no files. Must not know where the board is kept (`Seat`).
Read `lead_tools`, then `teammate_tools`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from nbagent.core.board import APPROVED, LEAD, Board
from nbagent.core.errors import BoardError, ToolError
from nbagent.core.messages import Json
from nbagent.core.seat import Seat
from nbagent.core.team_hooks import may_complete, may_create
from nbagent.core.tools import Call, Tool, tool
from nbagent.tools.teamwords import line, listed, whole

NAMES = (
    "task_create", "task_list", "task_get", "task_update", "send_message",
    "ask_plan", "answer_plan", "shutdown_request", "propose_plan", "answer_shutdown",
)  # fmt: skip
"""All tools of teams; the last two are a teammate's, the three before a lead's."""

Status = Literal["pending", "in_progress", "completed", "deleted"]


def lead_tools(seat: Seat) -> list[Tool]:
    """Return the tools of a team's lead."""
    return [*_both(seat), _ask_plan(seat), _answer_plan(seat), _shutdown_request(seat)]


def teammate_tools(seat: Seat) -> list[Tool]:
    """Return the tools of a teammate."""
    return [*_both(seat), _propose_plan(seat), _answer_shutdown(seat)]


def _both(seat: Seat) -> list[Tool]:
    return [_task_create(seat), _task_list(seat), _task_get(seat), _task_update(seat), _send_message(seat)]


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _task_create(seat: Seat) -> Tool:
    @tool(name="task_create", subject="title", title=lambda given: f"new task: {given['title']}")
    async def task_create(
        call: Call,
        title: str,
        description: str = "",
        needs: tuple[str, ...] = (),
        owner: str = "",
        wants_plan: bool = False,
    ) -> str:
        """Put a task on the team's list. Free teammates claim tasks by themselves, lowest number first.

        A good task can be done by one teammate without the others, and says how to tell that it is done: teammates know
        nothing of your conversation. Make tasks that change different files; where one must come after another, say so
        with needs.

        Args:
            title: what is to be done, in a few words.
            description: all that the teammate has to know: files, what is wanted, how to check it.
            needs: numbers of tasks that must be completed before this one begins.
            owner: name of the teammate that shall do it; empty: whoever is free.
            wants_plan: the teammate must have a plan approved before it changes anything.
        """
        wanted = tuple(map(_id, needs))
        (await seat.boards.read()).create(
            title, description, needs=wanted, owner=owner
        )  # refused before hooks are asked
        number = ""

        def reserve(board: Board) -> Board:
            nonlocal number
            board, number = board.reserve()
            return board

        await seat.boards.change(reserve)
        if held := await may_create(call.hook, number, title, description, _teammate(seat)):
            raise ToolError(f"the task was not made. {held.why or held.stop}")
        board = await seat.boards.change(
            lambda old: old.create(
                title, description, needs=wanted, owner=owner, wants_plan=wants_plan, by=seat.name, now=seat.now(),
                task_id=number,
            )
        )  # fmt: skip
        return f"Made: {line(board, board.task(number))}"

    return task_create


def _task_list(seat: Seat) -> Tool:
    @tool(name="task_list", title=lambda _: "list the team's tasks")
    async def task_list(call: Call) -> str:  # noqa: ARG001
        """List the team's tasks with their states, owners and needs, and what each teammate does."""
        return listed(await seat.boards.read())

    return task_list


def _task_get(seat: Seat) -> Tool:
    @tool(name="task_get", title=lambda given: f"read task {given['task']}")
    async def task_get(call: Call, task: str) -> str:  # noqa: ARG001
        """Read all of one task: description, needs, plan and its answer, result.

        Args:
            task: its number.
        """
        board = await seat.boards.read()
        return whole(board, board.task(_id(task)))

    return task_get


def _task_update(seat: Seat) -> Tool:
    @tool(name="task_update", title=_update_title)
    async def task_update(
        call: Call, task: str, status: Status | None = None, title: str | None = None, description: str | None = None,
        needs: tuple[str, ...] | None = None, owner: str | None = None, result: str = "",
    ) -> str:  # fmt: skip
        """Change a task of the team's list; what is not given stays.

        Mark a task completed only when it is done and checked; where it can't be done, give it back (pending) and tell
        the lead why.

        Args:
            task: its number.
            status: in_progress: claim it for yourself. completed: it is done, with a result. pending: give it back; the
                lead may also take it from its owner, or have a completed one done again. deleted: take it off the list.
            title: a new title.
            description: a new description.
            needs: numbers of all tasks that must be completed before it.
            owner: give it to this teammate (the lead only); empty: to nobody.
            result: what came of it, for the lead and for who works on what needs it.
        """
        task_id = _id(task)
        if title is not None or description is not None or needs is not None:
            await _edit(seat, task_id, title, description, None if needs is None else tuple(map(_id, needs)))
        if owner is not None:
            _only_lead(seat, "give a task to somebody")
            await seat.boards.change(lambda old: old.assign(task_id, owner, seat.now()))
        if status is not None:
            await _STATUS[status](seat, call, task_id, result)
        board = await seat.boards.read()
        if status == "deleted":
            return f"Task {task_id} is off the list."
        return f"Now: {line(board, board.task(task_id))}"

    return task_update


def _update_title(given: Json) -> str:
    if given.get("status"):
        return f"task {given['task']}: {str(given['status']).replace('_', ' ')}"
    return f"task {given['task']}: for {given['owner']}" if given.get("owner") else f"change task {given['task']}"


async def _edit(
    seat: Seat, task_id: str, title: str | None, description: str | None, needs: tuple[str, ...] | None
) -> None:
    def step(board: Board) -> Board:
        task = board.task(task_id)
        if seat.name not in {LEAD, task.by, task.owner}:
            raise BoardError(f"task {task_id} is not yours to change: write to {LEAD}, or to {task.owner or task.by}")
        return board.edit(task_id, title=title, description=description, needs=needs)

    await seat.boards.change(step)


async def _begin(seat: Seat, _: Call, task_id: str, result: str) -> None:  # noqa: ARG001  (one shape for all)
    if not seat.has((await seat.boards.read()).task(task_id)):
        await seat.claim(task_id)


async def _complete(seat: Seat, call: Call, task_id: str, result: str) -> None:
    seat.claim_of(task_id)
    task = (await seat.boards.read()).task(task_id)
    if held := await may_complete(call.hook, task, _teammate(seat)):
        raise ToolError(f"task {task_id} is not completed: {held.why or held.stop}")
    await seat.complete(task_id, result)


async def _give_back(seat: Seat, _: Call, task_id: str, result: str) -> None:  # noqa: ARG001
    if seat.has((await seat.boards.read()).task(task_id)):
        await seat.release(task_id)
        return
    _only_lead(seat, "give back a task of somebody else")

    def step(board: Board) -> Board:
        task = board.task(task_id)
        return board.reopen(task_id, seat.now()) if task.state == "completed" else board.assign(task_id, "", seat.now())

    await seat.boards.change(step)


async def _delete(seat: Seat, _: Call, task_id: str, result: str) -> None:  # noqa: ARG001
    _only_lead(seat, "delete a task")
    await seat.boards.change(lambda old: old.delete(task_id))


_STATUS: Mapping[Status, Callable[[Seat, Call, str, str], Awaitable[None]]] = {
    "in_progress": _begin, "completed": _complete, "pending": _give_back, "deleted": _delete,
}  # fmt: skip


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _send_message(seat: Seat) -> Tool:
    @tool(
        name="send_message",
        subject="to",
        title=lambda given: f"message to {'all' if given['to'] == '*' else given['to']}",
    )
    async def send_message(call: Call, to: str, text: str) -> str:  # noqa: ARG001
        """Send a message to a member of the team. It is read at the member's next turn; no answer comes back here.

        Only what you send is read by others, not what you say. Write to one member where one is meant.

        Args:
            to: a name; * for all others.
            text: the message.
        """
        board = await seat.post(to, text)
        reached = board.letters[-1].waiting if to == "*" else (to,)
        return f"Sent to {', '.join(reached) or 'nobody: the team has no other members'}."

    return send_message


# ── plans and ending ─────────────────────────────────────────────────────────────────────────────────────────────────


def _ask_plan(seat: Seat) -> Tool:
    @tool(name="ask_plan", title=lambda given: f"ask for a plan of task {given['task']}")
    async def ask_plan(call: Call, task: str, text: str = "") -> str:  # noqa: ARG001
        """Have whoever does a task send a plan first; it changes nothing before you have approved that (answer_plan).

        Args:
            task: its number.
            text: what the plan should say.
        """
        task_id = _id(task)

        def step(board: Board) -> Board:
            found = board.task(task_id)
            if found.state == "completed":
                raise BoardError(f"task {task_id} is completed: no plan is needed any more")
            asked = board.edit(task_id, wants_plan=True)
            if not found.owner:
                return asked
            words = f"Send a plan for task {task_id} before you go on. {text}".strip()
            return asked.post(seat.name, found.owner, words, seat.now(), about=task_id)

        board = await seat.boards.change(step)
        return f"A plan is wanted: {line(board, board.task(task_id))}"

    return ask_plan


def _answer_plan(seat: Seat) -> Tool:
    @tool(name="answer_plan", title=_answer_title)
    async def answer_plan(call: Call, task: str, approve: bool, text: str = "") -> str:  # noqa: ARG001
        """Answer the plan of a teammate: it begins, or it sends another plan.

        Args:
            task: the number of the task.
            approve: whether the plan is to be done as it is.
            text: what is to be changed (needed where you do not approve), or what to mind.
        """
        task_id = _id(task)
        if not approve and not text.strip():
            raise ToolError("say in text what the plan should say instead")

        def step(board: Board) -> Board:
            owner = board.task(task_id).owner
            answered = board.answer_plan(task_id, APPROVED if approve else text)
            words = f"Your plan for task {task_id} is {'approved' if approve else 'not approved'}. {text}".strip()
            return answered.post(seat.name, owner, words, seat.now(), kind="plan_answer", about=task_id)

        await seat.boards.change(step)
        return f"The plan of task {task_id} is {'approved' if approve else 'to be changed'}."

    return answer_plan


def _answer_title(given: Json) -> str:
    return f"plan of task {given['task']}: {'approve' if given['approve'] else 'ask for another'}"


def _shutdown_request(seat: Seat) -> Tool:
    @tool(name="shutdown_request", subject="to", title=lambda given: f"ask {given['to']} to end")
    async def shutdown_request(call: Call, to: str, reason: str = "") -> str:  # noqa: ARG001
        """Ask a teammate to end. It approves, and is gone, or says why it can't yet; the answer is a message to you.

        Args:
            to: its name; * for all.
            reason: why, in a sentence.
        """
        board = await seat.post(to, reason, kind="shutdown_request")
        return f"Asked {', '.join(board.letters[-1].waiting) or 'nobody'} to end; the answers come as messages."

    return shutdown_request


def _propose_plan(seat: Seat) -> Tool:
    @tool(name="propose_plan", title=lambda given: f"plan for task {given['task']}")
    async def propose_plan(call: Call, task: str, plan: str) -> str:  # noqa: ARG001
        """Send the lead your plan for a task that wants one. End your turn then: the answer comes as a message.

        Args:
            task: the number of the task.
            plan: what you will do, step by step, which files it changes, and how you will check it.
        """
        await seat.propose(_id(task), plan, LEAD)
        return f"The plan is with {LEAD}. Change nothing until it is approved; the answer comes as a message."

    return propose_plan


def _answer_shutdown(seat: Seat) -> Tool:
    @tool(name="answer_shutdown", title=lambda given: "agree to end" if given["approve"] else "go on all the same")
    async def answer_shutdown(call: Call, approve: bool, reason: str = "") -> str:  # noqa: ARG001
        """Answer the lead's request to end. Where you approve, you are ended after this turn.

        Args:
            approve: whether you end now. Not while work of yours would be lost.
            reason: why not, or what is left; needed where you do not approve.
        """
        if not approve and not reason.strip():
            raise ToolError("say in reason why you go on")
        await seat.post(LEAD, reason, kind="shutdown_approved" if approve else "shutdown_rejected")
        return (
            "You are ended after this turn: say in a sentence what you leave."
            if approve
            else "The lead is told. Go on."
        )

    return answer_shutdown


def _id(given: str) -> str:
    return given.strip().removeprefix("#")


def _teammate(seat: Seat) -> str:
    return "" if seat.name == LEAD else seat.name


def _only_lead(seat: Seat, deed: str) -> None:
    if seat.name != LEAD:
        raise ToolError(f"only {LEAD} can {deed}: write to {LEAD} (send_message)")
