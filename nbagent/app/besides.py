"""The subagents that one run lets go on beside it, in the background: `run_in_background` of the tool `task`.

Each has a stop, an undo step, a panel and approvals of its own, and goes on when the run has ended; what it spends counts in
the run, and it may do what the run might when it began it. The place of the run stays open for them. Read `Besides.start`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbagent.app.answer import Answer
from nbagent.app.background import FAILED, panel_of, recorded, seen
from nbagent.app.handle import Handle
from nbagent.app.notices import Notice, ended_words
from nbagent.app.underway import LiveRun
from nbagent.core.agents import AgentSpec, Child
from nbagent.core.errors import ToolError
from nbagent.core.events import (
    AgentReported,
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    QuestionAnswered,
    QuestionAsked,
    Reason,
    RunEnded,
    State,
    innermost,
)
from nbagent.core.messages import plain_text
from nbagent.core.ports import Approver
from nbagent.core.run import Agent, Run, Stop
from nbagent.core.subagents import beside
from nbagent.core.tools import Tool
from nbagent.jupyter.approval import PersonApprover
from nbagent.tools.task import result_of

if TYPE_CHECKING:
    from nbagent.app.assembly import Assembly
    from nbagent.view.widget import AgentView

_ASKS = (ApprovalAsked, ApprovalAnswered, QuestionAsked, QuestionAnswered)
_WORKS = "{} still works ({:.0f} s so far): {}."


@dataclass(slots=True, eq=False)
class _One:
    """One subagent of these. `ended` is there once it has ended."""

    live: LiveRun
    noting: ExitStack
    child: Child | None = None
    ended: RunEnded | None = None


class Besides:
    """Those of one run. `parts` is what that is made of; `number` the execution count of its cell."""

    def __init__(self, parts: Assembly) -> None:
        self._parts = parts
        self._all: dict[str, _One] = {}
        self._made: dict[str, _One] = {}
        self._closing = AsyncExitStack()
        self._drawing = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self.over = False
        """Whether the run itself has ended."""
        self.number = 0

    @property
    def live(self) -> tuple[LiveRun, ...]:
        """Those that have not ended."""
        return tuple(one.live for one in self._all.values() if one.ended is None)

    def tools(self, spec: AgentSpec, agent_id: str, title: str) -> list[Tool]:
        """Return the tools of one that is to begin: as those of the run, but they wait for turns, and undo counts them apart."""
        parts, extension = self._parts, self._parts.extension
        if full := extension.underway.full(parts.settings.background_agents, len(self._made)):
            raise ToolError(full)
        live = LiveRun(agent_id, title or spec.name, "", parts.live.cell, Stop(), background=True,
                       parent=parts.live.id, agent=spec.name)  # fmt: skip
        noting = ExitStack()
        noted = noting.enter_context(
            extension.undo.checkpointing(
                title, parts.place.notebook, parts.kept.kernel, parts.place.document,
                run=f"run-{agent_id.partition('-')[2]}", by_call=True,
            )
        )  # fmt: skip
        self._made[agent_id] = _One(live, noting)
        return parts.beside(live, noted)

    async def start(self, run: Run, call_id: str, child: Child) -> None:
        """Begin a subagent for the call `call_id` of `run`, and return at once."""
        extension, place, one = self._parts.extension, self._parts.place, self._made.pop(child.id)
        live, one.child = one.live, child
        live.prompt, live.session = child.prompt, child.session.id
        live.stop.apart()
        live.handle = Handle(live, extension.main, self.number)
        approver: Approver = place.approver
        if place.patient:
            live.view, approver = self._panel(live)
        live.approver = approver
        self._all[child.id] = one
        extension.holds.take(child.session.id)
        extension.begin(live)
        extension.notices.begin(self._notice(live))
        if not self._parts.live.background:  # its cell has the turn as long as the run goes on
            await self._closing.enter_async_context(extension.main.lend(live.who))
        gate = self._parts.subagents.gate.apart()

        def wrap(agent: Agent) -> Agent:
            return replace(agent, approver=approver)

        def tell(event: Event) -> None:
            self._tell(run, call_id, one, event)

        ends = beside(run, child, gate=gate, stop=live.stop, tell=tell, wrap=wrap)
        live.task = asyncio.create_task(self._goes_on(one, ends), name=f"nbagent-{live.id}")
        live.task.add_done_callback(seen)

    async def wait(self) -> None:
        """Wait until all have ended, and close what was theirs."""
        tasks = {one.live.task for one in self._all.values() if one.live.task is not None}
        if tasks:
            await asyncio.wait(tasks)
        await self._closing.aclose()

    def keep(self, closing: AsyncExitStack) -> None:
        """Hold what the run's place is made of, where the cell has ended and some go on; it is closed when all have."""
        bridge = self._parts.place.bridge
        if bridge is not None:
            bridge.on_cell_gone(self._cell_gone)

        async def kept() -> None:
            self._parts.extension.main.leave()
            async with closing:
                await self.wait()

        self._keeper = asyncio.create_task(kept(), name=f"nbagent-beside-{self._parts.live.id}")
        self._keeper.add_done_callback(seen)

    def _cell_gone(self) -> None:
        for live in self.live:
            live.stop.now(Reason.CELL_GONE)

    def then(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have `close` awaited when all have ended."""
        self._closing.push_async_callback(close)

    def close(self) -> None:
        """Let go of what was made for subagents that never began."""
        while self._made:
            self._made.popitem()[1].noting.close()

    async def look(self, agent_id: str, wait: float) -> str:
        """Return what one does or has found, after waiting `wait` seconds for its end; raises `ToolError`."""
        one = self._all.get(agent_id)
        if one is None or one.child is None:
            there = ", ".join(self._all) or "none"
            raise ToolError(f"this run has no agent {agent_id!r} in the background. There are: {there}")
        if one.live.task is not None and wait > 0:
            async with self._parts.extension.main.lend(one.live.who):
                await asyncio.wait({one.live.task}, timeout=wait)
        if one.ended is None:
            return _WORKS.format(one.live.who, time.time() - one.live.began, one.live.activity)
        self._parts.extension.notices.forget([agent_id])  # now it is told
        return plain_text(list(result_of(one.child, one.ended).content))

    # ── one of them ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _panel(self, live: LiveRun) -> tuple[AgentView, PersonApprover]:
        """Show a panel of its own, in the cell of the run as long as that goes on; return it with who answers there."""
        from IPython.display import display

        from nbagent.app.place import asking

        view, person = asking(live.stop.now, live.stop.spare, self._parts.settings.cell_timeout)
        self._closing.callback(view.close)
        self._parts.place.more.append(lambda: _shown(view))
        if not self._parts.live.background:  # else its cell has ended: the panel comes with the record of the run
            display(_shown(view), raw=True)
        return view, person

    def _tell(self, run: Run, call_id: str, one: _One, event: Event) -> None:
        """Show what one reports: in its own panel, and in that of the run as long as it goes on."""
        parts, child = self._parts, one.child
        event = parts.extension.privacy.event(event)
        if isinstance(event, RunEnded):
            one.ended = event
        if one.live.view is not None:
            one.live.view.show(event)
            if isinstance(innermost(event), _ASKS):
                return
        if self.over or run.state is State.DONE or run.stop.asked or child is None:
            return
        report = run.event(
            AgentReported, call_id=call_id, agent_id=child.id, agent=child.spec.name, title=child.title, event=event
        )
        run.session.newest.log(report)
        parts.place.view.show(report)

    async def _goes_on(self, one: _One, ends: Awaitable[RunEnded]) -> None:
        parts, live = self._parts, one.live
        extension, place = parts.extension, parts.place
        extension.main.leave()
        try:
            with one.noting:
                one.ended = await ends
        finally:
            extension.underway.remove(live)
            extension.notices.end(
                live.id, FAILED if one.ended is None else ended_words(one.ended, extension.privacy.vault.mask)
            )
            if isinstance(live.approver, PersonApprover) and live.approver is not place.approver:
                live.approver.close()
            if live.handle is not None:
                live.handle.end(Answer.of(one.ended, live.session) if one.ended is not None else None, FAILED)
            await self._drawn(live)

    async def _drawn(self, live: LiveRun) -> None:
        """Put the record of one that has ended in the place of its panel."""
        if live.view is None:
            return
        live.view.flush()
        if self.over:
            async with self._drawing:
                await self._parts.place.finish(self.number)
            await recorded(live, self._parts.place.notebook)

    def end(self, number: int) -> None:
        """Say that the run has ended, before its record is written."""
        self.over, self.number = True, number
        if self.live and (bridge := self._parts.place.bridge) is not None:
            bridge.cell_ended()  # else the page goes on drawing the cell as one that runs
        self.close()

    def _notice(self, live: LiveRun) -> Notice:
        parts = self._parts
        place, ground = parts.place, parts.ground
        notebook = place.notebook.path if place.notebook is not None else ""
        seat = ground.seat if ground.seat and ground.lasts else place.document
        return Notice(
            live.id, live.who, live.prompt, seat, notebook, live.session, parts.extension.kernel_id, parts.live.id
        )


def _shown(view: AgentView) -> Mapping[str, Any]:
    """Return what shows a panel now: itself while its run goes on, then the record."""
    from nbagent.view.record import record

    if view.view.ended is not None:
        return record(view.view)
    return panel_of(view)
