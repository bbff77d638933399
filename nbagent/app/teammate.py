"""What a teammate does until it is told to go: claim the next free task, plan it where that is wanted, do it, go on.

A cycle over the team's board, with all that it does behind the port `Work`: it must not know of kernels, git or executors,
nor of whom it works for. Every claim has a lease, which is renewed while the teammate works: one that dies gives its task
back by its silence. Read `Teammate.live`, then `Teammate._do`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nbagent.app.teammail import Mail
from nbagent.core.board import APPROVED, LEAD, Board
from nbagent.core.board_values import Letter, Member, MemberState, Task
from nbagent.core.errors import BoardError
from nbagent.core.hooks import Verdict
from nbagent.core.payloads import Payload
from nbagent.core.seat import Seat
from nbagent.core.team_hooks import may_complete, may_idle
from nbagent.prompt import team as words
from nbagent.tools.teamwords import told

REST = 30.0
"""Seconds for which a teammate with nothing to do waits for a change, before it looks again."""
NOT_DONE = "NOT DONE"
"""How the last words of a teammate begin that could not do its task."""
_INSIST = 8
"""How often in a row hooks may send a teammate back to work."""
_ENOUGH = frozenset({"interrupted", "budget"})
"""Ends of a run after which a teammate goes: somebody stopped it, or nothing is left to spend."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a piece of work ended: the last words, why the run ended (`end_turn`, `max_turns` …), a sentence on that."""

    text: str
    reason: str
    sentence: str = ""


class Work(Protocol):
    """What a teammate works with: a session with a kernel, a branch, hooks."""

    async def run(self, prompt: str, *, only_look: bool = False) -> Done:
        """Do what `prompt` says in the teammate's session; `only_look`: change nothing."""
        ...

    def stop(self) -> None:
        """End what runs now."""
        ...

    async def bring_in(self, names: Sequence[str]) -> str:
        """Bring what others have done into this teammate's files; return what to know of it ("" for nothing)."""
        ...

    async def commit(self, message: str) -> str:
        """Keep what was changed; return under what name, "" where nothing was."""
        ...

    async def ask(self, payload: Payload) -> Verdict:
        """Ask the hooks about something that the teammate does outside of a call."""
        ...


class _Leaves(Exception):
    """The teammate goes."""


