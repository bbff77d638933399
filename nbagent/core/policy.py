"""What is allowed, asked or denied without a person: modes, rules, and the order in which they speak.

A call is decided by: deny rules → ask rules → the mode → allow rules → the person. `TABLE` is the whole of the modes.
What a rule's pattern means is read by the tool's grammar (rules.py). For tools that run code a rule means the whole tool or
one exact text (`sha256:…`): a prefix of code says nothing about what the code does. Hooks come before all of this: `Hooked` wraps a `Gate` with what they said of one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from nbagent.core.hooks import Verdict
from nbagent.core.messages import Json
from nbagent.core.rules import Action, Rule, Spoken, grammar_of
from nbagent.core.tools import Kind, Tool


class Mode(StrEnum):
    """The preset that fills the gaps that rules leave."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept-edits"
    PLAN = "plan"
    READ_ONLY = "read-only"
    DONT_ASK = "dont-ask"
    BYPASS = "bypass"


WIDTH = {Mode.PLAN: 0, Mode.READ_ONLY: 0, Mode.DONT_ASK: 1, Mode.DEFAULT: 2, Mode.ACCEPT_EDITS: 3, Mode.BYPASS: 4}
"""How much may happen unasked in a mode."""

MODES: dict[str, Mode] = {
    "manual": Mode.DEFAULT, "acceptEdits": Mode.ACCEPT_EDITS, "dontAsk": Mode.DONT_ASK,
    "bypassPermissions": Mode.BYPASS, "auto": Mode.DEFAULT, **{str(mode): mode for mode in Mode},
}  # fmt: skip
"""Names of modes, Claude Code's and ours; its `auto` lets a classifier decide, and there is none here."""

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
    Kind.PUTS_BACK: ("ask", "ask", "deny", "deny", "deny", "allow"),
    Kind.PLAN: ("ask", "ask", "ask", "ask", "deny", "ask"),
    Kind.PROTECTED: ("ask", "ask", "deny", "deny", "deny", "ask"),
}

TABLE: dict[Kind, dict[Mode, Action]] = {kind: dict(zip(_COLUMNS, row, strict=True)) for kind, row in _ROWS.items()}
"""Which kind of call is allowed, asked or denied in which mode."""

_NO_RULE = frozenset({Kind.LONG_RUN, Kind.KEPT, Kind.PUTS_BACK, Kind.PLAN})
"""Kinds that no allow rule allows: what was agreed to once says nothing about the next time or the next plan."""


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
    "ask": "in mode {mode} you are asked first: {kind}",
    "deny": "mode {mode} does not allow this: {kind}",
}


class Policy:
    """The gate of modes and rules. `kept` grows by "Allow from now on"; a session hands it on from run to run."""

    def __init__(self, mode: Mode = Mode.DEFAULT, rules: tuple[Rule, ...] = (), kept: list[Rule] | None = None) -> None:
        self._mode = mode
        self._own = self._rules = rules
        self.kept = kept if kept is not None else []

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force: those given and those kept by "Allow from now on"."""
        return (*self._rules, *self.kept)

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._mode

    def change(self, mode: Mode) -> None:
        """Go on in another mode. Only the person's word may change it to a wider one."""
        self._mode = mode

    def keep(self, rule: str, action: Action = "allow") -> None:
        """Keep a rule for this session; the same rule twice is kept once."""
        parsed = Rule.parse(action, rule)
        if parsed not in self.rules:
            self.kept.append(parsed)

    def lend(self, rules: Sequence[Rule]) -> None:
        """Let `rules` hold as long as this gate: those of a skill end with the run that called it."""
        self._rules = (*self._rules, *(rule for rule in rules if rule not in self._rules))

    def apart(self) -> Policy:
        """Return this gate for a run that may outlive it: as it is now, without what was lent; what is kept is shared."""
        return Policy(self._mode, self._own, self.kept)

    def offers(self, tool: Tool, given: Json, kind: Kind) -> tuple[str, ...]:
        """Return the exact rules that could be kept for such a call of `kind`; none for a protected one."""
        if kind in {Kind.PROTECTED, *_NO_RULE}:
            return ()
        return grammar_of(tool).offers(tool, given)

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Decide by deny rules, ask rules, the mode, allow rules, in this order."""
        return decision_of(self._mode, self.rules, tool, given)


def decision_of(mode: Mode, rules: Sequence[Rule], tool: Tool, given: Json) -> Decision:
    """Decide about a call by deny rules, ask rules, the mode, allow rules, in this order."""
    kind, grammar = tool.kind(given), grammar_of(tool)
    if spoken := grammar.says("deny", rules, tool, given):
        return Decision("deny", f"rule: deny {spoken.told}", kind)
    if spoken := grammar.says("ask", rules, tool, given):
        return Decision("deny" if mode is Mode.DONT_ASK else "ask", f"rule: ask {spoken.told}", kind)
    by_mode = TABLE[kind][mode]
    said = _BY_MODE[by_mode].format(mode=mode, kind=kind)
    final = by_mode == "allow" or (by_mode == "deny" and mode is not Mode.DONT_ASK)
    if not final and (spoken := allowing(rules, tool, given, kind)):
        return Decision("allow", f"rule: allow {spoken.told}", kind)
    return Decision(by_mode, said, kind, may_open=not final and kind not in {Kind.PROTECTED, *_NO_RULE})


def allowing(rules: Sequence[Rule], tool: Tool, given: Json, kind: Kind) -> Spoken | None:
    """Return the allow rules that open a call of `kind`, None where there are none."""
    grammar = grammar_of(tool)
    rules = [rule for rule in rules if rule.action == "allow"]
    if kind in _NO_RULE:
        return None
    if kind is Kind.PROTECTED:  # it needs a rule of its own; code that ends the kernel is always asked
        rules = [] if tool.exact else [rule for rule in rules if grammar.opens(rule, tool, given)]
    elif kind is Kind.RISKY_CODE:  # the static look may raise a question that a rule for the whole tool had answered
        subject = tool.subject(given)
        rules = [rule for rule in rules if rule.is_exact(subject)]
    return grammar.says("allow", rules, tool, given)


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
