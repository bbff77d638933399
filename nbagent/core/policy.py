"""What is allowed, asked or denied without a person: modes, rules, and the order in which they speak.

A call is decided by: deny rules → ask rules → the mode → allow rules → the person. `TABLE` is the whole of the modes.
For tools that run code a rule means the whole tool or one exact text (`sha256:…`): a prefix of code says nothing about
what the code does. Hooks come before all of this: `Hooked` wraps a `Gate` with what they said of one call.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, Protocol

from nbagent.core.errors import ConfigError
from nbagent.core.hooks import Verdict
from nbagent.core.messages import Json
from nbagent.core.ports import text_hash
from nbagent.core.tools import Kind, Tool

Action = Literal["allow", "ask", "deny"]


class Mode(StrEnum):
    """The preset that fills the gaps that rules leave."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept-edits"
    PLAN = "plan"
    READ_ONLY = "read-only"
    DONT_ASK = "dont-ask"
    BYPASS = "bypass"


_COLUMNS = (Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.PLAN, Mode.READ_ONLY, Mode.DONT_ASK, Mode.BYPASS)

_ROWS: dict[Kind, tuple[Action, ...]] = {
    Kind.READ: ("allow", "allow", "allow", "allow", "allow", "allow"),
    Kind.SCRATCH: ("ask", "ask", "ask", "ask", "deny", "allow"),
    Kind.EDIT_CELL: ("ask", "allow", "deny", "deny", "deny", "allow"),
    Kind.RUN_CELL: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.RUN_ALL: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.LONG_RUN: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.KEPT: ("ask", "ask", "deny", "deny", "deny", "ask"),
    Kind.WRITE_FILE: ("ask", "allow", "deny", "deny", "deny", "allow"),
    Kind.SHELL: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.MCP: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.SHELL_READ: ("ask", "ask", "ask", "ask", "deny", "allow"),
    Kind.RISKY_CODE: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.PROTECTED: ("ask", "ask", "deny", "deny", "deny", "ask"),
}

TABLE: dict[Kind, dict[Mode, Action]] = {kind: dict(zip(_COLUMNS, row, strict=True)) for kind, row in _ROWS.items()}
"""Which kind of call is allowed, asked or denied in which mode."""

_NO_RULE = frozenset({Kind.LONG_RUN, Kind.KEPT})
"""Kinds that no allow rule allows: what was agreed to once says nothing about the time that it takes again."""

