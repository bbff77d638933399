"""Runs one `%%agent` cell: what the person asked for → the events of a run → the view → the answer and the record.

The one place where everything meets, and the order in which it does. Read `run_agent_cell`.
"""

from __future__ import annotations

import asyncio
import difflib
import fnmatch
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nbagent.app.answer import Answer, Refused, RunFailed
from nbagent.app.checkpointing import Checkpointing
from nbagent.app.consent import before_run, consented
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.forks import fork, past_of
from nbagent.app.keptrun import KeptRun
from nbagent.app.model import model_of
from nbagent.app.options import parse
from nbagent.app.place import Place, Reins, find_place
from nbagent.app.replay import RunKey, offer, why_failed
from nbagent.app.restarts import gone_with
from nbagent.app.runtools import MakeTools, tools_of
from nbagent.app.undo_commands import show_desk
from nbagent.config import Settings
from nbagent.core.drive import drive
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted, Reason, RunEnded
from nbagent.core.loop import run
from nbagent.core.messages import Block, Json
from nbagent.core.policy import Policy
from nbagent.core.ports import Notebook
from nbagent.core.run import Agent, Stop
from nbagent.core.tools import Toolset
from nbagent.tools.ledger import Ledger
from nbagent.tools.results import capped

_log = logging.getLogger("nbagent")

EMPTY = "Write what the agent should do below the %%agent line, e.g. “Plot sales by month.” %%agent? lists the options."
OTHER_TOOLS = (
    "A new session began, because the tools are not those of the last one; it does not know what was said there."
)
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

    @property
    def new(self) -> bool:
        """Whether it begins a conversation of its own."""
        return bool(self.given.get("new"))

    async def prompt(self, notebook: Notebook | None) -> tuple[str, str]:
        """Return what people read of the prompt, and what the model is told more."""
        return (self.words, "") if self.compose is None else await self.compose(notebook, self.words)

    def key(self, prompt: str, more: str) -> RunKey:
        """By what finished runs of this cell are found."""
        text = f"{prompt}\n{more}".strip()
        return RunKey.of(text, self.given, self.settings.mode, again=self.compose is not None)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How the cell came to its end; `fails`: why it fails although its run did not."""

    ended: RunEnded
    answer: Answer
    fails: str = ""


@dataclass(frozen=True, slots=True)
class _Going:
    """One run as it goes: of what, where, with what, and what takes down what it reads (`kept`) and changes (`noted`)."""

    extension: Extension
    settings: Settings
    place: Place
    conversation: Conversation
    make: MakeTools
    kept: KeptRun
    noted: Checkpointing


async def run_agent_cell(extension: Extension, line: str, body: str, compose: Compose | None = None) -> Answer:
    """Run what the person wrote and return the answer; `compose` may make a prompt of it, of the notebook that is there.

    Raises ConfigError for what they must change first, RunFailed where the run could not finish, and what `compose` does.
    """
    request = _request(extension, line, body, compose)
    number, stop = extension.number.keep(), Stop()
    extension.begin(stop)
    task = asyncio.current_task()
    stop.bind(task.cancel if task is not None else None)
    try:
        reins = _reins(extension, stop, request.settings.cell_timeout)
        async with find_place(extension.shell, reins, extension.refusals, extension.silent) as place:
            extension.approver = place.approver
            place.notebook = place.notebook or extension.file
            try:
                outcome = await _shown_or_run(extension, request, place, stop)
                if place.patient:
                    show_desk(extension)
            finally:
                await place.finish(number)
            alone = not place.approver.present  # asked before the place closes: then nobody is there any more
    finally:
        extension.end()
    return _handed_over(extension, request, outcome, alone=alone)


def _request(extension: Extension, line: str, body: str, compose: Compose | None) -> _Request:
    """Check all that can be checked before anything is shown; raises `ConfigError`."""
    options, first = parse(line)
    words = "\n".join(text for text in (first, body.strip()) if text)
    if not words and compose is None:
        raise ConfigError(EMPTY)
    if extension.stop is not None:
        raise ConfigError(RUNNING)
    if extension.undo.lock.locked():
        raise ConfigError(TAKING_BACK)
    extension.wanted_again(options)
    settings = extension.settings(
        {name: value for name, value in options.items() if name not in {"new", "out", "again"}}
    )
    settings.limits()
    settings.policy()
    model_of(settings)
    return _Request(words, options, settings, compose)


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
    extension.number.give(outcome.answer)
    return outcome.answer


async def _shown_or_run(extension: Extension, request: _Request, place: Place, stop: Stop) -> _Outcome:
    """Show the record of the cell's finished run where it still counts, else run."""
    prompt, more = await request.prompt(place.notebook)
    key = request.key(prompt, more)
    if (shown := await offer(extension, place, request.settings, key)) is None:
        return await _run(extension, request, place, prompt, more, key=key, stop=stop)
    answer = Answer.of(shown.ended, shown.session, replayed=True, stale=shown.stale, not_compared=shown.not_compared)
    return _Outcome(shown.ended, answer, why_failed(shown.stale) if shown.fails else "")


