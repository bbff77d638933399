"""A teammate in its worker: the role of its job. Its work is done by runs in the worker's kernel, in a copy of the project.

The cycle is `teammate.Teammate`; here is what it works with. Read `work`, then `CellWork.run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.answer import RunFailed
from nbagent.app.cell import run_agent_cell
from nbagent.app.jobs import Ended, Job, Outcome
from nbagent.app.teammail import delivering
from nbagent.app.teammate import NOT_DONE, Done, Teammate
from nbagent.app.teampulse import Pulse
from nbagent.app.teamtools import with_mail
from nbagent.core.board import LEAD
from nbagent.core.errors import NbagentError
from nbagent.core.events import Event, RunEnded
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Json
from nbagent.core.payloads import Payload, Where
from nbagent.core.run import Agent
from nbagent.core.seat import Seat
from nbagent.core.session import Session
from nbagent.core.tools import Tool, Toolset
from nbagent.extend.boards import Boards
from nbagent.extend.merging import Conflicted
from nbagent.extend.worktrees import Worktree, Worktrees
from nbagent.prompt import team as words
from nbagent.tools import team as team_tools

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.app.starts import Ground
    from nbagent.config import Settings

ROLE = "nbagent.app.teamwork:work"
"""The role of a teammate's job."""


async def work(extension: Extension, job: Job) -> Outcome:
    """Be the teammate that `job.about` describes, until the lead lets it go; return what it took."""
    about = dict(job.about)
    name, team, root = str(about["name"]), str(about["team"]), Path(str(about["root"]))
    boards = await Boards.open(root, team)
    seat = Seat(boards, name, lease=float(about.get("lease", 60.0)))
    trees = Worktrees(root, team) if about.get("worktrees") else None
    mine = await trees.add(name) if trees is not None else None
    others = [one for one in about["names"] if one != name]
    intro = words.teammate(name, team, others, root=str(root), worktrees=trees is not None)
    cell = CellWork(extension, str(about.get("line", "")), trees, mine)
    teammate = Teammate(seat, cell, team, intro, mine.branch if mine is not None else "", alone=trees is None)
    cell.company = TeammateCompany(seat, teammate.letters, cell.keep, teammate.mail.kept)
    status: Ended = "done"
    with Pulse(lambda: Boards.open(root, team), seat):
        try:
            why = await teammate.live()
        except asyncio.CancelledError:  # the job was stopped while it waited for something to do
            status, why = "stopped", "It was stopped."
    last = extension.last
    ended = cell.company.ended
    session = str(last.store.path) if last is not None else ""
    spent = last.session if last is not None else None
    return Outcome(
        job.id, status, why, str(ended.reason) if ended is not None else "end_turn", cell.turns,
        usage=spent.usage if spent is not None else Outcome(job.id, "done").usage,
        cost=spent.cost if spent is not None else 0.0, session=session,
    )  # fmt: skip


class TeammateCompany:
    """What a teammate's runs have because it works in a team: the team's tools, and letters with the results of calls."""

    def __init__(
        self, seat: Seat, letters: Callable[[], Any], keep: Callable[[], Any], kept: Callable[[], Awaitable[None]]
    ) -> None:
        self._seat, self._letters, self._keep, self._kept = seat, letters, keep, kept
        self.ended: RunEnded | None = None
        """How the last run ended."""

    async def ground(self, extension: Extension, place: Place, settings: Settings) -> Ground | None:  # noqa: ARG002
        """Return None: a teammate's conversation is that of its kernel."""
        return None

    def tools(self) -> Sequence[Tool]:
        """Return the tools of a teammate."""
        return team_tools.teammate_tools(self._seat)

    def joined(self, agent: Agent, show: Callable[[Event], None], session: Session) -> Agent:  # noqa: ARG002
        """Return the agent with letters; what it has changed is kept before it says that a task is completed."""
        first = {"task_update": self._keep}
        tools = [with_mail(tool, self._letters, first.get(tool.name)) for tool in agent.tools.values()]
        return replace(agent, tools=Toolset(tools))

    async def events(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Note how the run ends, and that letters stand in the conversation as soon as they do."""
        self.ended = None
        async with aclosing(delivering(events, self._kept)) as told:
            async for event in told:
                self.ended = event if isinstance(event, RunEnded) else None
                yield event


class CellWork:
    """The port `teammate.Work`, by runs of the worker's kernel. `line` are the options of each run."""

    company: TeammateCompany

    def __init__(self, extension: Extension, line: str, trees: Worktrees | None, mine: Worktree | None) -> None:
        self._extension, self._line, self._trees, self._mine = extension, line, trees, mine
        self._committing = asyncio.Lock()
        self.turns = 0

    async def run(self, prompt: str, *, only_look: bool = False) -> Done:
        """Do what `prompt` says, in the conversation of this kernel."""
        line = f"{self._line} --mode=read-only" if only_look else self._line
        problem = ""
        try:
            await run_agent_cell(self._extension, line.strip(), prompt, company=self.company)
        except RunFailed as error:
            problem = str(error)
        except NbagentError as error:  # what a person would have to change: the lead is told
            return Done(f"{NOT_DONE}: {error}", "error", str(error))
        ended = self.company.ended
        if ended is None:
            return Done("", "interrupted", problem)
        self.turns += ended.turns
        return Done(ended.text, str(ended.reason), "" if ended.reason == "end_turn" else ended.sentence)

    def stop(self) -> None:
        """End the run that goes on."""
        if (stop := self._extension.stop) is not None:
            stop.now()

    async def bring_in(self, names: Sequence[str]) -> str:
        """Merge what teammates have committed into this one's copy; what conflicts is told, and left out."""
        if self._trees is None or self._mine is None:
            return ""
        said: list[str] = []
        for name in names:
            outcome = await self._trees.take(self._mine, name)
            if isinstance(outcome, Conflicted):
                said.append(f"The work of {name}, on which this builds, is not in your files: it conflicts with yours.")
        return " ".join(said)

    async def commit(self, message: str) -> str:
        """Commit what changed in this teammate's copy."""
        if self._trees is None or self._mine is None:
            return ""
        async with self._committing:
            return await self._trees.commit(self._mine, message)

    async def keep(self) -> None:
        """Commit before something else is said of the work."""
        await self.commit("Work in progress")

    async def ask(self, payload: Payload) -> Verdict:
        """Ask the hooks of this kernel's session, and those of settings."""
        last = self._extension.last
        table = self._extension.hooks.table(last.session.id) if last is not None else None
        if table is None or last is None or not table.listens(payload.event):
            return Verdict()
        where = Where(session_id=last.session.id, transcript_path=str(last.store.path), cwd=str(self._extension.folder))
        return await table.fire(payload, where, lambda _: None)


def job_of(
    name: str, number: int, *, team: str, names: Sequence[str], goal: str, root: Path, folder: Path, notebook: str,
    line: str, granted: Json, worktrees: bool, asks: bool, lease: float = 60.0,
) -> Job:  # fmt: skip
    """Return the job of a teammate; `folder` is where it works, `root` the person's own."""
    about: Json = {
        "name": name, "team": team, "names": list(names), "root": str(root), "worktrees": worktrees, "line": line,
        "lease": lease, "lead": LEAD,
    }  # fmt: skip
    return Job(f"{team}-{name}-{number}", goal, str(folder), notebook, granted=granted, name=name, role=ROLE, about=about,
               asks=asks)  # fmt: skip
