"""Hooks in a notebook: those of settings files and those that cells have made, a table of them for each session.

`%agent hooks` shows them. What a hook is and how it runs is told in extend/hooks*.py, when a run asks them in
core/hooking.py. Read `KernelHooks.hooked`.
"""

from __future__ import annotations

import asyncio
import atexit
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nbagent.app.hooks_ask import caller_of, judge_of
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event, Noted, State
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Json
from nbagent.core.payloads import CELL_EVENTS, HookEvent, Notification, PreToolUse, SessionEnd, Where
from nbagent.core.ports import Model, Notebook
from nbagent.core.run import Agent
from nbagent.core.session import Session
from nbagent.core.shown import visible_plain
from nbagent.extend.hooks import HookTable
from nbagent.extend.hooks_cells import WatchedNotebook
from nbagent.extend.hooks_exit import run_now
from nbagent.extend.hooks_files import Loaded, load
from nbagent.extend.hooks_python import hook_of
from nbagent.extend.hooks_run import Judge, Runners
from nbagent.extend.hooks_settings import Hook
from nbagent.extend.places import Places
from nbagent.extend.trust import Trust

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.extend.mcp import Servers

F = TypeVar("F", bound=Callable[..., Any])

IDLE_AFTER = 60.0
"""Seconds after the end of a run until it is an idle_prompt notification."""


class KernelHooks:
    """All hooks of one kernel. `places` tells where files lie; it is asked at each run, for the person may change them.

    `mcp` gives the kernel's MCP servers, None where there are none; `trust` what the person said of a project's files.
    """

    def __init__(
        self,
        places: Callable[[], Places],
        mcp: Callable[[], Servers] | None = None,
        trust: Callable[[Places], Trust] | None = None,
    ) -> None:
        self._places, self._mcp = places, mcp
        self._trust = trust or (lambda places: Trust(places.root, places.own / "trust"))
        self._python: list[Hook] = []
        self._tables: dict[str, tuple[HookTable, Where]] = {}
        self._of_document: dict[str, str] = {}
        self._loaded = Loaded()
        self._said: set[str] = set()
        self._idle: asyncio.Task[None] | None = None
        self._at_exit = False

    # ── which hooks there are ────────────────────────────────────────────────────────────────────────────────────────

    def register(self, hook: Hook) -> None:
        """Add a hook that a cell made; one of the same function at the same event is replaced."""
        same = (hook.event, hook.source.name, hook.matcher)
        self._python = [h for h in self._python if (h.event, h.source.name, h.matcher) != same] + [hook]
        for table, _ in self._tables.values():
            table.register(hook)

    def unregister(self, function: object) -> None:
        """Take away all hooks that call `function`."""
        self._python = [hook for hook in self._python if hook.function is not function]
        for table, _ in self._tables.values():
            table.add("python", [h for h in table.hooks if h.type == "python" and h.function is not function])

    def look(self) -> Loaded:
        """Read the settings files; raises `ConfigError` for one of the person's own that can't be read."""
        places = self._places()
        trust = self._trust(places)
        self._loaded = load(places, trust.holds, trust.changed)
        return self._loaded

    def table(self, session: str) -> HookTable | None:
        """Return the hooks of a session that has had a run here: a skill adds its own to them."""
        found = self._tables.get(session)
        return None if found is None else found[0]

    async def before(self, session: str, tool: str, given: Json) -> Verdict:
        """Ask a session's hooks about a call that the model does not make itself: a command that a skill's text has."""
        table, where = self._tables.get(session, (None, Where()))
        if table is None:
            return Verdict()
        payload = PreToolUse(tool_name=tool, tool_input=given, tool_use_id=f"skill-{secrets.token_hex(4)}")
        return await table.fire(payload, where, lambda _: None)

    # ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def watch(self, notebook: Notebook | None, show: Callable[[Event], None]) -> Notebook | None:
        """Read the hooks for a run, say what of them has no effect, and watch `notebook` if any wants to know of cells."""
        found = self.look()
        if self._idle is not None:
            self._idle.cancel()
        for sentence in found.problems:
            if sentence not in self._said:
                self._said.add(sentence)
                show(Noted(state=State.THINK, turn=0, at=0.0, text=sentence, level="warning"))
        wanted = any(hook.event in CELL_EVENTS for hook in (*found.hooks, *self._python))
        return WatchedNotebook(notebook) if notebook is not None and wanted else notebook

    async def hooked(
        self,
        agent: Agent,
        session: Session,
        *,
        transcript: Path,
        document: str,
        notebook: Notebook | None,
        new: bool,
        resumed: bool = False,
        named: Callable[[str], Model],
    ) -> Agent:
        """Return `agent` with the hooks of its session. Another session of this document ends here, if there was one.

        `notebook` is what `watch` returned, `new` whether the person asked for a new session, `resumed` whether it is one
        of an earlier kernel that goes on; `named` opens the model
        that a hook names.
        """
        places = self._places()
        runners = self._runners(places, judge_of(agent.model, named, session))
        before = self._of_document.get(document)
        self._of_document[document] = session.id
        ended = before not in {None, session.id}
        if ended and before is not None:
            await self._end(before, "clear" if new else "resume")
        begins = "" if session.id in self._tables else "startup"
        if begins and (len(session.transcript) or ended):
            begins = "clear" if new else "resume" if resumed else "fork"
        where = Where(session_id=session.id, transcript_path=str(transcript), cwd=str(places.folder))
        if begins:
            table = HookTable(runners, notebook=agent.notebook, spill=places.folder / ".nbagent" / "hooks")
            table.add("python", self._python)
        else:
            table = self._tables[session.id][0]
            table.use(runners, agent.notebook)
        table.add("settings", self._loaded.hooks)
        self._tables[session.id] = (table, where)
        if table.listens(HookEvent.SESSION_END) and not self._at_exit:
            self._at_exit = True
            atexit.register(self.end_now)
        deeds = notebook.take if isinstance(notebook, WatchedNotebook) else tuple
        return replace(agent, hooks=table, where=where, begins=begins, deeds=deeds)

    def _runners(self, places: Places, judge: Judge | None = None) -> Runners:
        found = self._loaded
        call = None if self._mcp is None else caller_of(self._mcp)
        return Runners(places.root, mcp=call, judge=judge, urls=found.urls, variables=found.variables)

    def rested(self, session: str) -> None:
        """A run has ended: if no other begins within a minute, that is a notification (idle_prompt)."""
        found = self._tables.get(session)
        if found is None or not found[0].listens(HookEvent.NOTIFICATION):
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.create_task(_idle(*found))

    def moved(self, before: str, after: str) -> None:
        """Say that the conversation of the session `before` goes on in the session `after`: its hooks stay as they are."""
        if (found := self._tables.pop(before, None)) is not None:
            self._tables[after] = (found[0], replace(found[1], session_id=after))
        self._of_document = {name: after if one == before else one for name, one in self._of_document.items()}

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _end(self, session: str, reason: str) -> None:
        table, where = self._tables.pop(session, (None, Where()))
        if table is not None:
            await table.fire(SessionEnd(reason=reason), where, lambda _: None)
            await table.close()

    def end_now(self, reason: str = "other") -> None:
        """Tell all sessions' hooks that the kernel, or nbagent in it, ends; a second time nothing happens."""
        tables, self._tables = self._tables, {}
        if self._idle is not None:
            self._idle.cancel()
        atexit.unregister(self.end_now)
        for table, where in tables.values():
            payload = SessionEnd(reason=reason)
            hooks = [h for h in table.hooks if h.event is HookEvent.SESSION_END and h.fits(reason)]
            if hooks:
                run_now(self._runners(self._places()), hooks, payload.to_json(where))

    # ── %agent hooks ─────────────────────────────────────────────────────────────────────────────────────────────────

    def describe(self) -> str:
        """Return all hooks for people, with what is wrong with them and what waits for trust."""
        found = self.look()
        lines = [_line(hook) for hook in (*found.hooks, *self._python)]
        text = "\n".join(lines) or "There are no hooks. Settings files can have some, and @nbagent.hook makes one here."
        notes = [*found.problems, *_waiting(found)]
        return "\n".join([text, "", *notes]) if notes else text


