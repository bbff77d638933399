"""What a subagent may do: what its parent may, less what its kind leaves out. Nothing here can open anything.

The parent's gate decides first; then the kind's tools, its mode and whether it only looks may turn an allow into an ask,
and either into a deny. Read `Narrowed.decide`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.core.policy import MODES, TABLE, Decision, Gate, Mode
from nbagent.core.rules import Action, Rule, grammar_of
from nbagent.core.tools import Kind, Tool

ALWAYS = frozenset({"read_result"})
"""Tools that no kind is without: a long result is cut, and this shows the rest."""

_OVERRULE = frozenset({Mode.BYPASS, Mode.ACCEPT_EDITS})
"""Modes of the parent that a kind's own mode does not change (as in Claude Code)."""
_NARROW = frozenset({Mode.PLAN, Mode.READ_ONLY, Mode.DONT_ASK})
_RANK: dict[Action, int] = {"deny": 0, "ask": 1, "allow": 2}


def chosen(tools: Iterable[Tool], spec: AgentSpec) -> list[Tool]:
    """Return those of `tools` that a subagent of this kind has; raises `ConfigError` for a text that is no rule."""
    only, without = _rules("allow", spec.tools or ()), _rules("deny", spec.disallowed_tools)
    gone = [rule for rule in without if rule.pattern is None]
    return [
        tool
        for tool in tools
        if tool.name in ALWAYS
        or (
            (spec.tools is None or any(rule.speaks_of(tool.name) for rule in only))
            and not any(rule.speaks_of(tool.name) for rule in gone)
        )
    ]


def _rules(action: Action, texts: Iterable[str]) -> tuple[Rule, ...]:
    return tuple(Rule.parse(action, text) for text in texts)


class Narrowed:
    """The gate of a subagent: that of its parent, made narrower by its kind."""

    def __init__(self, gate: Gate, spec: AgentSpec) -> None:
        if spec.permission_mode and spec.permission_mode not in MODES:
            raise ConfigError(f"The agent {spec.name} names a mode that there is not: {spec.permission_mode!r}.")
        self._gate, self._spec = gate, spec
        self._wanted = MODES.get(spec.permission_mode)
        self._only, self._without = _rules("allow", spec.tools or ()), _rules("deny", spec.disallowed_tools)

    @property
    def mode(self) -> Mode:
        """The mode in force: the parent's, or that of the kind where it is narrower and the parent's does not overrule it."""
        parent, wanted = self._gate.mode, self._wanted
        if wanted is None or wanted not in _NARROW or parent in _OVERRULE or parent in {Mode.PLAN, Mode.READ_ONLY}:
            return parent
        return wanted

    def offers(self, tool: Tool, given: Json, kind: Kind) -> tuple[str, ...]:
        """Return what the parent's gate offers."""
        return self._gate.offers(tool, given, kind)

    def keep(self, rule: str, action: Action = "allow") -> None:
        """Keep a rule for the session, as the person wants it: for the parent, too."""
        self._gate.keep(rule, action)

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Decide as the parent's gate does, then take away what the kind leaves out."""
        decision = await self._gate.decide(tool, given)
        if decision.action == "deny" and not decision.may_open:
            return decision
        if why := self._left_out(tool, given, decision.kind):
            return replace(decision, action="deny", rule=f"agent {self._spec.name}: {why}", may_open=False)
        return self._by_mode(decision)

    def _left_out(self, tool: Tool, given: Json, kind: Kind) -> str:
        """Why a call is none for this kind of subagent, "" where it is."""
        if self._spec.only_looks and kind is not Kind.READ:
            return f"it only looks, and does not {kind}"
        grammar = grammar_of(tool)
        if found := grammar.says("deny", self._without, tool, given):
            return f"it may not use {found.told}"
        if self._spec.tools is None or tool.name in ALWAYS:
            return ""
        if grammar.says("allow", self._only, tool, given):
            return ""
        named = ", ".join(str(rule) for rule in self._only if rule.speaks_of(tool.name))
        return f"it may use {named} only" if named else f"{tool.name} is none of its tools"

    def _by_mode(self, decision: Decision) -> Decision:
        mode = self.mode
        if mode is self._gate.mode:
            return decision
        if mode is Mode.DONT_ASK:  # what a rule allows it still may
            word: Action = "deny" if decision.action == "ask" else decision.action
        else:
            word = TABLE[decision.kind][mode]
        if _RANK[word] > _RANK[decision.action] or (word == decision.action != "deny"):
            return decision
        said = f"agent {self._spec.name} works in the mode {mode}: {decision.kind}"
        return replace(decision, action=word, rule=said, may_open=False)
