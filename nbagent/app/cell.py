"""Runs one `%%agent` cell: compose model, tools, policy, session and place; drive the loop; leave the record.

The one place where everything meets, and the order in which it does. Read `run_agent_cell`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from nbagent.app.answer import Answer, RunFailed
from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.options import parse
from nbagent.app.place import Place, find_place
from nbagent.config import WIDER_MODES, Settings
from nbagent.core.drive import drive
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.core.events import Reason, RunEnded
from nbagent.core.loop import run
from nbagent.core.ports import Approver, Model, Notebook, Question
from nbagent.core.run import Agent, Stop
from nbagent.core.tools import Tool, Toolset
from nbagent.models import open_model
from nbagent.models.catalog import DEFAULT_MODEL
from nbagent.tools import control, python, shell, variables, workspace
from nbagent.tools import notebook as notebook_tools
from nbagent.tools.results import ResultStore, capped

_log = logging.getLogger("nbagent")

EMPTY = "Write what the agent should do below the %%agent line, e.g. “Plot sales by month.” %%agent? lists the options."
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
    new = bool(options.pop("new", False))
    configured = extension.settings()
    settings = extension.settings(options)
    settings.limits()
    settings.policy()
    model = open_model(settings.model or DEFAULT_MODEL, base_url=settings.base_url or None)
    extension.number.keep()
    stop = extension.stop = Stop()
    try:
        async with find_place(extension.shell, stop.now) as place:
            try:
                settings = await _checked_mode(configured, settings, place.approver)
                ended = await _run(extension, settings, place, prompt, model=model, stop=stop, new=new)
            finally:
                place.finish()
    finally:
        extension.stop = None
    if ended.reason in {Reason.ERROR, Reason.INTERRUPTED}:
        raise RunFailed(ended.sentence)
    assert extension.answer is not None
    return extension.answer


async def _run(
    extension: Extension, settings: Settings, place: Place, prompt: str, *, model: Model, stop: Stop, new: bool
) -> RunEnded:
    make = _tools(extension, place.notebook, place.approver, settings)
    conversation = _conversation(extension, settings, make, place.notebook, new=new)
    policy = conversation.policy.with_mode(settings.mode)
    agent = Agent(
        model=model,
        tools=Toolset(capped(tool, conversation.results) for tool in make(conversation.results)),
        gate=policy,
        approver=place.approver,
        limits=settings.limits(),
        notebook=conversation.notebook,
    )
    blocks = await conversation.opening(prompt, place.notebook, settings.mode)
    events = run(agent, conversation.session, blocks, prompt=prompt, stop=stop, run_id=f"run-{secrets.token_hex(4)}")
    ended = await drive(events, place.view.show, agent=agent, session=conversation.session, stop=stop)
    extension.answer = Answer.of(ended, conversation.session.id)
    if place.notebook is not None:
        try:
            await conversation.learn(place.notebook)
        except NotebookError:
            _log.info("the page was gone when the run ended; the notebook is read anew next time")
    return ended


def _tools(
    extension: Extension, notebook: Notebook | None, approver: Approver, settings: Settings
) -> Callable[[ResultStore], list[Tool]]:
    """Return what makes the tools of a run: those of the kernel, the notebook if there is one, the folder, the person's own."""

    def make(results: ResultStore) -> list[Tool]:
        kernel, timeout = extension.kernel, settings.cell_timeout
        tools = [
            *variables.tools(kernel),
            *python.tools(kernel, timeout=timeout),
            *(notebook_tools.tools(notebook, kernel, timeout=timeout) if notebook is not None else ()),
            *workspace.tools(extension.folder),
            *shell.tools(extension.folder),
            *control.tools(approver, results),
        ]
        own = {tool.name for tool in extension.tools}
        return [tool for tool in tools if tool.name not in own] + extension.tools

    return make


def _conversation(
    extension: Extension,
    settings: Settings,
    make: Callable[[ResultStore], list[Tool]],
    notebook: Notebook | None,
    *,
    new: bool,
) -> Conversation:
    """Go on with this notebook's conversation, or begin one: asked to, none yet, or other tools than it was begun with."""
    path = notebook.path if notebook is not None else ""
    found = extension.conversations.get(path)
    if new or found is None or found.session.tools != Toolset(make(found.results)).params():
        found = Conversation.begin(settings, make, extension.folder, path)
        extension.conversations[path] = found
    extension.last = found
    return found


async def _checked_mode(configured: Settings, settings: Settings, approver: Approver) -> Settings:
    """Ask once before a wider mode that only the cell's text asks for is used: the notebook may be somebody else's."""
    from dataclasses import replace

    if settings.mode not in WIDER_MODES or settings.mode is configured.mode:
        return settings
    if not approver.present:
        raise ConfigError(
            f"--mode {settings.mode} in a cell needs a person to confirm it. Where nobody is there, set it outside the "
            f"notebook: NBAGENT_MODE={settings.mode}, or nbagent run --mode {settings.mode}."
        )
    yes = f"Use {settings.mode}"
    text = f"This cell asks for the mode {settings.mode}, in which more runs without asking you. Use it for this run?"
    keep = f"Stay with {configured.mode}"
    answer = await approver.question(Question(f"mode-{secrets.token_hex(4)}", text, (yes, keep)))
    return settings if answer == yes else replace(settings, mode=configured.mode)


def internal_error(extension: Extension, error: Exception) -> RunFailed:
    """Keep the traceback of a bug of ours for `%agent traceback` and return what to tell the person."""
    _log.error("the %%agent cell failed", exc_info=error)  # which keeps it
    return RunFailed(
        f"nbagent itself failed ({type(error).__name__}: {error}). %agent traceback shows where; "
        f"so does {extension.log.baseFilename}."
    )


def context_of(extension: Extension) -> dict[str, Any]:
    """Return what `%agent status` shows."""
    conversation = extension.last
    return {
        "running": extension.stop is not None,
        "session": conversation.session.id if conversation else None,
        "file": str(conversation.store.path) if conversation else None,
        "usage": conversation.session.usage if conversation else None,
        "cost": conversation.session.cost if conversation else None,
        "rules": [f"{r.action} {r}" for r in conversation.policy.rules] if conversation else [],
    }