def kernel_hooks(extension: Extension) -> KernelHooks:
    """Return the hooks of a kernel; nothing is read yet."""
    return KernelHooks(lambda: extension.files.places, lambda: extension.mcp, lambda _: extension.trust)


def hook(
    event: str, *, match: str = "", timeout: float = 60.0, once: bool = False, on_failure: str = ""
) -> Callable[[F], F]:
    """Have a function asked at `event`: `@nbagent.hook("PreToolUse", match="run_*")`.

    It gets the event's fields as a dict, and may return a dict as in Claude Code's JSON output, or None. A plain function
    runs on the main thread like a cell, so it may use variables; an `async def` may wait. `match` names the tools that it
    is about, with `*`, several with `|`. One that raises, returns something else or takes longer than `timeout` seconds
    shuts its gate: you are asked. `on_failure`: "block" or "continue" instead. Running the cell again replaces the hook.

    Raises `ConfigError` for what is no event, where nbagent is not loaded, and while an agent runs.
    """

    def add(function: F) -> F:
        _current().register(hook_of(function, event, match=match, timeout=timeout, once=once, on_failure=on_failure))
        return function

    return add


def unhook(function: F) -> F:
    """Take away all hooks that call `function`, and return it; raises `ConfigError` as `hook` does."""
    _current().unregister(function)
    return function


def _current() -> KernelHooks:
    from IPython.core.getipython import get_ipython

    from nbagent.app.extension import current

    extension = current(get_ipython())
    # what runs during a run is the agent's code: it must not make itself a gate, or take one away
    if extension.agents_code:
        raise ConfigError("Hooks can't be made or taken away while an agent runs. Run that cell yourself, afterwards.")
    return extension.hooks


def command(extension: Extension, _: str) -> str:
    """Carry out `%agent hooks`."""
    return extension.hooks.describe()


def _waiting(found: Loaded) -> list[str]:
    """Return a sentence about the hooks of project files that wait for trust, or nothing."""
    if not found.inert:
        return []
    files = ", ".join(dict.fromkeys(power.file for power in found.inert))
    many = len(found.inert)
    return [f"Not used until you trust this folder's files (%agent trust): {many} hook{'s' * (many != 1)} in {files}."]


def _line(hook: Hook) -> str:
    matcher = hook.spec.get("match") if hook.type == "python" else hook.matcher
    on = f" {matcher}" if matcher else ""
    wrong = f"  (can't run: {hook.problem})" if hook.problem else ""
    return visible_plain(f"{hook.event}{on}  [{hook.type}] {hook.name}  from {hook.source.name}{wrong}").replace(
        "\n", " "
    )


async def _idle(table: HookTable, where: Where) -> None:
    try:
        async with asyncio.timeout(IDLE_AFTER):
            await asyncio.Event().wait()
    except TimeoutError:
        said = Notification(message="nbagent waits for your input", title="nbagent", notification_type="idle_prompt")
        await table.fire(said, where, lambda _: None)