async def _run(
    extension: Extension, request: _Request, place: Place, prompt: str, more: str, *, key: RunKey, stop: Stop
) -> _Outcome:
    """Run, with all that undo needs put by; keep the run if it finishes, so that the cell can be run again for nothing."""
    view, kept = place.view, KeptRun(extension, place, key)
    place.view = kept.view
    settings = await consented(extension, request.settings, place)
    with extension.undo.checkpointing(prompt, place.notebook, kept.kernel, place.document) as noted:
        make = tools_of(extension, noted.notebook, None if place.patient else settings.cell_timeout)
        conversation = await _conversation(extension, settings, make, place, new=request.new)
        kept.begin(conversation)
        going = _Going(extension, settings, place, conversation, make, kept, noted)
        told = "\n\n".join(filter(None, (prompt, more)))
        agent, blocks = await _agent_and_opening(going, told)
        events = run(agent, conversation.session, blocks, prompt=prompt, stop=stop, run_id=noted.run)
        ended = await drive(events, place.view.show, agent=agent, session=conversation.session, stop=stop)
        answer = Answer.of(ended, conversation.session.id, not_compared=kept.not_compared(ended))
        await conversation.learn(place.notebook, ended.cells)
    if noted.problem:  # of this run's undo, so no part of what is shown when the cell is run again
        said = before_run(Noted, text=noted.problem)
        view.show(said)
        conversation.session.log(said)
    await kept.end(ended)
    return _Outcome(ended, answer)


async def _agent_and_opening(going: _Going, told: str) -> tuple[Agent, list[Block]]:
    """Return the agent, and the message that a run begins with; what the person said of refused calls is in both."""
    conversation, place = going.conversation, going.place
    allowed, said = going.extension.refusals.begin()
    gate = going.settings.policy(conversation.kept)
    for rule in allowed:
        gate.keep(rule)
    if not conversation.session.transcript:
        said = [*said, *filter(None, [await gone_with(place.notebook, going.extension.shell)])]
    agent = _agent(going, gate)
    _tell_of_idle_rules(gate, agent.tools, place)
    return agent, await conversation.opening(told, place.notebook, going.settings.mode, said)


def _agent(going: _Going, gate: Policy) -> Agent:
    conversation, place, ledger = going.conversation, going.place, Ledger()
    made = going.make(conversation.results, conversation.seen, ledger, going.noted.kernel)
    tools = going.noted.tools(going.kept.tools(made), going.extension.tools)
    return Agent(
        model=model_of(going.settings),
        tools=Toolset(capped(tool, conversation.results) for tool in tools),
        gate=gate,
        approver=place.approver,
        limits=going.settings.limits(),
        notebook=lambda: place.notebook.path if place.notebook is not None else "",
        closing=lambda: ledger.closing(conversation.seen.listing or ()),
    )


def _tell_of_idle_rules(gate: Policy, tools: Toolset, place: Place) -> None:
    """A rule whose name is mistyped would silently do nothing."""
    for rule in gate.rules:
        if not fnmatch.filter(tools, rule.tool):
            near = difflib.get_close_matches(rule.tool, tools, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            place.view.show(before_run(Noted, text=f"The rule “{rule.action} {rule}” names no tool of this run.{hint}"))


async def _conversation(
    extension: Extension,
    settings: Settings,
    make: MakeTools,
    place: Place,
    *,
    new: bool,
) -> Conversation:
    """Go on with this notebook's conversation, or from before this cell's last run; or begin one.

    One begins where it is asked for, where there is none yet, and where the tools are others than it was begun with.
    """
    path = place.notebook.path if place.notebook is not None else ""
    found = extension.conversations.get(place.document)
    if found is not None:
        found.rename(path)
    changed = found is not None and found.session.tools != Toolset(make(found.results)).params()
    if not new and (past := await asyncio.to_thread(past_of, extension, place)) is not None:
        found, said = fork(past, settings, make, extension.folder, path, before=found)
        if said:
            place.view.show(before_run(Noted, text=said, level="info"))
    elif new or found is None or changed:
        if changed and not new:
            place.view.show(before_run(Noted, text=OTHER_TOOLS, level="info"))
        found = Conversation.begin(settings, make, extension.folder, path)
    extension.conversations[place.document] = found
    extension.last = found
    return found


def internal_error(extension: Extension, error: Exception) -> Refused:
    """Keep the traceback of a bug of ours for `%agent traceback` and return what to tell the person."""
    _log.error("the %%agent cell failed", exc_info=error)  # which keeps it
    return Refused(
        f"nbagent itself failed ({type(error).__name__}: {error}). %agent traceback shows where; "
        f"so does {extension.log.baseFilename}."
    )