@dataclass(slots=True)
class Teammate:
    """One teammate of `team`, at its seat. `intro` is told with its first work, `branch` is where that goes.

    `alone`: it begins a task only while nobody else has one in hand: all work in one folder.
    """

    seat: Seat
    work: Work
    team: str = ""
    intro: str = ""
    branch: str = ""
    alone: bool = False
    rest: float = REST
    mail: Mail = field(init=False)
    _told_idle: bool = False
    _insisted: int = 0
    _asked: Letter | None = None
    """A request to go that came while there was something to do."""

    def __post_init__(self) -> None:
        self.mail = Mail(self.seat)

    @property
    def name(self) -> str:
        """The teammate's name."""
        return self.seat.name

    async def live(self) -> str:
        """Work until the lead lets it go, or it can't go on; return why, in a few words. Whatever happens it is gone then."""
        await self.seat.boards.change(self._joined)
        try:
            while True:
                await self._next()
        except _Leaves as leaves:
            return str(leaves)
        finally:
            with contextlib.suppress(BoardError):
                await asyncio.shield(self.seat.now_is("gone"))

    def _joined(self, board: Board) -> Board:
        there = [one for one in board.members if one.name == self.name and one.state != "gone"]
        board = (
            board.now_is(self.name, "gone", self.seat.now()) if there else board
        )  # what it had in hand is free again
        return board.join(Member(self.name, "teammate", "idle", self.branch, self.seat.now()))

    async def _next(self) -> None:
        """Do the next thing that there is to do, or wait for one."""
        if self._asked is not None and not await self._refused(self._asked):
            await self._go(self._asked)
        self._asked = None
        if letters := await self.mail.take():
            await self._read(letters)
        elif task := await self._claim():
            await self._is("working")
            await self._do(task)
        elif not self._told_idle and (held := await may_idle(self.work.ask, self.name, self.team)):
            if held.stop or self._insisted >= _INSIST:
                raise _Leaves(held.stop or "its hooks never let it rest")
            self._insisted += 1
            await self._is("working")
            await self._ran(held.why)
        else:
            self._insisted = 0
            board = await self._is("idle")
            await self.seat.boards.changed(board.version, self.rest)

    async def _claim(self) -> Task | None:
        if not self.alone:
            return await self.seat.claim()

        def step(board: Board) -> Board:
            board = self.seat.boards.free(board)
            if any(one.state == "in_progress" for one in board.tasks):
                return board
            return board.claim(self.name, self.seat.now(), self.seat.lease)

        task = next(iter((await self.seat.boards.change(step)).held(self.name)), None)
        if task is not None:
            self.seat.claims[task.id] = task.claims
        return task

    async def _read(self, letters: Sequence[Letter]) -> None:
        """Do what letters want of a teammate that has no task in hand."""
        asked = next((one for one in letters if one.kind == "shutdown_request"), None)
        if said := told([one for one in letters if one.kind not in {"shutdown_request", "plan_answer"}]):
            await self._is("working")
            done = await self._ran(said)
            if done.reason in _ENOUGH:  # who takes this place next reads them
                raise _Leaves(done.sentence or done.reason)
            if done.reason == "error":
                text = f"Messages could not be read: {done.sentence or done.text}"[:4_000]
                await self.seat.post(LEAD, text, kind="notice")
        await self.seat.delivered(tuple(letters))
        if asked is not None:
            await self._go(asked)

    async def letters(self) -> str:
        """Return what has come in the middle of its work, as its model is told of it; "" for nothing.

        A request to go is told, too: the model may refuse it, else the teammate goes when its task is done.
        """
        letters = await self.mail.take("plan_answer")
        self._asked = next((one for one in letters if one.kind == "shutdown_request"), self._asked)
        return told(letters)

    async def _refused(self, asked: Letter) -> bool:
        own = [one for one in (await self.seat.boards.read()).letters if one.sender == self.name]
        return any(one.kind == "shutdown_rejected" and int(one.id) > int(asked.id) for one in own)

    async def _go(self, asked: Letter) -> None:
        await self.seat.delivered((asked,))
        await self.seat.post(asked.sender, "I go.", kind="shutdown_approved")
        raise _Leaves(f"{asked.sender} let it go")

    # ── a task ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _do(self, task: Task) -> None:
        """Do a task that was claimed, to its result; it goes to the lead where it could not be done."""
        lost = asyncio.Event()

        def taken(_: str) -> None:
            lost.set()
            self.work.stop()

        async with self.seat.alive(taken):
            done = await self._planned(task, lost) or await self._worked(task)
            if not lost.is_set():
                done = await self._checked(task, done)
            if not lost.is_set():
                await self._reported(task, done)
        if not lost.is_set() and done.reason in _ENOUGH:
            raise _Leaves(done.sentence or done.reason)

    async def _worked(self, task: Task) -> Done:
        board = await self.seat.boards.read()
        owners = [board.task(need).owner for need in task.needs]
        others = [name for name in dict.fromkeys(owners) if name not in {"", self.name, LEAD}]
        news = await self.work.bring_in(others) if others else ""
        results = [
            f"Task {need.id} ({need.title}) gave: {need.result}" for need in map(board.task, task.needs) if need.result
        ]
        plan = board.task(task.id).plan if task.wants_plan else ""
        done = await self._ran(words.task(task.id, task.title, task.description, plan=plan, more=[*results, news]))
        await self._commit(task, done)
        return done

    async def _commit(self, task: Task, done: Done) -> None:
        unfinished = "" if _is_done(done) else "Unfinished: "
        await self.work.commit(f"{unfinished}{task.title} (task {task.id})")

    async def _checked(self, task: Task, done: Done) -> Done:
        """Ask the hooks about a finished task; do what they want until they agree."""
        for _ in range(_INSIST):
            if not _is_done(done) or await self._is_completed(task):
                return done
            held = await may_complete(self.work.ask, task, self.name)
            if not held:
                return done
            if held.stop:
                return Done(held.stop, "hook")
            done = await self._ran(held.why)
            await self._commit(task, done)
        return Done("A hook did not let this task be completed.", "hook")

    async def _is_completed(self, task: Task) -> bool:
        """Whether the teammate's model has marked the task as completed itself."""
        return (await self.seat.boards.read()).task(task.id).state == "completed"

    async def _reported(self, task: Task, done: Done) -> None:
        """Write down what came of a task: its result, or that the lead must see to it."""
        with contextlib.suppress(BoardError):  # the claim was lost in this moment: it is another's now
            if _is_done(done):
                if not await self._is_completed(task):
                    await self.seat.complete(task.id, done.text)
                return
            now, claim = self.seat.now(), self.seat.claim_of(task.id)
            why = " ".join(filter(None, (done.text.strip(), done.sentence))) or done.reason
            text = f"Task {task.id} is not done ({done.reason}) and is yours now. {why}"[:4_000]

            def given_up(board: Board) -> Board:
                board = board.release(task.id, self.name, claim, now).assign(task.id, LEAD, now)
                return board.post(self.name, LEAD, text, now, kind="notice", about=task.id)

            await self.seat.boards.change(given_up)
            self.seat.claims.pop(task.id, None)

    async def _planned(self, task: Task, lost: asyncio.Event) -> Done | None:
        """Plan until the plan is approved, then return None; else how it ended."""
        said = ""
        while task.wants_plan and said != APPROVED:
            done = await self._ran(words.planning(task.id, task.title, task.description, said), only_look=True)
            if lost.is_set() or not _is_done(done):
                return done
            board = await self.seat.boards.read()
            if (there := board.task(task.id)).plan and not there.plan_answer:
                pass  # its model has put the plan up itself
            else:
                board = await self.seat.propose(task.id, done.text, LEAD)
            while not (said := board.task(task.id).plan_answer):
                board = await self.seat.boards.changed(board.version, self.rest)
                if lost.is_set() or any(one.kind == "shutdown_request" for one in board.letters_for(self.name)):
                    return Done("The plan was not answered.", "shutdown")
        return None

    async def _ran(self, prompt: str, *, only_look: bool = False) -> Done:
        intro, self.intro = self.intro, ""
        done = await self.work.run("\n\n".join(part for part in (intro, prompt) if part), only_look=only_look)
        if done.reason == "end_turn":
            await self.mail.kept()
        else:  # a call that was cut off may have had a letter in its result
            self.mail.dropped()
        return done

    async def _is(self, state: MemberState) -> Board:
        """Say what this teammate does; the lead hears of it the first time that it has nothing to do."""
        tell, self._told_idle = state == "idle" and not self._told_idle, state == "idle"

        def step(board: Board) -> Board:
            board = board.now_is(self.name, state, self.seat.now())
            return board.post(self.name, LEAD, "I have nothing to do.", self.seat.now(), kind="idle") if tell else board

        return await self.seat.boards.change(step)


def _is_done(done: Done) -> bool:
    return done.reason == "end_turn" and not done.text.lstrip("*# ").startswith(NOT_DONE)
