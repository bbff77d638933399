"""One run of an `%%agent` cell: what the person asked for, what it is made of, and its way to the end.

In two halves, so that a run may go on in the background: `prepared` does all that can be asked, refused or shown from the
store, in the person's cell; `go` runs. Must not know where the cell is. Read `prepared`, then `go`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from nbagent.app.agents import Errand
from nbagent.app.answer import Answer, RunFailed
from nbagent.app.asked import TOLD, Checking, files_read, is_asked, only_answers, settings_for
from nbagent.app.assembly import Assembly, assemble, tell_of_idle_rules
from nbagent.app.checkpointing import Checkpointing
from nbagent.app.company import Company
from nbagent.app.consent import before_run, consented
from nbagent.app.continuing import unfinished
from nbagent.app.extension import Extension
from nbagent.app.keptrun import KeptRun
from nbagent.app.lesson import agent_under
from nbagent.app.model import RunModel, stands_in
from nbagent.app.options import NO_SETTINGS
from nbagent.app.place import Place, View
from nbagent.app.recording import is_taped, played, tapes_of
from nbagent.app.replay import RunKey, offer, why_failed
from nbagent.app.skills import with_its_model
from nbagent.app.starts import Ground, ground_of
from nbagent.app.stepping import is_paced, stepping
from nbagent.app.trace import LoopOpening, opens_loop
from nbagent.app.trusting import asked
from nbagent.app.underway import LiveRun
from nbagent.config import Settings
from nbagent.core.drive import Middleware, drive
from nbagent.core.events import Noted, Reason, RunEnded
from nbagent.core.loop import run
from nbagent.core.messages import Block, Json
from nbagent.core.policy import Mode, Policy
from nbagent.core.ports import Notebook
from nbagent.core.run import Agent
from nbagent.core.timelimit import TimeLimit
from nbagent.view.items import LESSON, REPLAY

STOPPING = frozenset({Reason.ERROR, Reason.INTERRUPTED, Reason.CELL_GONE})
"""Ends of a run at which its cell fails, so that Run All stops."""

Compose = Callable[[Notebook | None, str], Awaitable[tuple[str, str]]]
"""Makes the prompt of a run where it takes place, of the person's words: what people read, and what the model is told more."""


@dataclass(frozen=True, slots=True)
class Request:
    """One `%%agent` cell as the person wrote it: their words, their options as given, and the settings that come of them."""

    words: str
    given: Json
    settings: Settings
    compose: Compose | None
    errand: Errand | None
    company: Company | None = None

    @property
    def background(self) -> bool:
        """Whether the run is to go on while the person works."""
        return bool(self.given.get("background"))

    @property
    def asks(self) -> bool:
        """Whether the run is only to answer."""
        return is_asked(self.given)

    async def prompt(self, notebook: Notebook | None) -> tuple[str, str]:
        """Return what people read of the prompt, and what the model is told more."""
        words, more = (self.words, "") if self.compose is None else await self.compose(notebook, self.words)
        return words, "\n\n".join(filter(None, (more, TOLD if self.asks else "", self.settings.lesson.told)))

    def key(self, prompt: str, more: str) -> RunKey:
        """By what finished runs of this cell are found."""
        text = f"{prompt}\n{more}".strip()
        own = self.compose is None and self.errand is None and self.company is None
        return RunKey.of(text, self.given, self.settings.mode, again=not own or is_taped(self.given))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cell came to its end; `fails`: why it fails although its run did not."""

    ended: RunEnded
    answer: Answer
    fails: str = ""

    def check(self, *, alone: bool) -> None:
        """Raise `RunFailed` where the cells below must not run; `alone`: nobody reads why, so no work on half a job."""
        reason = self.ended.reason
        if reason in STOPPING or (alone and reason is not Reason.END_TURN):
            raise RunFailed(self.ended.sentence)
        if self.fails:
            raise RunFailed(self.fails)


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that only has to go; `noting` ends what is kept for undo. Whoever drops it must `drop` it."""

    extension: Extension
    request: Request
    place: Place
    live: LiveRun
    ground: Ground
    view: View
    kept: KeptRun
    noted: Checkpointing
    noting: ExitStack
    parts: Assembly
    agent: Agent
    prompt: str
    blocks: list[Block]
    wraps: Sequence[Middleware]
    untold: Callable[[], None]
    known: int


def settings_of(extension: Extension, options: Json, words: str) -> Settings:
    """Return the settings of a cell with these options; raises `ConfigError`."""
    given = {name: value for name, value in options.items() if name not in NO_SETTINGS}
    settings = played(with_its_model(extension, words, extension.settings(given), options), options)
    if is_asked(options):
        settings = settings_for(settings, extension.outside())
    extension.privacy.use(settings)
    return extension.privacy.plain(settings)


async def prepared(extension: Extension, request: Request, place: Place, live: LiveRun) -> Outcome | Ready:
    """Show the record of the cell's finished run where it still counts, else make a run ready; raises `ConfigError`."""
    if opens_loop(request.given):
        shown_below = is_paced(request.given) and place.live is not None  # by the buttons
        place.view = LoopOpening(place.view, live=bool(request.given.get("trace")) and not shown_below)
    prompt, more = await request.prompt(place.notebook)
    ground = Ground("", request.settings)
    if request.company is not None and (found := await request.company.ground(extension, place, request.settings)):
        ground = found
    elif request.errand is None:
        ground = await ground_of(extension, place, request.settings, request.given)
    key = replace(request.key(prompt, more), seat=ground.seat, branch=ground.branch, new=ground.new)
    if (shown := await offer(extension, place, ground.settings, key)) is None:
        return await _ready(extension, request, place, live, ground, key, prompt, more)
    answer = Answer.of(shown.ended, shown.session, replayed=True, stale=shown.stale, not_compared=shown.not_compared)
    return Outcome(shown.ended, answer, why_failed(shown.stale) if shown.fails else "")


