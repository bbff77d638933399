"""Runs one `%%agent` cell: compose model, tools, policy, session and place; drive the loop; leave the record.

The one place where everything meets, and the order in which it does. Read `run_agent_cell`.
"""

from __future__ import annotations

import asyncio
import difflib
import fnmatch
import logging
import secrets
from collections.abc import Callable
from typing import Protocol

from nbagent.app.answer import Answer, Refused, RunFailed
from nbagent.app.consent import before_run, consented
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.options import parse
from nbagent.app.place import Place, Reins, find_place
from nbagent.config import Settings
from nbagent.core.drive import drive
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted, Reason, RunEnded
from nbagent.core.loop import run
from nbagent.core.policy import Policy
from nbagent.core.ports import Model, Notebook
from nbagent.core.run import Agent, Stop
from nbagent.core.tools import Tool, Toolset
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
RUNNING = "An agent is running in this kernel already. Wait for it, or stop it first; one run at a time."


async def run_agent_cell(extension: Extension, line: str, body: str) -> Answer:
    """Run what the person wrote and return the answer.

    Raises ConfigError for what they must change first, and RunFailed where the run could not finish.
    """
    options, first = parse(line)
    prompt = "\n".join(text for text in (first, body.strip()) if text)
    if not prompt:
        raise ConfigError(EMPTY)
    if extension.stop is not None:
        raise ConfigError(RUNNING)
    new, out = bool(options.pop("new", False)), str(options.pop("out", ""))
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
        reins = Reins(stop.now, stop.spare, lambda: stop.now(Reason.CELL_GONE), extension.later, settings.cell_timeout)
        async with find_place(extension.shell, reins, extension.refusals) as place:
            extension.approver = place.approver
            try:
                settings = await consented(extension, settings, place)
                ended = await _run(extension, settings, place, prompt, stop=stop, new=new)
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
    extension.number.give(extension.answer)
    return extension.answer


async def _run(
    extension: Extension, settings: Settings, place: Place, prompt: str, *, stop: Stop, new: bool
) -> RunEnded:
    make = _tools(extension, place.notebook, None if place.patient else settings.cell_timeout)
    conversation = _conversation(extension, settings, make, place, new=new)
    gate, ledger = settings.policy(conversation.kept), Ledger()
    allowed, said = extension.refusals.begin()
    for rule in allowed:
        gate.keep(rule)
    agent = Agent(
        model=_model(settings),
        tools=Toolset(
            capped(tool, conversation.results) for tool in make(conversation.results, conversation.seen, ledger)
        ),
        gate=gate,
        approver=place.approver,
        limits=settings.limits(),
        notebook=lambda: place.notebook.path if place.notebook is not None else "",
        closing=lambda: ledger.closing(conversation.seen.listing or ()),
    )
    _tell_of_idle_rules(gate, agent.tools, place)
    blocks = await conversation.opening(prompt, place.notebook, settings.mode, said)
    events = run(agent, conversation.session, blocks, prompt=prompt, stop=stop, run_id=f"run-{secrets.token_hex(4)}")
    ended = await drive(events, place.view.show, agent=agent, session=conversation.session, stop=stop)
    extension.answer = Answer.of(ended, conversation.session.id)
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
    """Makes the tools of a run; without `seen` and `ledger` only to tell which there are."""

    def __call__(self, results: ResultStore, seen: Seen | None = None, ledger: Ledger | None = None) -> list[Tool]: ...


def _tools(extension: Extension, notebook: Notebook | None, timeout: float | None) -> _Make:
    """Return what makes the tools of a run: those of the kernel, the notebook if there is one, the folder, the person's own."""

    def make(results: ResultStore, seen: Seen | None = None, ledger: Ledger | None = None) -> list[Tool]:
        kernel = extension.kernel
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
            *workspace.tools(extension.folder),
            *shell.tools(extension.folder),
            *control.tools(results),
        ]
        own = {tool.name for tool in extension.tools}
        return [tool for tool in tools if tool.name not in own] + extension.tools

    return make


def _conversation(
    extension: Extension,
    settings: Settings,
    make: Callable[[ResultStore], list[Tool]],
    place: Place,
    *,
    new: bool,
) -> Conversation:
    """Go on with this notebook's conversation, or begin one: asked to, none yet, or other tools than it was begun with."""
    path = place.notebook.path if place.notebook is not None else ""
    found = extension.conversations.get(place.document)
    if found is not None:
        found.rename(path)
    changed = found is not None and found.session.tools != Toolset(make(found.results)).params()
    if changed and not new:
        place.view.show(before_run(Noted, text=OTHER_TOOLS, level="info"))
    if new or found is None or changed:
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
