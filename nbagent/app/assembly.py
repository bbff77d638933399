"""What one run is made of: its conversation, its tools, its rules, hooks and subagents, and the message it begins with.

Must not know how the run goes, nor what becomes of it. Read `assemble`.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nbagent.app import todos
from nbagent.app.agents import Errand, Subagents
from nbagent.app.besides import Besides
from nbagent.app.checkpointing import Checkpointing
from nbagent.app.compacting import compaction_of
from nbagent.app.company import Company
from nbagent.app.consent import before_run
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.files import RunFiles
from nbagent.app.goingon import conversation_of, path_of
from nbagent.app.keptrun import KeptRun
from nbagent.app.lesson import tools_under
from nbagent.app.mcp import news_of_run, tools_of_run
from nbagent.app.mentions import given_with
from nbagent.app.model import open_named, run_model
from nbagent.app.place import Place
from nbagent.app.queueing import queue_of
from nbagent.app.recording import NO_TAPES, Tapes
from nbagent.app.restarts import gone_with
from nbagent.app.runtools import MakeTools, tools_of
from nbagent.app.skills import ForkedSkill
from nbagent.app.starts import Ground
from nbagent.app.underway import LiveRun
from nbagent.app.web import Offer, offered
from nbagent.config import Settings
from nbagent.core.events import Noted
from nbagent.core.inbox import Empty, Inbox
from nbagent.core.messages import Block
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Notebook
from nbagent.core.run import Agent
from nbagent.core.served import SERVED
from nbagent.core.tools import Tool, Toolset
from nbagent.tools.lasting import LastingCode
from nbagent.tools.ledger import Ledger
from nbagent.tools.recorded import answered
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
    subagents: Subagents
    files: RunFiles
    make: MakeTools
    conversation: Conversation
    errand: Errand | None
    ground: Ground
    live: LiveRun
    lasting: LastingCode
    inbox: Inbox
    besides: Besides = field(init=False)
    company: Sequence[str] = ()
    """Names of the tools of the run's company, which its subagents don't get."""
    tapes: Tapes = NO_TAPES

    def __post_init__(self) -> None:
        """Make what its subagents in the background are made by."""
        object.__setattr__(self, "besides", Besides(self))

    async def agent(self, prompt: str, gate: Policy) -> Agent:
        """Return the agent; `gate` holds the rules in force."""
        place, conversation, ledger = self.place, self.conversation, Ledger()
        agent = Agent(
            model=run_model(self.settings, self.tapes.through(self.extension.metered), place.human) if self.errand is None else self.errand.model(prompt),
            tools=self._tools(ledger, conversation.results, conversation.seen),
            gate=gate,
            approver=place.approver,
            limits=self.settings.limits(),
            notebook=lambda: place.notebook.path if place.notebook is not None else "",
            closing=lambda: ledger.closing(conversation.seen.listing or ()),
            inbox=self.inbox,
            lasting=self.lasting,
            aside=self._aside,
            compaction=compaction_of(extension=self.extension, conversation=conversation, settings=self.settings,
                                     opening=lambda: self.opening("", ())),
        )  # fmt: skip
        conversation.model = agent.model.name
        document, resumed, conversation.resumed = place.document, conversation.resumed, False
        if self.errand is not None:
            document = f"{place.document} errands"
        elif not self.ground.own:
            document = f"{place.document} {conversation.session.id}"
        agent = await self.extension.hooks.hooked(
            agent,
            conversation.session,
            transcript=conversation.store.path,
            document=document,
            notebook=self.notebook,
            new=self.ground.new,
            resumed=resumed,
            named=lambda name: self.extension.metered(open_named(self.settings, name)),
        )
        self.files.join(gate, conversation, agent.model)
        self.subagents.besides = self.besides
        return self.subagents.join(
            agent, gate, conversation, lambda: self._tools(ledger, ResultStore(), Seen(), child=True).values()
        )

    def _aside(self, call_id: str, text: str) -> None:
        """Show in the live view, called from any thread, how far a call is whose code holds the loop."""
        if (live := self.live.view or self.place.live) is not None:
            live.aside(call_id, text)

    async def opening(self, prompt: str, said: Sequence[str], *, words: str = "") -> list[Block]:
        """Return the message that the run begins with; `said` is what the person said of refused calls.

        `words` are the person's own of the prompt: what they mention in them is looked up and stands beside it.
        """
        extension, conversation, place = self.extension, self.conversation, self.place
        news = [*(await self.files.news(conversation) if self.errand is None else ()), *said]
        if not conversation.told_restart:
            conversation.told_restart = True
            earlier = conversation.session.transcript if conversation.elsewhere else ()
            gone = await gone_with(place.notebook, extension.shell, earlier)
            news += filter(None, [gone.told])
            if gone.said and conversation.elsewhere:
                place.view.show(before_run(Noted, text=gone.said, level="info"))
        news += news_of_run(extension, conversation.session)
        if self.errand is None:
            news += self.subagents.news(conversation)
            news += self.inbox.take()
            news += filter(None, [todos.told(conversation.session, place)])
        notebook = extension.privacy.notebook(place.notebook)
        blocks = await conversation.opening(prompt, notebook, self.settings.mode, news)
        if self.errand is None and (called := await self.files.called(prompt)) is not None:
            blocks = [*blocks[:-1], *called]
        return [*blocks, *await self._mentioned(words, notebook), *await extension.mcp.attached(prompt)]

    async def _mentioned(self, words: str, notebook: Notebook | None) -> list[Block]:
        """Look up what is mentioned, show what was found, and take it down as read by this run."""
        given = await given_with(self.extension, words, notebook)
        for piece in given.pieces:
            for name in piece.names:
                self.kept.looks(name)
            for path in piece.files:
                await asyncio.to_thread(self.kept.reads, Path(path))
            if piece.cell is not None:
                self.conversation.seen.learn(piece.cell)
        for text in (text for text in (given.line, *given.hints) if text):
            self.place.view.show(before_run(Noted, text=text, level="info"))
        return given.blocks

    def _tools(self, ledger: Ledger, results: ResultStore, seen: Seen, *, child: bool = False) -> Toolset:
        """The tools of a run or of one subagent: what they read and change is taken down, long results are cut."""
        return self._made(self.make, self.live, self.noted, ledger, results, seen, child=child)

    def beside(self, live: LiveRun, noted: Checkpointing) -> list[Tool]:
        """Return the tools of a subagent that goes on beside the run as `live`; `noted` keeps what undoes what it does."""
        extension = self.extension
        watched = extension.privacy.notebook(noted.notebook)
        timeout = None if self.place.patient else self.settings.cell_timeout
        make = tools_of(extension, watched, timeout, [*self.foreign, *self.files.tools])
        make = tools_under(make, self.ground.ways.tools, self.settings.lesson)
        return list(self._made(make, live, noted, Ledger(), ResultStore(), Seen(), child=True).values())

    def _made(
        self, make: MakeTools, live: LiveRun, noted: Checkpointing, ledger: Ledger, results: ResultStore, seen: Seen,
        *, child: bool,
    ) -> Toolset:  # fmt: skip
        own = [*self.extension.tools, *self.foreign]
        privacy, queue = self.extension.privacy, queue_of(self.extension, live)
        made = self.kept.tools(
            make(results, seen, ledger, queue.kernel(privacy.kernel(noted.kernel)), below=child), own
        )
        made = [tool for tool in made if not child or tool.name not in self.company]
        cut = [capped(tool, results, mask=privacy.vault.mask) for tool in noted.tools(made, own)]
        tools = [queue.tool(privacy.tool(tool)) for tool in self.files.watching(cut, child=child)]
        return Toolset(tools if self.tapes.results is None else answered(tools, self.tapes.results))


async def assemble(
    extension: Extension,
    settings: Settings,
    place: Place,
    kept: KeptRun,
    noted: Checkpointing,
    live: LiveRun,
    *,
    errand: Errand | None,
    ground: Ground,
    company: Company | None = None,
    web: Mode,
    tapes: Tapes = NO_TAPES,
) -> Assembly:
    """Put a run together: start what it needs, and go on with its conversation or begin one.

    `web` is the mode that decides on the web: a run that only answers asks nobody for what its conversation may do.
    """
    watched = extension.hooks.watch(extension.privacy.notebook(noted.notebook), place.view.show)
    foreign = await tools_of_run(extension, place, ground)
    subagents = Subagents(extension, settings, place, stands_in=errand is not None, tapes=tapes)
    timeout = None if place.patient else settings.cell_timeout
    by_person = errand.skill if isinstance(errand, ForkedSkill) else ""
    files = RunFiles(extension, place, subagents.fork, reads=kept.reads, by_person=by_person)
    with_others = company.tools() if company is not None else ()
    more = [
        *foreign,
        *subagents.tools,
        *files.tools,
        *with_others,
        *(errand.tools(watched) if errand is not None else ()),
    ]
    lasting = LastingCode(settings.patience(), lambda: live.waits)
    make = tools_under(tools_of(extension, watched, timeout, more, lasting), ground.ways.tools, settings.lesson)
    if errand is None:
        offer = await _web(extension, replace(settings, mode=web), place, ground)
        settings = replace(settings, served=offer.tools)
        conversation = await conversation_of(extension, settings, make, place, ground, live)
        conversation.kept += [rule for rule in offer.keep if rule not in conversation.kept]
        subagents.web = settings.served
    else:  # beside the notebook's own, for this run only
        path, about = path_of(place), {"errand": errand.agent}
        conversation = Conversation.begin(settings, make, extension.folder, path, seals=extension.seals, **about)
        live.session = conversation.session.id
    conversation.session.use(extension.privacy.masking)
    kept.begin(conversation)
    return Assembly(
        extension, settings, place, kept, noted, watched, foreign, subagents, files, make, conversation,
        errand=errand,
        ground=ground,
        live=live,
        lasting=lasting,
        inbox=_inbox(extension, place, ground, live) if errand is None else Empty(),
        company=[tool.name for tool in with_others],
        tapes=tapes,
    )  # fmt: skip


def _inbox(extension: Extension, place: Place, ground: Ground, live: LiveRun) -> Inbox:
    """Return what this run is to hear of: runs that it started, and in a conversation that lasts those beside that."""
    if ground.own:
        extension.notices.look(place.document, path_of(place))
    lasts = ground.own or ground.lasts
    return extension.notices.inbox(ground.seat if lasts else None, live.id)


async def _web(extension: Extension, settings: Settings, place: Place, ground: Ground) -> Offer:
    """Return what of the web this run offers; a tool of the person's own of the same name comes first."""
    found, own = extension.conversations.get(ground.seat), [tool.name for tool in extension.tools]
    return await offered(settings, place, found.kept if found is not None else (), own, ground.ways.tools)


def tell_of_idle_rules(gate: Policy, tools: Toolset, place: Place) -> None:
    """Show which rules name no tool: one whose name is mistyped would silently do nothing."""
    for rule in gate.rules:
        if not rule.source.file and not any(rule.speaks_of(name) for name in (*tools, *SERVED)):
            near = difflib.get_close_matches(rule.tool, tools, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            place.view.show(before_run(Noted, text=f"The rule “{rule.action} {rule}” names no tool of this run.{hint}"))
