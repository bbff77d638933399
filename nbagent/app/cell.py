"""Runs one `%%agent` cell: what the person asked for → the events of a run → the view → the answer and the record.

The one place where everything meets, and the order in which it does. Read `run_agent_cell`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from nbagent.app.agents import Errand
from nbagent.app.answer import Answer, Refused, RunFailed
from nbagent.app.assembly import assemble, tell_of_idle_rules
from nbagent.app.company import Company
from nbagent.app.consent import before_run, consented
from nbagent.app.continuing import GoingOn, going_on, unfinished
from nbagent.app.extension import Extension
from nbagent.app.keptrun import KeptRun
from nbagent.app.model import RunModel, fallback_of, model_of
from nbagent.app.options import NO_SETTINGS, parse
from nbagent.app.place import Place, Reins, find_place
from nbagent.app.replay import RunKey, offer, why_failed
from nbagent.app.skills import forked, with_its_model
from nbagent.app.starts import Ground, ground_of
from nbagent.app.trusting import asked
from nbagent.app.underway import LiveRun, name_of
from nbagent.app.undo import new_run_id
from nbagent.app.undo_commands import show_desk
from nbagent.config import Settings
from nbagent.core.drive import drive
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted, Reason, RunEnded
from nbagent.core.loop import run
from nbagent.core.messages import Json, Usage
from nbagent.core.ports import Notebook
from nbagent.core.run import Stop
from nbagent.jupyter.front_end import running_cell

_log = logging.getLogger("nbagent")

EMPTY = "Write what the agent should do below the %%agent line, e.g. “Plot sales by month.” %%agent? lists the options."
TAKING_BACK = "A run is being taken back right now. Run this cell again when that is done."
RUNNING = "An agent is running in this kernel already. Wait for it, or stop it first; one run at a time."

_STOPPING = frozenset({Reason.ERROR, Reason.INTERRUPTED, Reason.CELL_GONE})
"""Ends of a run at which its cell fails, so that Run All stops."""

Compose = Callable[[Notebook | None, str], Awaitable[tuple[str, str]]]
"""Makes the prompt of a run where it takes place, of the person's words: what people read, and what the model is told more."""


@dataclass(frozen=True, slots=True)
class _Request:
    """One `%%agent` cell as the person wrote it: their words, their options as given, and the settings that come of them."""

    words: str
    given: Json
    settings: Settings
    compose: Compose | None
    errand: Errand | None
    company: Company | None = None

    async def prompt(self, notebook: Notebook | None) -> tuple[str, str]:
        """Return what people read of the prompt, and what the model is told more."""
        return (self.words, "") if self.compose is None else await self.compose(notebook, self.words)

    def key(self, prompt: str, more: str) -> RunKey:
        """By what finished runs of this cell are found."""
        text = f"{prompt}\n{more}".strip()
        own = self.compose is None and self.errand is None and self.company is None
        return RunKey.of(text, self.given, self.settings.mode, again=not own)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How the cell came to its end; `fails`: why it fails although its run did not."""

    ended: RunEnded
    answer: Answer
    fails: str = ""


async def run_agent_cell(
    extension: Extension,
    line: str,
    body: str,
    compose: Compose | None = None,
    *,
    errand: Errand | None = None,
    company: Company | None = None,
) -> Answer:
    """Run what the person wrote and return the answer; `compose` may make a prompt of it, of the notebook that is there.

    An `errand` is done by a subagent, beside the conversation; a run in `company` is that of a team's lead or teammate.
    Raises ConfigError for what they must change first, RunFailed where the run could not finish, and what `compose` does.
    """
    if compose is None and errand is None and extension.wanted_to_go_on():
        compose = going_on(extension, in_its_cell=True)
    request = replace(_request(extension, line, body, compose, errand), company=company)
    if request.given.get("dry_run"):
        return await _dry_run(extension, request)
    number, stop = extension.number.keep(), Stop()
    live = extension.begin(
        LiveRun(new_run_id(), name_of(request.words), request.words, running_cell(extension.shell) or "", stop)
    )
    task = asyncio.current_task()
    stop.bind(task.cancel if task is not None else None)
    try:
        reins = _reins(extension, stop, request.settings.cell_timeout)
        async with find_place(extension.shell, reins, extension.refusals, extension.silent, extension.host) as place:
            live.approver, live.view = place.approver, place.live
            extension.underway.changed()
            place.notebook = place.notebook or extension.file
            try:
                outcome = await _shown_or_run(extension, request, place, live)
                if place.patient:
                    show_desk(extension)
            finally:
                await place.finish(number)
            alone = not place.approver.present  # asked before the place closes: then nobody is there any more
    finally:
        extension.underway.remove(live)
    return _handed_over(extension, request, outcome, alone=alone)


async def _dry_run(extension: Extension, request: _Request) -> Answer:
    """Show what the cell would send; the answer says that nothing was."""
    from nbagent.app.dryrun import HEAD, NO_ERRAND, dry_run

    if request.errand is not None:
        raise ConfigError(NO_ERRAND)
    async with find_place(
        extension.shell, _reins(extension, Stop(), None), extension.refusals, extension.silent
    ) as place:
        place.notebook = place.notebook or extension.file
        words, more = await request.prompt(place.notebook)
        told = "\n\n".join(filter(None, (words, more)))
        await dry_run(extension, request.settings, place, told, request.given)
    return Answer(HEAD, "dry_run", Usage(), 0.0, 0, (), "")


def _request(extension: Extension, line: str, body: str, compose: Compose | None, errand: Errand | None) -> _Request:
    """Check all that can be checked before anything is shown; raises `ConfigError`."""
    options, first = parse(line)
    options = compose.options(options) if isinstance(compose, GoingOn) else options
    words = "\n".join(text for text in (first, body.strip()) if text)
    if not words and compose is None:
        raise ConfigError(EMPTY)
    if extension.stop is not None:
        raise ConfigError(RUNNING)
    if extension.undo.lock.locked():
        raise ConfigError(TAKING_BACK)
    extension.wanted_again(options)
    errand = errand or forked(extension, words)
    settings = _settings(extension, options, words)
    settings.limits()
    settings.policy()
    model_of(settings)
    fallback_of(settings)
    return _Request(words, options, settings, compose, errand)


def _settings(extension: Extension, options: Json, words: str) -> Settings:
    given = {name: value for name, value in options.items() if name not in NO_SETTINGS}
    settings = with_its_model(extension, words, extension.settings(given), options)
    extension.privacy.use(settings)
    return extension.privacy.plain(settings)


def _reins(extension: Extension, stop: Stop, limit: float | None) -> Reins:
    return Reins(stop.now, stop.spare, lambda: stop.now(Reason.CELL_GONE), extension.waiting, limit)


def _handed_over(extension: Extension, request: _Request, outcome: _Outcome, *, alone: bool) -> Answer:
    """Return the answer, under its name and its number too; raises `RunFailed` where the cells below must not run."""
    if out := str(request.given.get("out", "")):
        extension.shell.user_ns[out] = outcome.answer
    reason = outcome.ended.reason
    if reason in _STOPPING or (alone and reason is not Reason.END_TURN):  # nobody reads why: no work on half a job
        raise RunFailed(outcome.ended.sentence)
    if outcome.fails:
        raise RunFailed(outcome.fails)
    if request.errand is not None:
        extension.errands.append(request.errand.heard(request.words, outcome.answer.text))
    extension.number.give(outcome.answer)
    return outcome.answer


async def _shown_or_run(extension: Extension, request: _Request, place: Place, live: LiveRun) -> _Outcome:
    """Show the record of the cell's finished run where it still counts, else run."""
    prompt, more = await request.prompt(place.notebook)
    ground = Ground("", request.settings)
    if request.company is not None and (found := await request.company.ground(extension, place, request.settings)):
        ground = found
    elif request.errand is None:
        ground = await ground_of(extension, place, request.settings, request.given)
    key = replace(request.key(prompt, more), seat=ground.seat, branch=ground.branch)
    if (shown := await offer(extension, place, ground.settings, key)) is None:
        return await _run(extension, request, place, prompt, more, key=key, live=live, ground=ground)
    answer = Answer.of(shown.ended, shown.session, replayed=True, stale=shown.stale, not_compared=shown.not_compared)
    return _Outcome(shown.ended, answer, why_failed(shown.stale) if shown.fails else "")


