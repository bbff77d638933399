"""Runs one `%%agent` cell: what the person asked for → the events of a run → the view → the answer and the record.

The one place where everything meets, and the order in which it does. Read `agent_cell`; what a run is in itself is told
in onerun.py, what becomes of one that goes on in the background in background.py.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace

from nbagent.app.agents import Errand
from nbagent.app.answer import Answer, Refused
from nbagent.app.asked import is_asked
from nbagent.app.background import Handle, beside, new_run, shown_again, stays_in_its_cell
from nbagent.app.company import Company
from nbagent.app.continuing import GoingOn, going_on
from nbagent.app.extension import Extension
from nbagent.app.model import fallback_of, model_of
from nbagent.app.onerun import Compose, Outcome, Ready, Request, go, prepared, settings_of
from nbagent.app.options import parse
from nbagent.app.place import Place, Reins, find_place
from nbagent.app.recording import check
from nbagent.app.skills import forked
from nbagent.app.underway import LiveRun
from nbagent.app.undo_commands import show_desk
from nbagent.core.errors import ConfigError
from nbagent.core.events import Reason
from nbagent.core.messages import Usage
from nbagent.core.run import Stop

_log = logging.getLogger("nbagent")

EMPTY_ASK = (
    "Write the question below the %%ask line, e.g. “Why has df 3 rows fewer than raw?” %%ask? lists the options."
)
EMPTY = "Write what the agent should do below the %%agent line, e.g. “Plot sales by month.” %%agent? lists the options."
TAKING_BACK = "A run is being taken back right now. Run this cell again when that is done."
RUNNING = "An agent is running in this kernel already. Wait for it, or stop it first; one run at a time, but for those in the background."
NAMELESS = "--name goes with --background: it is what that agent is called."


async def run_agent_cell(
    extension: Extension, line: str, body: str, compose: Compose | None = None, company: Company | None = None
) -> Answer:
    """Run what the person wrote to its end and return the answer, also of a run in the background; else as `agent_cell`."""
    made = await agent_cell(extension, line, body, compose, company=company)
    return made if isinstance(made, Answer) else await made


async def agent_cell(
    extension: Extension,
    line: str,
    body: str,
    compose: Compose | None = None,
    *,
    errand: Errand | None = None,
    company: Company | None = None,
) -> Answer | Handle:
    """Run what the person wrote and return the answer, or what stands for it while the run goes on in the background.

    `compose` may make a prompt of their words, of the notebook that is there. An `errand` is done by a subagent, beside the
    conversation; a run in `company` is that of a team's lead or teammate.
    Raises ConfigError for what they must change first, RunFailed where the run could not finish, and what `compose` does.
    """
    if (running := shown_again(extension)) is not None:
        return running
    if compose is None and errand is None and extension.wanted_to_go_on():
        compose = going_on(extension, in_its_cell=True)
    request = replace(_request(extension, line, body, compose, errand), company=company)
    if request.given.get("dry_run"):
        return await _dry_run(extension, request)
    number, live = extension.number.keep(), new_run(extension, request)
    extension.begin(live)
    task = asyncio.current_task()
    live.stop.bind(task.cancel if task is not None else None)
    try:
        outcome, alone = await _in_its_place(extension, request, live, number)
    finally:
        if live.task is None:  # else it goes on
            extension.underway.remove(live)
    return _handed_over(extension, request, outcome, alone=alone)


async def _in_its_place(
    extension: Extension, request: Request, live: LiveRun, number: int
) -> tuple[Outcome | Handle, bool]:
    """Run where the cell is; return how it ended, or that it goes on, and whether nobody is there to read it."""
    async with AsyncExitStack() as closing:
        place = await closing.enter_async_context(_place(extension, live, request.settings.cell_timeout))
        live.approver, live.view = place.approver, place.live
        extension.underway.changed()
        place.notebook = place.notebook or extension.file
        stays_in_its_cell(live, place)
        if place.patient:
            show_desk(extension)  # before the run: the tray hangs in it
        begun: Outcome | Ready | None = None
        try:
            begun = await prepared(extension, request, place, live)
            if isinstance(begun, Ready) and live.background:
                return await beside(extension, begun, closing, number), False
            outcome = await go(begun) if isinstance(begun, Ready) else begun
        finally:
            if live.task is None:
                if isinstance(begun, Ready):
                    begun.parts.besides.end(number)
                await place.finish(number)
                if isinstance(begun, Ready):  # also where the run has failed: those beside it still work in its place
                    await _left_to_those_beside(begun, place, closing)
        alone = not place.approver.present  # asked before the place closes: then nobody is there any more
    return outcome, alone


async def _left_to_those_beside(run: Ready, place: Place, closing: AsyncExitStack) -> None:
    """Leave the place of a run that has ended to its subagents in the background, as long as they go on."""
    if run.parts.besides.live:
        await place.leave_cell()
        run.parts.besides.keep(closing.pop_all())
    else:
        await run.parts.besides.wait()


def _place(extension: Extension, live: LiveRun, limit: float | None) -> AbstractAsyncContextManager[Place]:
    stop = live.stop
    reins = Reins(stop.now, stop.spare, lambda: stop.now(Reason.CELL_GONE), extension.waiting, limit)
    return find_place(extension.shell, reins, extension.refusals, extension.silent, extension.host)


async def _dry_run(extension: Extension, request: Request) -> Answer:
    """Show what the cell would send; the answer says that nothing was."""
    from nbagent.app.dryrun import HEAD, NO_ERRAND, dry_run

    if request.errand is not None:
        raise ConfigError(NO_ERRAND)
    async with _place(extension, LiveRun("", "", "", "", Stop()), None) as place:
        place.notebook = place.notebook or extension.file
        words, more = await request.prompt(place.notebook)
        told = "\n\n".join(filter(None, (words, more)))
        await dry_run(extension, request.settings, place, told, request.given)
    return Answer(HEAD, "dry_run", Usage(), 0.0, 0, (), "")


def _request(extension: Extension, line: str, body: str, compose: Compose | None, errand: Errand | None) -> Request:
    """Check all that can be checked before anything is shown; raises `ConfigError`."""
    options, first = parse(line)
    options = compose.options(options) if isinstance(compose, GoingOn) else options
    words = "\n".join(text for text in (first, body.strip()) if text)
    if not words and compose is None:
        raise ConfigError(EMPTY_ASK if is_asked(options) else EMPTY)
    if extension.stop is not None:
        raise ConfigError(RUNNING)
    if extension.undo.lock.locked():
        raise ConfigError(TAKING_BACK)
    if options.get("name") and not options.get("background"):
        raise ConfigError(NAMELESS)
    check(options)
    extension.wanted_again(options)
    errand = errand or forked(extension, words)
    settings = settings_of(extension, options, words)
    settings.limits()
    settings.policy()
    model_of(settings)
    fallback_of(settings)
    if options.get("background") and (full := extension.underway.full(settings.background_agents)):
        raise ConfigError(full)
    return Request(words, options, settings, compose, errand)


def _handed_over(extension: Extension, request: Request, outcome: Outcome | Handle, *, alone: bool) -> Answer | Handle:
    """Return what the cell's value is, under its name and its number too; raises `RunFailed` where cells below must not run."""
    value = outcome if isinstance(outcome, Handle) else outcome.answer
    if out := str(request.given.get("out", "")):
        extension.shell.user_ns[out] = value
    if isinstance(outcome, Outcome):
        outcome.check(alone=alone)
        if request.errand is not None:
            extension.errands.append(request.errand.heard(request.words, outcome.answer.text))
    extension.number.give(value)
    return value


def internal_error(extension: Extension, error: Exception) -> Refused:
    """Keep the traceback of a bug of ours for `%agent traceback` and return what to tell the person."""
    _log.error("the %%agent cell failed", exc_info=error)  # which keeps it
    return Refused(
        f"nbagent itself failed ({type(error).__name__}: {error}). %agent traceback shows where; "
        f"so does {extension.log.baseFilename}."
    )
