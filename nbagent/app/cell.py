"""Runs one `%%agent` cell: compose model, tools, policy, session and place; drive the loop; leave the record.

The one place where everything meets, and the order in which it does. Read `run_agent_cell`.
"""

from __future__ import annotations

import asyncio
import difflib
import fnmatch
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from nbagent.app.answer import Answer, Refused, RunFailed
from nbagent.app.checkpointing import Checkpointing
from nbagent.app.consent import before_run, consented
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.forks import fork, past_of
from nbagent.app.keptrun import KeptRun
from nbagent.app.options import parse
from nbagent.app.place import Place, Reins, find_place
from nbagent.app.replay import RunKey, Shown, offer, why_failed
from nbagent.app.restarts import gone_with
from nbagent.app.undo_commands import show_desk
from nbagent.config import Settings
from nbagent.core.drive import drive
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted, Reason, RunEnded
from nbagent.core.loop import run
from nbagent.core.policy import Policy
from nbagent.core.ports import Kernel, Model, Notebook
from nbagent.core.run import Agent, Stop
from nbagent.core.tools import Tool, Toolset
from nbagent.jupyter.figures import with_figures
from nbagent.models import open_model
from nbagent.models.catalog import DEFAULT_MODEL
from nbagent.tools import control, python, shell, variables, workspace
from nbagent.tools import notebook as notebook_tools
from nbagent.tools.ledger import Ledger
from nbagent.tools.results import ResultStore, capped
from nbagent.tools.seen import Seen

_log = logging.getLogger("nbagent")

EMPTY = "Write what the agent should do below the %%agent line, e.g. “Plot sales by month.” %%agent? lists the options."
OTHER_TOOLS = (
    "A new session began, because the tools are not those of the last one; it does not know what was said there."
)
TAKING_BACK = "A run is being taken back right now. Run this cell again when that is done."
RUNNING = "An agent is running in this kernel already. Wait for it, or stop it first; one run at a time."


Compose = Callable[[Notebook | None, str], Awaitable[tuple[str, str]]]
"""Makes the prompt of a run where it takes place, of the person's words: what people read, and what the model is told more."""


async def run_agent_cell(extension: Extension, line: str, body: str, compose: Compose | None = None) -> Answer:
    """Run what the person wrote and return the answer; `compose` may make a prompt of it, of the notebook that is there.

    Raises ConfigError for what they must change first, RunFailed where the run could not finish, and what `compose` does.
    """
    options, first = parse(line)
    prompt = "\n".join(text for text in (first, body.strip()) if text)
    if not prompt and compose is None:
        raise ConfigError(EMPTY)
    if extension.stop is not None:
        raise ConfigError(RUNNING)
    if extension.undo.lock.locked():
        raise ConfigError(TAKING_BACK)
    extension.wanted_again(options)
    given = dict(options)
    new, out, _ = bool(options.pop("new", False)), str(options.pop("out", "")), options.pop("again", None)
    settings = extension.settings(options)
    settings.limits()
    settings.policy()
    _model(settings)  # a wrong name is told before anything is shown
    number = extension.number.keep()
    stop = Stop()
    extension.begin(stop)
    task = asyncio.current_task()
    stop.bind(task.cancel if task is not None else None)
    try:
        reins = Reins(
            stop.now, stop.spare, lambda: stop.now(Reason.CELL_GONE), extension.waiting, settings.cell_timeout
        )
        async with find_place(extension.shell, reins, extension.refusals, extension.silent) as place:
            extension.approver = place.approver
            place.notebook = place.notebook or extension.file
            try:
                prompt, more = (prompt, "") if compose is None else await compose(place.notebook, prompt)
                key = RunKey.of(f"{prompt}\n{more}".strip(), given, settings.mode, again=compose is not None)
                if (shown := await offer(extension, place, settings, key)) is None:
                    ended = await _kept_run(extension, settings, place, prompt, key, more=more, stop=stop, new=new)
                else:
                    ended, extension.answer = shown.ended, _shown_answer(shown)
                if place.patient:
                    show_desk(extension)
            finally:
                await place.finish(number)
            alone = not place.approver.present  # asked before the place closes: then nobody is there any more
    finally:
        extension.end()
    assert extension.answer is not None
    if out:
        extension.shell.user_ns[out] = extension.answer
    stopping = {Reason.ERROR, Reason.INTERRUPTED, Reason.CELL_GONE}
    if alone:  # nobody reads why it stopped: the cells below must not run on half a job
        stopping = set(Reason) - {Reason.END_TURN}
    if ended.reason in stopping:
        raise RunFailed(ended.sentence)
    if shown is not None and shown.fails:
        raise RunFailed(why_failed(shown.stale))
    extension.number.give(extension.answer)
    return extension.answer


