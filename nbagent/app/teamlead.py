"""A team's lead: what the run of its cell has because it leads others, and what comes before its end.

The lead's rules bound everyone's; what teammates ask comes to the person here; what they spend counts in this run; and
before the run ends the person is asked whether what was merged goes into their files. Must not know how a teammate works.
Read `Lead.events`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from nbagent.app.forks import Making
from nbagent.app.starts import Ground, own_point
from nbagent.app.teamlanes import Lanes
from nbagent.app.teammail import delivering
from nbagent.app.teammeter import LeadMeter, less
from nbagent.app.teamtools import Desk, both_sides, conflict_words, in_order, lead_tools, with_mail
from nbagent.core.board import Board
from nbagent.core.board_changes import changes
from nbagent.core.errors import ConfigError, NbagentError, ToolError
from nbagent.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallEnded,
    CallStarted,
    Event,
    Noted,
    Reason,
    RunEnded,
    State,
    Status,
    TeamChanged,
)
from nbagent.core.messages import Json, text_block
from nbagent.core.policy import Gate
from nbagent.core.ports import Answered, Approval, Approver, Notebook, Preview, Question
from nbagent.core.questions import put
from nbagent.core.run import Agent, Run
from nbagent.core.session import Session
from nbagent.core.tools import Call, Tool, Toolset
from nbagent.extend.accepting import Notebooks
from nbagent.extend.git import GitError
from nbagent.extend.worktrees import Worktrees
from nbagent.headless.admission import Spending
from nbagent.jupyter.approval import NOBODY_WORDS
from nbagent.models.metered import MeteredModel
from nbagent.tools import team as team_tools

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.app.teamcrew import Crew
    from nbagent.app.teamplan import TeamPlan
    from nbagent.config import Settings

E = TypeVar("E", bound=Event)

A_SECOND = 5
"""Pictures of the board a second at most."""
_SHOWN = 60_000


@dataclass(slots=True)
class _Open:
    """The run of the lead while it goes on."""

    agent: Agent
    show: Callable[[Event], None]
    session: Session
    run: Run | None = None
    turn: int = 0


class Lead:
    """The company of the lead's run. `crew` makes the crew once the run's limits, gate and approver are known."""

    def __init__(
        self,
        plan: TeamPlan,
        desk: Desk,
        trees: Worktrees | None,
        crew: Callable[[Agent, Lead], Crew],
        *,
        note: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan, self.desk, self.trees, self._note = plan, desk, trees, note
        self._make_crew, self._clock, self._began = crew, clock, clock()
        self._open: _Open | None = None
        self._meter = LeadMeter()
        self._lanes = Lanes()
        self._counted = Spending()
        self._extension: Extension | None = None
        self._notebook: Notebook | None = None
        self.crew: Crew | None = None
        self.accepted = ""
        """What the person's files got, in a sentence; "" while they got nothing."""

    # ── company ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def ground(self, extension: Extension, place: Place, settings: Settings) -> Ground | None:
        """Return a branch of the notebook's conversation: the lead has tools that cells don't have."""
        self._extension = extension
        self._notebook = place.notebook
        try:
            past = await own_point(extension, place)
        except ConfigError:
            past = None
        making = Making(beside=True, title=f"team {self.plan.team}")
        return Ground(
            f"team {self.plan.team}", settings, new=past is None, branch=past, making=making, note=self._note, own=False
        )

    def tools(self) -> Sequence[Tool]:
        """Return the tools of a lead."""
        made = in_order([*team_tools.lead_tools(self.desk.seat), *lead_tools(self.desk)])
        return [_planned_first(one) if self.plan.plan_first and one.name == "task_create" else one for one in made]

    def joined(self, agent: Agent, show: Callable[[Event], None], session: Session) -> Agent:
        """Return the agent whose calls bring letters, too, and whose run counts what the others spend."""
        tools = [
            one if one.name == "wait_for_team" else with_mail(one, self.desk.letters) for one in agent.tools.values()
        ]
        metered = MeteredModel(agent.model, self._meter)
        agent = replace(agent, model=metered, tools=Toolset(tools), should_continue=self._turned)
        self._open = _Open(agent, show, session)
        self.crew = self._make_crew(agent, self)
        return agent

    async def events(self, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
        """Have the teammates work while the lead's run goes on; before its last event, what has to be said and asked."""
        assert self.crew is not None
        assert self._open is not None
        self.crew.open()
        self._meter.open(self.crew.hub)
        watching = asyncio.create_task(self._watch())
        try:
            self._all_started(self.crew)
            async with aclosing(delivering(events, self.desk.mail.kept)) as told:
                async for event in told:
                    self._open.turn = event.turn
                    if not isinstance(event, RunEnded):
                        yield event
                        continue
                    await self._meter.close()
                    await self.crew.close()
                    self._picture(await self.desk.seat.boards.read(), Board())
                    async with aclosing(self._finishing(event)) as more:
                        async for one in more:
                            yield one
                    yield self._with_all_costs(event)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._meter.close()
            await self.crew.close()
            if isinstance(self._open.agent.model, MeteredModel):
                await self._open.agent.model.aclose()

    def _all_started(self, crew: Crew) -> None:
        """Start all teammates; raises `ConfigError` where the person's executor takes none."""
        try:
            for name in self.plan.names:
                crew.start(name)
        except ToolError as error:
            raise ConfigError(f"The team could not begin: {error}.") from error

    # ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────────

    def _turned(self, run: Run) -> str | None:
        """Count what the teammates have spent since the last turn, in the lead's run."""
        assert self._open is not None
        self._open.run = run
        self._count(run)
        return run.spent_up() or None

    def _count(self, run: Run) -> None:
        others = self._meter.others()
        new = less(others, self._counted)
        run.count(new.usage, new.cost)
        self._counted = others

    def _with_all_costs(self, event: RunEnded) -> RunEnded:
        run = self._open.run if self._open is not None else None
        if run is None:
            return event
        self._count(run)
        return replace(event, usage=run.usage, cost=run.cost)

    # ── what people see ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        """Show the board whenever it changes, and free what a dead teammate had."""
        boards, known = self.desk.seat.boards, Board()
        lease = 60.0
        while True:
            try:
                board = await boards.changed(known.version, lease / 4)
                if boards.free(board) != board:
                    board = await boards.change(boards.free)
            except NbagentError:  # it can't be reached for a moment: the watching must not end with that
                await asyncio.sleep(1 / A_SECOND)
                continue
            if board.version != known.version:
                self._picture(board, known)
                known = board
                await asyncio.sleep(1 / A_SECOND)

    def _picture(self, board: Board, before: Board) -> None:
        seconds = self._clock() - self._began
        self._lanes = self._lanes.after(board, seconds)
        new = changes(before, board) if before.version else ()
        shown: Json = board.to_json()
        if self._extension is not None:
            shown = self._extension.privacy.vault.masked((shown,))[0]
        self._say(TeamChanged, team=self.plan.team, board=shown, lanes=self._lanes.to_json(), seconds=round(seconds, 1),
                  note=new[-1].text if new else "")  # fmt: skip

    def event(self, kind: type[E], /, **fields: Any) -> E:
        """Make an event of the lead's run."""
        turn = self._open.turn if self._open is not None else 0
        return kind(state=State.ACT, turn=turn, at=round(self._clock() - self._began, 4), **fields)

    def _say(self, kind: type[Event], /, **fields: Any) -> None:
        self.report(self.event(kind, **fields))

    def report(self, event: Event) -> None:
        """Show an event that the loop itself does not report, and keep it in the log."""
        if self._open is not None:
            self._open.session.newest.log(event)
            self._open.show(event)

    # ── what teammates ask ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def approver(self) -> Approver | None:
        """Who answers for the team."""
        return self._open.agent.approver if self._open is not None else None

    @property
    def gate(self) -> Gate | None:
        """What is allowed to the lead, and so to everyone."""
        return self._open.agent.gate if self._open is not None else None

    async def ask(self, name: str, asked: Json) -> Answered:
        """Put a teammate's approval to the person, under its name; nobody there: deny."""
        approver = self.approver
        if approver is None or not approver.present:
            return Answered(False, words=NOBODY_WORDS, by="nobody there")
        approval = _approval(name, asked)
        self._say(ApprovalAsked, call_id=approval.call_id, approval=approval.to_json())
        began, answered = self._clock(), Answered(False, by="gone")
        try:
            answered = await approver.ask(approval)
        finally:  # also where the teammate is gone: the card must not stay
            self._say(ApprovalAnswered, call_id=approval.call_id, approved=answered.approved, words=answered.words,
                      rule=answered.rule, by=answered.by, edited=answered.edited is not None)  # fmt: skip
            word = "approved" if answered.approved else "denied"
            status = Status.OK if answered.approved else Status.DENIED
            self._say(CallEnded, call_id=approval.call_id, name=approval.tool, status=status, content=(),
                      seconds=round(self._clock() - began, 3), summary=f"{name}: {word}")  # fmt: skip
        return answered

    async def question(self, name: str, asked: Json) -> str:
        """Put a teammate's question to the person; nobody there: ""."""
        approver = self.approver
        if approver is None:
            return ""
        choices, details, previews = (tuple(asked.get(key) or ()) for key in ("choices", "details", "previews"))
        question = Question(f"{name}-{asked['id']}", f"{name} asks: {asked['text']}", header=str(asked.get("header", "")),
                            many=bool(asked.get("many")), choices=choices, details=details, previews=previews)  # fmt: skip
        return await put(question, approver, self.event, self.report)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _finishing(self, ended: RunEnded) -> AsyncGenerator[Event]:
        """Say what is not merged, and ask whether what is goes into the person's files."""
        for name, conflict in self.desk.conflicts.items():
            sides = "\n\n".join(both_sides(file, name) for file in conflict.files)[:_SHOWN]
            said = f"not merged: {conflict_words(conflict)}"
            about: Json = {"call_id": f"conflict-{self.plan.team}-{name}", "name": "read_conflict"}
            yield self.event(
                CallStarted, **about, input={"teammate": name}, title=f"the work of {name} is {said}", preview={}
            )
            yield self.event(CallEnded, **about, status=Status.OK, content=(text_block(sides),), seconds=0.0,
                             summary=f"{name}: {said}; both sides below")  # fmt: skip
        if self.trees is None or ended.reason in {Reason.INTERRUPTED, Reason.TIMEOUT, Reason.CELL_GONE}:
            return
        changed = await self.trees.differs()
        later = f"%agent team accept {self.plan.team}"
        if not changed:
            yield self.event(Noted, text="Nothing was merged, so there is nothing to accept.", level="info")
            return
        approver = self.approver
        if approver is None or not approver.present:
            yield self.event(Noted, text=f"Your files are as they were. To take what was merged: {later}", level="info")
            return
        async with aclosing(self._accepting(approver, [one.path for one in changed], later)) as events:
            async for event in events:
                yield event

    async def _accepting(self, approver: Approver, files: list[str], later: str) -> AsyncGenerator[Event]:
        assert self.trees is not None
        call_id, began = f"accept-{self.plan.team}", self._clock()
        count = f"{len(files)} file{'s' * (len(files) != 1)}"
        title = f"put the team's work into your files: {count}"
        patch = await self.trees.patch(largest=_SHOWN)
        approval = Approval(call_id, "accept_team", title, {"team": self.plan.team, "files": files},
                            Preview("code", patch, language="diff"), "your files change only with your yes", ())  # fmt: skip
        yield self.event(ApprovalAsked, call_id=call_id, approval=approval.to_json())
        answered = await approver.ask(approval)
        yield self.event(ApprovalAnswered, call_id=call_id, approved=answered.approved, words=answered.words,
                         by=answered.by)  # fmt: skip
        status, text = Status.DENIED, f"Your files are as they were. To take it later: {later}"
        if answered.approved:
            try:
                self.accepted = (await self.trees.accept(self._notebooks())).sentence
                status, text = Status.OK, self.accepted
            except GitError as error:
                status, text = Status.ERROR, f"{error} Your files are as they were. Then: {later}"
        yield self.event(CallEnded, call_id=call_id, name="accept_team", status=status, content=(text_block(text),),
                         seconds=round(self._clock() - began, 3), summary=text)  # fmt: skip

    def _notebooks(self) -> Notebooks:
        """Return the open notebook, whose cells are changed through its page, never its file under the page."""
        if self._extension is None or self._notebook is None or not self._notebook.path:
            return {}
        return {self._extension.folder / self._notebook.path: self._notebook}


def _approval(name: str, asked: Json) -> Approval:
    """Return a teammate's approval as one of the lead's view: ids of two teammates may be the same."""
    preview = {**asked.get("preview", {})}
    preview["effects"] = tuple(preview.get("effects") or ())
    agent = f"{name}: {asked['agent']}" if asked.get("agent") else name
    return Approval(
        f"{name}-{asked['call_id']}", str(asked["tool"]), str(asked["title"]), asked["input"], Preview(**preview),
        str(asked["why"]), tuple(asked.get("offers") or ()), str(asked.get("notebook", "")),
        editable=bool(asked.get("editable")), agent=agent,
    )  # fmt: skip


def _planned_first(create: Tool) -> Tool:
    """Return `task_create` that always wants a plan."""

    async def run(call: Call, **given: Any) -> Any:
        return await create.function(call, **{**given, "wants_plan": True})

    return replace(create, function=run)
