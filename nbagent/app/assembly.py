"""What one run is made of: its conversation, its tools, its rules, hooks and subagents, and the message it begins with.

Must not know how the run goes, nor what becomes of it. Read `assemble`.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from nbagent.app.agents import Errand, Team
from nbagent.app.checkpointing import Checkpointing
from nbagent.app.consent import before_run
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.forks import OTHER_PREFIX, OTHER_VOICE, fork, past_of, whole
from nbagent.app.keptrun import KeptRun
from nbagent.app.mcp import news_of_run, tools_of_run
from nbagent.app.model import open_named, run_model, voice_of
from nbagent.app.place import Place
from nbagent.app.restarts import gone_with
from nbagent.app.runtools import MakeTools, tools_of
from nbagent.config import Settings
from nbagent.core.events import Noted
from nbagent.core.messages import Block
from nbagent.core.policy import Policy
from nbagent.core.ports import Notebook
from nbagent.core.run import Agent
from nbagent.core.tools import Tool, Toolset
from nbagent.tools.ledger import Ledger
from nbagent.tools.results import ResultStore, capped
from nbagent.tools.seen import Seen


@dataclass(frozen=True, slots=True)
class Assembly:
    """The parts of one run; `kept` takes down what it reads, `noted` what it changes.

    `notebook` is the one that hooks watch, `foreign` are the tools of MCP servers, `errand` stands in for a model.
    """

    extension: Extension
    settings: Settings
    place: Place
    kept: KeptRun
    noted: Checkpointing
    notebook: Notebook | None
    foreign: Sequence[Tool]
    team: Team
    make: MakeTools
    conversation: Conversation
    errand: Errand | None
    new: bool

    async def agent(self, prompt: str, gate: Policy) -> Agent:
        """Return the agent; `gate` holds the rules in force."""
        place, conversation, ledger = self.place, self.conversation, Ledger()
        agent = Agent(
            model=run_model(self.settings) if self.errand is None else self.errand.model(prompt),
            tools=self._tools(ledger, conversation.results, conversation.seen),
            gate=gate,
            approver=place.approver,
            limits=self.settings.limits(),
            notebook=lambda: place.notebook.path if place.notebook is not None else "",
            closing=lambda: ledger.closing(conversation.seen.listing or ()),
        )
        agent = await self.extension.hooks.hooked(
            agent,
            conversation.session,
            transcript=conversation.store.path,
            document=place.document if self.errand is None else f"{place.document} errands",
            notebook=self.notebook,
            new=self.new,
            named=lambda name: open_named(self.settings, name),
        )
        return self.team.join(agent, gate, conversation, lambda: self._tools(ledger, ResultStore(), Seen()).values())

    async def opening(self, prompt: str, said: Sequence[str]) -> list[Block]:
        """Return the message that the run begins with; `said` is what the person said of refused calls."""
        extension, conversation, place = self.extension, self.conversation, self.place
        news = [*said]
        if not conversation.session.transcript:
            news += filter(None, [await gone_with(place.notebook, extension.shell)])
        news += news_of_run(extension, conversation.session)
        if self.errand is None:
            news += self.team.news(conversation)
        blocks = await conversation.opening(prompt, place.notebook, self.settings.mode, news)
        return [*blocks, *await extension.mcp.attached(prompt)]

    def _tools(self, ledger: Ledger, results: ResultStore, seen: Seen) -> Toolset:
        """The tools of a run or of one subagent: what they read and change is taken down, long results are cut."""
        own = [*self.extension.tools, *self.foreign]
        made = self.kept.tools(self.make(results, seen, ledger, self.noted.kernel), own)
        return Toolset(capped(tool, results) for tool in self.noted.tools(made, own))


async def assemble(
    extension: Extension,
    settings: Settings,
    place: Place,
    kept: KeptRun,
    noted: Checkpointing,
    *,
    errand: Errand | None,
    new: bool,
) -> Assembly:
    """Put a run together: start what it needs, and go on with its conversation or begin one."""
    watched = extension.hooks.watch(noted.notebook, place.view.show)
    foreign = await tools_of_run(extension, place, new=new)
    team = Team(extension, settings, place, stands_in=errand is not None)
    timeout = None if place.patient else settings.cell_timeout
    make = tools_of(extension, watched, timeout, [*foreign, *team.tools])
    if errand is None:
        conversation = await _conversation(extension, settings, make, place, new=new)
    else:  # beside the notebook's own, for this run only
        conversation = Conversation.begin(settings, make, extension.folder, _path(place))
    kept.begin(conversation)
    return Assembly(
        extension, settings, place, kept, noted, watched, foreign, team, make, conversation, errand=errand, new=new
    )


def tell_of_idle_rules(gate: Policy, tools: Toolset, place: Place) -> None:
    """Show which rules name no tool: one whose name is mistyped would silently do nothing."""
    for rule in gate.rules:
        if not rule.source.file and not any(rule.speaks_of(name) for name in tools):
            near = difflib.get_close_matches(rule.tool, tools, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            place.view.show(before_run(Noted, text=f"The rule “{rule.action} {rule}” names no tool of this run.{hint}"))


async def _conversation(
    extension: Extension, settings: Settings, make: MakeTools, place: Place, *, new: bool
) -> Conversation:
    """Go on with this notebook's conversation, or from before this cell's last run; or begin one.

    One begins where it is asked for, and where there is none yet. Where the tools are others than it was begun with, or the
    model can't read what was thought in it, it goes on in a new session that begins with its messages.
    """
    path, found = _path(place), extension.conversations.get(place.document)
    if found is not None:
        found.rename(path)
    moved = found is not None and found.voice != voice_of(settings)
    changed = moved or (found is not None and found.session.tools != Toolset(make(found.results)).params())
    if not new and (past := await asyncio.to_thread(past_of, extension, place)) is not None:
        found, said = fork(past, settings, make, extension.folder, path, before=found)
        if said:
            place.view.show(before_run(Noted, text=said, level="info"))
    elif found is not None and found.session.transcript and changed and not new:
        earlier = found
        found, _ = fork(whole(earlier), settings, make, extension.folder, path, before=earlier)
        found.go_on_from(earlier)
        place.view.show(before_run(Noted, text=OTHER_VOICE if moved else OTHER_PREFIX, level="info"))
    elif new or found is None or changed:
        found = Conversation.begin(settings, make, extension.folder, path)
    extension.conversations[place.document] = found
    extension.last = found
    return found


def _path(place: Place) -> str:
    return place.notebook.path if place.notebook is not None else ""