def _shown_answer(shown: Shown) -> Answer:
    return Answer.of(shown.ended, shown.session, replayed=True, stale=shown.stale, not_compared=shown.not_compared)


async def _kept_run(
    extension: Extension,
    settings: Settings,
    place: Place,
    prompt: str,
    key: RunKey,
    *,
    more: str,
    stop: Stop,
    new: bool,
) -> RunEnded:
    """Run, and keep the run if it finishes, so that the cell can be run again for nothing."""
    kept = KeptRun(extension, place, key)
    place.view = kept.view
    settings = await consented(extension, settings, place)
    with extension.undo.checkpointing(prompt, place.notebook, kept.kernel, place.document) as noted:
        ended = await _run(extension, settings, place, prompt, kept, noted, more=more, stop=stop, new=new)
    if noted.problem:
        place.view.show(before_run(Noted, text=noted.problem))
    await kept.end(ended)
    return ended


async def _run(
    extension: Extension,
    settings: Settings,
    place: Place,
    prompt: str,
    kept: KeptRun,
    noted: Checkpointing,
    *,
    more: str,
    stop: Stop,
    new: bool,
) -> RunEnded:
    make = _tools(extension, noted.notebook, None if place.patient else settings.cell_timeout)
    conversation = _conversation(extension, settings, make, place, new=new)
    kept.begin(conversation)
    gate, ledger = settings.policy(conversation.kept), Ledger()
    allowed, said = extension.refusals.begin()
    if not conversation.session.transcript:
        said = [*said, *filter(None, [await gone_with(place.notebook, extension.shell)])]
    for rule in allowed:
        gate.keep(rule)
    agent = Agent(
        model=_model(settings),
        tools=Toolset(
            capped(tool, conversation.results)
            for tool in noted.tools(
                kept.tools(make(conversation.results, conversation.seen, ledger, noted.kernel)), extension.tools
            )
        ),
        gate=gate,
        approver=place.approver,
        limits=settings.limits(),
        notebook=lambda: place.notebook.path if place.notebook is not None else "",
        closing=lambda: ledger.closing(conversation.seen.listing or ()),
    )
    _tell_of_idle_rules(gate, agent.tools, place)
    blocks = await conversation.opening("\n\n".join(filter(None, (prompt, more))), place.notebook, settings.mode, said)
    events = run(agent, conversation.session, blocks, prompt=prompt, stop=stop, run_id=noted.run)
    ended = await drive(events, place.view.show, agent=agent, session=conversation.session, stop=stop)
    extension.answer = Answer.of(ended, conversation.session.id, not_compared=kept.not_compared(ended))
    await conversation.learn(place.notebook, ended.cells)
    return ended


def _model(settings: Settings) -> Model:
    return open_model(settings.model or DEFAULT_MODEL, base_url=settings.base_url or None)


def _tell_of_idle_rules(gate: Policy, tools: Toolset, place: Place) -> None:
    """A rule whose name is mistyped would silently do nothing."""
    for rule in gate.rules:
        if not fnmatch.filter(tools, rule.tool):
            near = difflib.get_close_matches(rule.tool, tools, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            place.view.show(before_run(Noted, text=f"The rule “{rule.action} {rule}” names no tool of this run.{hint}"))


class _Make(Protocol):
    """Makes the tools of a run; without `seen`, `ledger` and the kernel that they work `on` only to tell which there are."""

    def __call__(
        self, results: ResultStore, seen: Seen | None = None, ledger: Ledger | None = None, on: Kernel | None = None
    ) -> list[Tool]: ...


def _tools(extension: Extension, notebook: Notebook | None, timeout: float | None) -> _Make:
    """Return what makes the tools of a run: those of the kernel, the notebook if there is one, the folder, the person's own."""

    def make(
        results: ResultStore, seen: Seen | None = None, ledger: Ledger | None = None, on: Kernel | None = None
    ) -> list[Tool]:
        kernel = on or extension.kernel
        tools = [
            *variables.tools(kernel),
            *python.tools(kernel, timeout=timeout),
            *(
                notebook_tools.tools(
                    notebook, kernel, timeout=timeout, seen=seen, ledger=ledger, times=extension.timer.times
                )
                if notebook is not None
                else ()
            ),
            *workspace.tools(extension.folder, notebook),
            *shell.tools(extension.folder),
            *control.tools(results),
        ]
        own = {tool.name for tool in extension.tools}
        return [tool for tool in tools if tool.name not in own] + [with_figures(tool) for tool in extension.tools]

    return make


def _conversation(
    extension: Extension,
    settings: Settings,
    make: Callable[[ResultStore], list[Tool]],
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
    if not new and (past := past_of(extension, place)) is not None:
        found, said = fork(past, settings, make, extension.folder, path)
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
