"""Teams: `nbagent.Team` and what `%agent team` begins. A lead in this cell, teammates in workers, the board in the repository.

Here a team is put together and its end summed up: `teamlead` is the lead's side, `teamcrew` gives the work out, `teamwork` and
`teammate` are a teammate's side, `teamplan` what is written down. Read `Team.run`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.answer import Answer
from nbagent.app.options import parse
from nbagent.app.teamafter import Keep, accept, discard, held, tidied
from nbagent.app.teamlead import Lead
from nbagent.app.teamplan import TeamFile, TeamPlan
from nbagent.app.teamtools import Desk, both_sides
from nbagent.config import is_wider
from nbagent.core.board import LEAD, Board
from nbagent.core.board_values import Member, Task
from nbagent.core.errors import ConfigError
from nbagent.core.files import private_folder
from nbagent.core.messages import Json, Usage
from nbagent.core.payloads import HookEvent
from nbagent.core.policy import Mode
from nbagent.core.ports import text_hash
from nbagent.core.rules import Rule
from nbagent.core.run import Agent
from nbagent.core.seat import LEASE, Seat
from nbagent.extend.boards import Boards
from nbagent.extend.hooks_settings import Hook
from nbagent.extend.sessions import FOLDER as SESSIONS
from nbagent.extend.worktrees import Worktree, Worktrees
from nbagent.prompt import team as words

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.teamcrew import Crew
    from nbagent.core.ports import Notebook

BY_AGENT = (
    "An agent's own code can't begin a team, nor accept or discard what one did. Run that cell yourself, afterwards."
)
NO_NESTED = "A teammate can't begin a team of its own: put tasks on the list of its team."


@dataclass(frozen=True, slots=True)
class TeamAnswer:
    """What a team gave.

    `text` are the lead's last words, `stop_reason` why its run ended, `tasks` the board's at the end. `merged` are the files
    that each teammate's merge brought, `conflicts` both sides of what was not merged, by teammate. `accepted` says whether
    the person's files have it. `usage` and `cost` (US dollars, None where a price is unknown) are of the lead and of all.
    """

    team: str
    text: str
    stop_reason: str
    tasks: tuple[Task, ...]
    merged: Mapping[str, tuple[str, ...]]
    conflicts: Mapping[str, str]
    accepted: bool
    usage: Usage
    cost: float | None
    session_id: str

    def __str__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        """Show nothing: the cell's output is the record of the lead's run."""


class Team:
    """A team of agents: a lead, which is the agent of the cell that runs it, and teammates that work side by side.

    Args:
        goal: What the team should reach.
        workers: How many teammates.
        names: What they are called; as many as workers.
        model: The lead's model, and the others' where `teammate_model` names none; "" for that of the settings.
        teammate_model: The teammates' model.
        executor: Any `concurrent.futures.Executor` with a place for each teammate (Dask's `client.get_executor()`,
            ipyparallel's `view.executor`) whose workers see this folder; None: processes on this machine.
        budget: US dollars of lead and teammates together.
        plan_first: Each task is planned, and the lead approves the plan, before it is done.
        worktrees: Each teammate works on a copy of the git repository. False: in the folder itself, one task at a time.
        uncommitted: The copies have the files as they are; False: as they were committed last.
        options: More options of the lead's `%%agent` line, as written.
        host: The address on which workers reach this kernel; this machine only unless you name another.
    """

    def __init__(
        self, goal: str, workers: int = 0, *, names: Sequence[str] = (), model: str = "", teammate_model: str = "",
        executor: Executor | None = None, budget: float | None = None, plan_first: bool = False, worktrees: bool = True,
        uncommitted: bool = True, options: str = "", host: str = "127.0.0.1",
    ) -> None:  # fmt: skip
        given = [f"--model={model}" if model else "", f"--budget={budget}" if budget is not None else "", options]
        line = " ".join(part for part in given if part)
        parse(line)  # which says what is wrong with it
        self.plan = TeamPlan.of(
            goal, workers or len(names) or 3, names, options=line, teammate_model=teammate_model or model,
            plan_first=plan_first, worktrees=worktrees, uncommitted=uncommitted,
        )  # fmt: skip
        self._executor, self._host = executor, host
        self.begun = asyncio.Event()
        """Set where the lead goes on in the background."""

    @property
    def name(self) -> str:
        """The team's name: part of its branches `nbagent/NAME/…`."""
        return self.plan.team

    @property
    def in_background(self) -> bool:
        """Whether the lead goes on in the background while the cell is done."""
        return bool(parse(self.plan.options)[0].get("background"))

    async def run(self) -> TeamAnswer:
        """Work towards the goal and return what came of it.

        Raises `ConfigError` for what must be changed first (no git repository, say), `RunFailed` where the lead's run could
        not finish.
        """
        return await self.run_in(_current())

    async def run_in(self, extension: Extension) -> TeamAnswer:
        """As `run`, in the kernel of `extension`."""
        from nbagent.app.cell import RUNNING

        if extension.host is not None:
            raise ConfigError(NO_NESTED)
        if extension.stop is not None:  # before copies are made, and this one counts as the last
            raise ConfigError(RUNNING)
        with held(extension, self.name):
            return await self._run(extension)

    async def _run(self, extension: Extension) -> TeamAnswer:
        from nbagent.app.cell import agent_cell

        folder, plan = extension.folder, self.plan
        trees = Worktrees(folder, plan.team) if plan.worktrees else None
        places, note = await _copies(trees, plan)
        boards = await Boards.open(folder, plan.team)
        seat = Seat(boards, LEAD)
        await boards.change(lambda board: _begun(board, plan, places, seat.now()))
        lead = Lead(plan, Desk(seat, trees, _Later()), trees, lambda agent, lead: self._crew(extension, agent, lead, places),
                    note=note)  # fmt: skip
        kept = TeamFile(plan)
        kept.write(folder)

        async def told(_: Notebook | None, goal: str) -> tuple[str, str]:
            return goal, words.lead(plan.team, plan.names, worktrees=plan.worktrees, plan_first=plan.plan_first)

        answer: Answer | None = None
        try:
            made = await agent_cell(extension, plan.options, plan.goal, told, company=lead)
            self.begun.set()
            answer = made if isinstance(made, Answer) else await made
        finally:
            await boards.change(lambda board: board.now_is(LEAD, "gone", seat.now()))
            if lead.crew is None:  # the run did not begin: the last team is the one before
                kept.forget(folder)
                if trees is not None:
                    await trees.discard()
            else:
                kept = _ended(kept, lead, answer, folder)
                kept = await tidied(trees, kept) if trees is not None and not kept.accepted else kept
                kept.write(folder)
        assert answer is not None  # else it was raised
        extension.errands.append(_heard(plan, answer.text, lead.accepted))
        return _answer(kept, answer, await boards.read())

    async def accept(self, keep: Keep = "") -> str:
        """Put what the team merged into the person's files, and return what they got. Raises `GitError` with the reason.

        `keep`: whose side counts where both changed the same place, "mine" or "team" ("": then nothing is changed).
        """
        return await accept(_current(), self.name, keep)

    async def discard(self) -> str:
        """Throw away all that the team did and that was not accepted."""
        return await discard(_current(), self.name)

    def _crew(self, extension: Extension, agent: Agent, lead: Lead, places: Mapping[str, Worktree]) -> Crew:
        from nbagent.app.teamcrew import Crew
        from nbagent.app.teamwork import job_of

        plan, folder = self.plan, extension.folder
        notebook = agent.notebook()

        def make(name: str, number: int) -> Any:
            place = places[name].folder if name in places else folder
            copy = place / notebook if notebook and not Path(notebook).is_absolute() else None
            granted = _granted(extension, agent, plan, place)
            return job_of(
                name, number, team=plan.team, names=plan.names, goal=plan.goal, root=folder, folder=place,
                notebook=str(copy) if copy is not None and name in places and copy.is_file() else "",
                line="", granted=granted, worktrees=plan.worktrees, asks=agent.approver.present, lease=LEASE,
            )  # fmt: skip

        crew = Crew(make, lead.desk.seat, limits=agent.limits, ask=lead.ask, question=lead.question,
                    executor=self._executor, workers=len(plan.names), host=self._host)  # fmt: skip
        lead.desk.others = crew
        return crew


class _Later:
    """Stands in for the teammates until the lead's run has begun."""

    def start(self, name: str) -> None:
        """Pass it over."""


def _current() -> Extension:
    from IPython.core.getipython import get_ipython

    from nbagent.app.extension import current

    extension = current(get_ipython())
    if extension.agents_code:
        raise ConfigError(BY_AGENT)
    return extension


async def _copies(trees: Worktrees | None, plan: TeamPlan) -> tuple[dict[str, Worktree], str]:
    """Make the copies of the repository; return them by name, and what the person should know of where they start."""
    if trees is None:
        return {}, "Works in your folder itself, one task at a time: what is changed there is changed at once."
    start = await trees.begin(uncommitted=plan.uncommitted)
    made = {name: await trees.add(name) for name in plan.names}
    await trees.lead()
    return made, " ".join(start.notes)


def _begun(board: Board, plan: TeamPlan, places: Mapping[str, Worktree], now: float) -> Board:
    """Return the board with the team on it: tasks can be given to a teammate before its process is there."""
    board = replace(board, goal=plan.goal).join(Member(LEAD, "lead", "working", since=now))
    for name in plan.names:
        branch = places[name].branch if name in places else ""
        board = board.join(Member(name, "teammate", "idle", branch, now))
    return board


# ── what a teammate may do ───────────────────────────────────────────────────────────────────────────────────────────


def _granted(extension: Extension, agent: Agent, plan: TeamPlan, place: Path) -> Json:
    """Return the settings of a teammate: the lead's mode and rules, and what the person keeps from models.

    A mode in which the lead only plans is one in which teammates only look. Rules of files are read by a teammate itself,
    those that allow only if its copy is trusted; what forbids or asks goes along in any case.
    """
    settings, rules = extension.settings(), tuple(getattr(agent.gate, "rules", ()))
    stays = _has_hooks_that_stay(agent)
    texts: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for rule in rules:
        if rule.action == "allow" and (rule.source.file or stays):
            continue
        texts[rule.action] += _texts(rule, extension.folder, place)
    mode = Mode.DEFAULT if stays and is_wider(agent.gate.mode, Mode.DEFAULT) else agent.gate.mode
    lists = {"hide": settings.hide, "schema_only": settings.schema_only, "secrets": settings.secrets}
    return {
        "mode": str(Mode.READ_ONLY if mode is Mode.PLAN else mode),
        "model": plan.teammate_model or str(parse(plan.options)[0].get("model") or settings.model),
        "base_url": settings.base_url,
        **{name: list(dict.fromkeys(found)) for name, found in {**texts, **lists}.items() if found},
    }


def _has_hooks_that_stay(agent: Agent) -> bool:
    """Whether hooks before calls hold for the lead that can't go along: those of cells, and of a project's files."""
    before = {HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_REQUEST}
    found: tuple[Hook, ...] = getattr(agent.hooks, "hooks", ())
    return any(
        one.event in before and (one.type == "python" or one.source.scope in {"project", "local"}) for one in found
    )


def _texts(rule: Rule, folder: Path, place: Path) -> list[str]:
    """Return a rule as it is written down, and, where it names a place in the person's folder, that place in a copy."""
    if rule.pattern is not None and "\n" in rule.pattern:
        return [f"{rule.tool}(sha256:{text_hash(rule.pattern)})"]
    text, home = str(rule), str(folder)
    return [text, text.replace(home, str(place))] if rule.action != "allow" and home in text else [text]


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ended(kept: TeamFile, lead: Lead, answer: Answer | None, folder: Path) -> TeamFile:
    """Return what is kept of a team that has ended; the sessions of teammates come out of their copies."""
    desk = lead.desk
    crew = lead.crew
    sessions = {
        name: _session(folder, kept.plan.team, name, outcome.session)
        for name, outcome in (crew.outcomes if crew else {}).items()
    }
    return kept.but(
        ended=desk.seat.now(),
        text=answer.text if answer is not None else "",
        merged={name: list(one.files) for name, one in desk.merged.items()},
        conflicts={name: "\n\n".join(both_sides(file, name) for file in one.files) for name, one in desk.conflicts.items()},
        accepted=bool(lead.accepted),
        sessions={name: path for name, path in sessions.items() if path} | ({LEAD: answer.session_id} if answer else {}),
    )  # fmt: skip


def _session(folder: Path, team: str, name: str, path: str) -> str:
    """Copy a teammate's conversation out of its copy of the repository, which goes; return where it is.

    A worker says where it is, and may be somebody else's: only a file of the teammate's copy, or a session of this folder,
    is taken.
    """
    import shutil

    from nbagent.app.teamplan import FOLDER

    place, real = folder / FOLDER / team / f"{name}.jsonl", Path(os.path.realpath(path))
    copies = [
        above / ".nbagent" / "worktrees" / team / name for above in (folder, *folder.parents)
    ]  # they lie at the top
    homes = {Path(os.path.realpath(home)) for home in (*copies, folder / SESSIONS)}
    if not path or homes.isdisjoint(real.parents) or real.suffix != ".jsonl":
        return ""
    try:
        private_folder(place.parent)
        place.unlink(missing_ok=True)  # which may be a link
        shutil.copyfile(real, place)
    except OSError:
        return ""
    return str(place)


def _heard(plan: TeamPlan, text: str, accepted: str) -> str:
    """Return what the notebook's conversation is told of a team with its next prompt."""
    files = accepted or "The person has not taken what was merged into their files."
    return (
        f"The person ran a team (`%agent team`) with the goal: {plan.goal}\nIts lead answered:\n{text[:4000]}\n{files}"
    )


def _answer(kept: TeamFile, answer: Answer, board: Board) -> TeamAnswer:
    merged = {name: tuple(files) for name, files in kept.merged.items()}
    return TeamAnswer(kept.plan.team, answer.text, answer.stop_reason, board.tasks, merged, dict(kept.conflicts),
                      kept.accepted, answer.usage, answer.cost, answer.session_id)  # fmt: skip
