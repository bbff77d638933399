"""Asks hooks about one call before it runs: first whether it may, then, where a person would be asked, in their place.

What a hook puts in the place of the input is validated like the model's own, decided anew, and shown. Must not know who
decides (it is given). Read `Hooking.events`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from nbagent.core.calls import Ready, mcp_server
from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.events import Event, Noted
from nbagent.core.hooking import Firing, tell
from nbagent.core.hooks import Verdict, both
from nbagent.core.messages import Json
from nbagent.core.payloads import HookEvent, PermissionRequest, PreToolUse
from nbagent.core.policy import Decision
from nbagent.core.run import Run

Decide = Callable[[Run, Ready], Awaitable[tuple[Ready, Decision] | str]]


class Hooking:
    """One call before its hooks; afterwards `ready` is the call as they left it and `decided` what was decided of it.

    `final`: the person has written this input themselves and is not asked again; `rewritten` is the input that a hook
    wants in its place, as text ("" where none does).
    """

    def __init__(self, run: Run, ready: Ready, *, final: bool = False) -> None:
        self.ready = ready
        self.decided: tuple[Ready, Decision] | str = ""
        self.rewritten = ""
        self._run, self._final = run, final

    async def events(self, decide: Decide) -> AsyncGenerator[Event]:
        """Ask the hooks and decide; yield what they do."""
        run = self._run
        before = Firing(run, _before(self.ready), self.ready.id)
        async with aclosing(before.events()) as events:
            async for event in events:
                yield event
        tell(run, self.ready.id, HookEvent.PRE_TOOL_USE, before.verdict)
        if run.ending:
            return
        self.ready = self._given(self.ready, before.verdict)
        self.decided = await decide(run, self.ready)
        if self._final or isinstance(self.decided, str) or self.decided[1].action != "ask":
            return
        if not run.agent.hooks.listens(HookEvent.PERMISSION_REQUEST):
            return
        ready, decision = self.decided
        instead = Firing(run, _request(run, ready, decision), ready.id)
        async with aclosing(instead.events()) as events:
            async for event in events:
                yield event
        if run.ending:
            return
        if instead.verdict.decision:
            self.ready = self._answered(self.ready, instead.verdict)
            self.decided = await decide(run, self.ready)
            for event in _kept(run, self.decided, instead.verdict):
                yield event

    def _given(self, ready: Ready, verdict: Verdict) -> Ready:
        """Return the call with the input that hooks want, if they want another; nonsense instead of one is asked about."""
        ready = replace(ready, verdict=both(ready.verdict, replace(verdict, updated_input=None)))
        if verdict.updated_input is None or verdict.decision == "deny":
            return ready
        try:
            given = ready.tool.validate(verdict.updated_input)
        except ToolError as error:
            why = f"a hook wants another input for this call, but that one does not fit: {error}"
            return replace(ready, verdict=both(ready.verdict, Verdict("ask", (why,))))
        shown = {name: value for name, value in given.items() if value is not None or name in verdict.updated_input}
        if given == ready.given:
            return ready
        self.rewritten = json.dumps(shown, ensure_ascii=False, default=str)
        note = f"A hook changed the input of this call before it ran. This is what was used: {self.rewritten}"
        return replace(ready, given=given, shown=shown, note=note)

    def _answered(self, ready: Ready, verdict: Verdict) -> Ready:
        ready = replace(ready, answered=replace(verdict, updated_input=None))
        if verdict.decision != "allow" or verdict.updated_input is None:
            return ready
        changed = self._given(ready, Verdict(updated_input=verdict.updated_input))
        if changed.verdict.decision == "ask" and ready.verdict.decision != "ask":  # nonsense: then the person is asked
            return replace(changed, answered=Verdict())
        return changed


def _before(ready: Ready) -> PreToolUse:
    name = ready.tool.name
    return PreToolUse(tool_name=name, tool_input=ready.shown, tool_use_id=ready.id, mcp_server=mcp_server(name))


def _request(run: Run, ready: Ready, decision: Decision) -> PermissionRequest:
    offers = run.agent.gate.offers(ready.tool, ready.given, decision.kind)
    suggestions = tuple(_suggestion(offer) for offer in offers)
    return PermissionRequest(tool_name=ready.tool.name, tool_input=ready.shown, tool_use_id=ready.id,
                             permission_suggestions=suggestions)  # fmt: skip


def _suggestion(rule: str) -> Json:
    """Return a rule that "Allow from now on" could keep, as hooks know it."""
    tool, _, pattern = rule.partition("(")
    content = {"ruleContent": pattern.removesuffix(")")} if pattern else {}
    return {"type": "addRules", "rules": [{"toolName": tool, **content}], "behavior": "allow", "destination": "session"}


def _kept(run: Run, decided: tuple[Ready, Decision] | str, verdict: Verdict) -> list[Event]:
    """Keep the rules that a hook wants kept with its yes, if the yes counts; return what the person sees of it."""
    if isinstance(decided, str) or decided[1].action != "allow":
        return []
    said: list[Event] = []
    for action, rule in verdict.rules:
        try:
            run.agent.gate.keep(rule, action)
            said.append(run.event(Noted, text=f"A hook keeps a rule for this session: {action} {rule}", level="info"))
        except ConfigError as error:
            said.append(run.event(Noted, text=f"A hook wants a rule that is none: {error}"))
    return said
