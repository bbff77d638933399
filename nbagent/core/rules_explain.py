"""Why a call would be allowed, asked about or denied: every step of the evaluation, in the words of the decision itself.

Pure, and decided by the same functions that decide when it counts (policy.py). Read `explain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nbagent.core.messages import Json
from nbagent.core.policy import TABLE, Decision, Mode, allowing, decision_of
from nbagent.core.rules import Rule, grammar_of
from nbagent.core.tools import Kind, Tool

_SAYS = {"allow": "runs without a question", "ask": "you are asked", "deny": "does not run"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happens to one call, and each step that led to it: its name and what it found."""

    call: str
    decision: Decision
    steps: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it, for people."""
        width = max(len(name) for name, _ in self.steps)
        lines = [f"{self.call}", f"→ {self.decision.action}: {_SAYS[self.decision.action]} ({self.decision.rule})", ""]
        lines += [f"{name.ljust(width)}  {said}" for name, said in self.steps]
        if self.notes:
            lines += ["", "Its parts, and the allow rules:", *(f"  {note}" for note in self.notes)]
        return "\n".join(lines)


def explain(mode: Mode, rules: Sequence[Rule], tool: Tool, given: Json) -> Explanation:
    """Decide about a call of `tool` with validated input `given` and say why. Hooks are not asked: they may run something."""
    decision, grammar = decision_of(mode, rules, tool, given), grammar_of(tool)
    kind = decision.kind
    denied, asked = (grammar.says(action, rules, tool, given) for action in ("deny", "ask"))
    allowed = allowing(rules, tool, given, kind)
    by_mode = TABLE[kind][mode]
    steps = [
        ("hooks", "are asked when it happens: PreToolUse may deny, ask or allow"),
        ("deny rules", denied.told if denied else "none speaks of it"),
        ("ask rules", asked.told if asked else "none speaks of it"),
        ("mode", f"{mode}: {by_mode} ({kind})"),
        ("allow rules", allowed.told if allowed else _none(kind, rules, tool)),
        ("you", _person(decision, mode)),
    ]
    return Explanation(tool.title(given), decision, tuple(steps), grammar.notes(rules, tool, given))


def _none(kind: Kind, rules: Sequence[Rule], tool: Tool) -> str:
    if any(rule.action == "allow" and rule.speaks_of(tool.name) for rule in rules):
        why = {
            Kind.PROTECTED: "none counts: what is protected needs a rule of its own, or is always asked about",
            Kind.RISKY_CODE: "none counts: code like this needs a rule with its exact text",
            Kind.LONG_RUN: "none counts: what takes long is always asked about",
            Kind.PUTS_BACK: "none counts: where a secret goes is always asked about",
            Kind.KEPT: "none counts: what you marked is always asked about",
        }
        return why.get(kind, "none allows all of it")
    return "none speaks of it"


def _person(decision: Decision, mode: Mode) -> str:
    if decision.action == "ask":
        return "are asked; where nobody is there, it is denied"
    return "are not asked" if mode is not Mode.DONT_ASK else "are never asked in the mode dont-ask"