_RULE = re.compile(r"^\s*([A-Za-z0-9_*-]+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """`tool` or `tool(pattern)`: the calls that it speaks of."""

    action: Action
    tool: str
    pattern: str | None = None

    @classmethod
    def parse(cls, action: Action, text: str) -> Rule:
        """Read `tool` or `tool(pattern)`; raise `ConfigError` where it is neither."""
        found = _RULE.match(text)
        if not found or found[2] == "":
            raise ConfigError(
                f"{text!r} is not a rule. Write a tool's name, or name(pattern), e.g. write_file(data/*)."
            )
        return cls(action, found[1], found[2])

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def matches(self, tool: Tool, subject: str) -> bool:
        """Whether the rule speaks of a call of `tool` on `subject`."""
        if not fnmatch.fnmatchcase(tool.name, self.tool):
            return False
        if self.pattern is None:
            return True
        if self.pattern.startswith("sha256:"):
            return self.pattern[7:] == text_hash(subject)
        if tool.exact:
            return self.pattern == subject or (self.action != "allow" and _stands_in(self.pattern, subject))
        return fnmatch.fnmatchcase(posixpath.normpath(subject), posixpath.normpath(self.pattern))

    def is_exact(self, subject: str) -> bool:
        """Whether the pattern names this one subject, literally or by its hash."""
        return self.pattern is not None and self.pattern in {subject, f"sha256:{text_hash(subject)}"}


def _stands_in(pattern: str, text: str) -> bool:
    """Whether `pattern` fits the whole text or a part of it: what asks or denies may reach further than what allows."""
    parts = [text, *re.split(r"[;&|\n()`]+", text)]
    return any(fnmatch.fnmatchcase(part.strip(), pattern) for part in parts)


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to a call of `kind`, and which rule or mode says so, as a person would read it.

    The kind is asked of the tool once a decision: tools bind what runs to what they saw then. `may_open`: only the mode
    speaks against the call, so that an allow rule, or a hook that allows, would have answered for the person.
    """

    action: Action
    rule: str
    kind: Kind
    may_open: bool = False


class Gate(Protocol):
    """Decides about a call before it runs."""

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Return what happens to a call of `tool` with validated input `given`."""
        ...

    def offers(self, tool: Tool, given: Json, kind: Kind) -> tuple[str, ...]:
        """Return the exact rules that "Allow from now on" could keep for such a call of `kind`, narrowest first."""
        ...

    def keep(self, rule: str, action: Action = "allow") -> None:
        """Keep a rule for this session; raise `ConfigError` where the text is no rule."""
        ...

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        ...


_BY_MODE = {
    "allow": "mode {mode} allows this: {kind}",
    "ask": "mode {mode} asks before this: {kind}",
    "deny": "mode {mode} does not allow this: {kind}",
}


class Policy:
    """The gate of modes and rules. `kept` grows by "Allow from now on"; a session hands it on from run to run."""

    def __init__(self, mode: Mode = Mode.DEFAULT, rules: tuple[Rule, ...] = (), kept: list[Rule] | None = None) -> None:
        self._mode = mode
        self._rules = rules
        self.kept = kept if kept is not None else []

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force: those given and those kept by "Allow from now on"."""
        return (*self._rules, *self.kept)

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._mode

    def keep(self, rule: str, action: Action = "allow") -> None:
        """Keep a rule for this session; the same rule twice is kept once."""
        parsed = Rule.parse(action, rule)
        if parsed not in self.rules:
            self.kept.append(parsed)

    def offers(self, tool: Tool, given: Json, kind: Kind) -> tuple[str, ...]:
        """Return the exact rules that could be kept for such a call of `kind`; none for a protected one."""
        if kind in {Kind.PROTECTED, *_NO_RULE}:
            return ()
        subject = tool.subject(given)
        if not subject:
            return (tool.name,)
        fits = not tool.exact and len(subject) <= 200 and "\n" not in subject and not set(subject) & set("*?[")
        narrow = f"{tool.name}({subject if fits else f'sha256:{text_hash(subject)}'})"
        return (narrow, tool.name)

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Decide by deny rules, ask rules, the mode, allow rules, in this order."""
        kind, subject = tool.kind(given), tool.subject(given)
        by_action = {a: [r for r in self.rules if r.action == a and r.matches(tool, subject)] for a in ("deny", "ask")}
        if by_action["deny"]:
            return Decision("deny", f"rule: deny {by_action['deny'][0]}", kind)
        if by_action["ask"]:
            quiet = self._mode is Mode.DONT_ASK
            return Decision("deny" if quiet else "ask", f"rule: ask {by_action['ask'][0]}", kind)
        by_mode = TABLE[kind][self._mode]
        said = _BY_MODE[by_mode].format(mode=self._mode, kind=kind)
        final = by_mode == "allow" or (by_mode == "deny" and self._mode is not Mode.DONT_ASK)
        if not final and (rule := self._allowing(tool, subject, kind)):
            return Decision("allow", f"rule: allow {rule}", kind)
        return Decision(by_mode, said, kind, may_open=not final and kind not in {Kind.PROTECTED, *_NO_RULE})

    def _allowing(self, tool: Tool, subject: str, kind: Kind) -> Rule | None:
        if kind in _NO_RULE:
            return None
        for rule in self.rules:
            if rule.action != "allow" or not rule.matches(tool, subject):
                continue
            if kind is Kind.PROTECTED and (tool.exact or not rule.is_exact(subject)):
                continue  # a protected path needs a rule of its own; code that ends the kernel is always asked
            if kind is Kind.RISKY_CODE and not rule.is_exact(subject):
                continue  # the static look may raise a question that a rule for the whole tool had answered
            return rule
        return None


@dataclass(frozen=True, slots=True)
class Hooked:
    """A gate behind hooks: what they `said` before this call, and `answered` where a person would be asked.

    A hook's deny is final; its ask is asked about whatever the rules and the mode say; its allow stands in for an allow
    rule: it opens what only the mode keeps shut, never a deny or an ask rule, and no protected path.
    """

    gate: Gate
    said: Verdict
    answered: Verdict

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Decide as the gate does, in the order hooks → deny → ask → mode → allow → hooks in the person's place."""
        return judged(await self.gate.decide(tool, given), self.said, self.answered, self.gate.mode)


def judged(decision: Decision, said: Verdict, answered: Verdict, mode: Mode) -> Decision:
    """Return the gate's `decision` with what hooks `said` before the call and `answered` in the person's place."""
    word = said.decision
    if word == "deny":
        return replace(decision, action="deny", rule=f"hook: {said.reason}", may_open=False)
    if decision.action == "deny" and not decision.may_open:
        return decision
    if word == "ask":
        decision = replace(
            decision, action="deny" if mode is Mode.DONT_ASK else "ask", rule=f"hook: {said.reason}", may_open=False
        )
    elif word == "allow" and decision.may_open:
        return replace(decision, action="allow", rule=f"hook: {said.reason}", may_open=False)
    if decision.action != "ask":
        return decision
    if answered.decision == "deny" or (answered.decision == "allow" and decision.may_open):
        return replace(decision, action=answered.decision, rule=f"hook: {answered.reason}", may_open=False)
    return decision


def table_text() -> str:
    """Return the tool × mode table as aligned plain text."""
    head = ["", *map(str, _COLUMNS)]
    rows = [[str(kind), *(TABLE[kind][mode] for mode in _COLUMNS)] for kind in TABLE]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]
    )