async def _ready(
    extension: Extension,
    request: Request,
    place: Place,
    live: LiveRun,
    ground: Ground,
    key: RunKey,
    prompt: str,
    more: str,
) -> Ready:
    """Put a run together, with all that undo needs put by; keep it if it finishes, so that it can be shown for nothing."""
    view, kept = place.view, KeptRun(extension, place, key)
    place.view = kept.view
    trusts = await (files_read if request.asks else asked)(extension, place)
    settings = settings_of(extension, request.given, request.words) if trusts else request.settings
    settings = await consented(extension, ground.ways.applied(settings, request.given), place)
    if request.errand is None and (said := stands_in(settings, place.human)):
        place.view.show(before_run(Noted, text=said, level="info"))
    if settings.lesson.line:
        place.view.show(before_run(Noted, text=settings.lesson.line, level=LESSON))
    tapes = tapes_of(extension, request.given)
    if tapes.said:
        place.view.show(before_run(Noted, text=tapes.said, level=REPLAY))
    mask = extension.privacy.vault.mask
    prompt, more = mask(prompt), mask(more)
    with ExitStack() as open_now:
        noted = open_now.enter_context(
            extension.undo.checkpointing(
                prompt, place.notebook, kept.kernel, place.document, run=live.id, by_call=live.background
            )
        )
        parts = await assemble(
            extension, settings, place, kept, noted, live,
            errand=request.errand, ground=ground, company=request.company,
            web=Mode.DONT_ASK if request.asks else settings.mode, tapes=tapes,
        )  # fmt: skip
        conversation, company = parts.conversation, request.company
        gate, said = _gate(extension, settings, parts, live)
        agent = await parts.agent(prompt, gate)
        tell_of_idle_rules(gate, agent.tools, place)
        untold, known = conversation.telling(), len(conversation.session.transcript)
        told = "\n\n".join(filter(None, (prompt, more)))
        blocks = await parts.opening(told, said, words="" if company is not None else request.words)
        wraps: list[Middleware] = [
            partial(extension.verifier.events, notebook=place.notebook),
            extension.privacy.events,
        ]
        agent = agent_under(agent, settings.lesson)
        if request.asks:
            agent = only_answers(agent)
        if isinstance(view, LoopOpening):
            view.knows(conversation.session)
        if isinstance(request.compose, Checking):
            wraps.append(request.compose.events)
        if company is not None:
            agent = company.joined(agent, place.view.show, conversation.session)
            wraps.append(company.events)
        return Ready(extension, request, place, live, ground, view, kept, noted, open_now.pop_all(), parts, agent,
                     prompt, blocks, wraps, untold, known)  # fmt: skip


def _gate(extension: Extension, settings: Settings, parts: Assembly, live: LiveRun) -> tuple[Policy, Sequence[str]]:
    """Return the gate of a run and what the person has said of refused calls since, which is for the notebook's own runs."""
    gate = settings.policy(parts.conversation.kept)
    for rule in parts.errand.keeps if parts.errand is not None else ():
        gate.keep(rule)
    if live.background:
        return gate, ()
    allowed, said = extension.refusals.begin()
    for rule in allowed:
        gate.keep(rule)
    return gate, said


async def go(ready: Ready) -> Outcome:
    """Run to the end, whatever that is, and keep the run if it finished."""
    extension, live, place, kept, noted = ready.extension, ready.live, ready.place, ready.kept, ready.noted
    conversation, agent, request = ready.parts.conversation, ready.agent, ready.request
    session = conversation.session
    with ready.noting:
        events = run(agent, session, ready.blocks, prompt=ready.prompt, stop=live.stop, run_id=noted.run)
        limit = TimeLimit(agent.limits.seconds)
        pacer = stepping(request.given, place, live.stop, limit)
        wraps = ready.wraps if pacer is None else [*ready.wraps, pacer.events]
        ended = await drive(
            events, place.view.show, agent=agent, session=session, stop=live.stop, middleware=wraps, limit=limit
        )
        besides = ready.parts.besides
        if besides.live and not place.patient:  # no page would take their records: the cell ends when they have
            await besides.wait()
        if isinstance(agent.model, RunModel):
            besides.then(agent.model.aclose)  # they may ask the same
        if len(session.transcript) == ready.known:
            ready.untold()
        session = session.newest
        if request.errand is None and request.company is None:
            _can_go_on(ready, ended, session.id)
        extension.hooks.rested(session.id)
        replayed = ready.parts.tapes.replay is not None
        answer = Answer.of(ended, session.id, replayed=replayed, not_compared=kept.not_compared(ended))
        await conversation.learn(place.notebook, ended.cells)
    if noted.problem:  # of this run's undo, so no part of what is shown when the cell is run again
        problem = before_run(Noted, text=noted.problem)
        ready.view.show(problem)
        session.log(problem)
    if not besides.live:  # else it is not over yet, and another one the next time
        await kept.end(ended)
    return Outcome(ended, answer)


def _can_go_on(ready: Ready, ended: RunEnded, session: str) -> None:
    """Note whether the run can be gone on with; one in the background that is done changes nothing of what there was."""
    place, live = ready.place, ready.live
    cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
    found = unfinished(live.id, cell, ready.request.given, ended, "" if ready.ground.own else session)
    if found is not None or not live.background:
        ready.extension.unfinished = found