async def _run(
    extension: Extension,
    request: _Request,
    place: Place,
    prompt: str,
    more: str,
    *,
    key: RunKey,
    live: LiveRun,
    ground: Ground,
) -> _Outcome:
    """Run, with all that undo needs put by; keep the run if it finishes, so that the cell can be run again for nothing."""
    view, kept = place.view, KeptRun(extension, place, key)
    place.view = kept.view
    trusts = await asked(extension, place)
    settings = _settings(extension, request.given, request.words) if trusts else request.settings
    settings = await consented(extension, ground.ways.applied(settings, request.given), place)
    privacy = extension.privacy
    prompt, more = privacy.vault.mask(prompt), privacy.vault.mask(more)
    with extension.undo.checkpointing(prompt, place.notebook, kept.kernel, place.document, run=live.id) as noted:
        company = request.company
        parts = await assemble(
            extension, settings, place, kept, noted, errand=request.errand, ground=ground, company=company
        )
        conversation = parts.conversation
        session = conversation.session
        gate = settings.policy(conversation.kept)
        allowed, said = extension.refusals.begin()
        for rule in allowed:
            gate.keep(rule)
        agent = await parts.agent(prompt, gate)
        tell_of_idle_rules(gate, agent.tools, place)
        untold, known = conversation.telling(), len(session.transcript)
        blocks = await parts.opening("\n\n".join(filter(None, (prompt, more))), said)
        wraps = [privacy.events]
        if company is not None:
            agent = company.joined(agent, place.view.show, session)
            wraps.append(company.events)
        events = run(agent, session, blocks, prompt=prompt, stop=live.stop, run_id=noted.run)
        ended = await drive(events, place.view.show, agent=agent, session=session, stop=live.stop, middleware=wraps)
        if isinstance(agent.model, RunModel):
            await agent.model.aclose()
        if len(session.transcript) == known:
            untold()
        session = session.newest
        if request.errand is None:
            cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
            beside = "" if ground.own else session.id
            extension.unfinished = unfinished(noted.run, cell, request.given, ended, beside)
        extension.hooks.rested(session.id)
        answer = Answer.of(ended, session.id, not_compared=kept.not_compared(ended))
        await conversation.learn(place.notebook, ended.cells)
    if noted.problem:  # of this run's undo, so no part of what is shown when the cell is run again
        problem = before_run(Noted, text=noted.problem)
        view.show(problem)
        session.log(problem)
    await kept.end(ended)
    return _Outcome(ended, answer)


def internal_error(extension: Extension, error: Exception) -> Refused:
    """Keep the traceback of a bug of ours for `%agent traceback` and return what to tell the person."""
    _log.error("the %%agent cell failed", exc_info=error)  # which keeps it
    return Refused(
        f"nbagent itself failed ({type(error).__name__}: {error}). %agent traceback shows where; "
        f"so does {extension.log.baseFilename}."
    )
