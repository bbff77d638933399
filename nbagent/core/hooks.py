"""Hooks as the core knows them: what they say to what happened (a verdict), and the port that asks them.

Pure values: who runs a hook, and how, is in extend/; where a run asks them is in `hooking`; what they are told is in
`payloads`. Read `Verdict`, then `fold`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, Protocol

from nbagent.core.messages import Json
from nbagent.core.payloads import HookEvent, Payload, Where

# ── what hooks say ───────────────────────────────────────────────────────────────────────────────────────────────────

Word = Literal["", "allow", "ask", "deny"]
_RANK: dict[Word, int] = {"": 0, "allow": 1, "ask": 2, "deny": 3}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one hook says, or what several say together (`fold`); the empty one says nothing.

    `decision` is about a call's permission; `reasons` say why, in whole phrases with the hook's name. `block` holds back
    what the event is about (a prompt, a stop, a task): its reasons, () where nothing is blocked. `context` is told to the
    model, `messages` to the person. `stop` ends the run, with this sentence. `failed` says which hooks gave no answer.
    `updated_input` replaces a call's whole input, `updated_output` what the model sees of its result. `interrupt`: a
    denied permission ends the run as well. `rules` are to be kept for the session, as (action, rule).
    """

    decision: Word = ""
    reasons: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    stop: str = ""
    failed: tuple[str, ...] = ()
    updated_input: Json | None = None
    updated_output: tuple[Any] | None = None
    interrupt: bool = False
    rules: tuple[tuple[Literal["allow", "ask", "deny"], str], ...] = ()
    title: str = ""
    opening: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why it was decided so, in one text."""
        return "; ".join(dict.fromkeys(self.reasons))

    @property
    def why_blocked(self) -> str:
        """The reasons for holding it back, "" where nothing is blocked."""
        return "\n".join(dict.fromkeys(self.block))


def both(one: Verdict, other: Verdict) -> Verdict:
    """Return what two hooks say together: deny before ask before allow; of two new inputs (titles) the later one."""
    stronger = max(one, other, key=lambda verdict: _RANK[verdict.decision])
    same = _RANK[one.decision] == _RANK[other.decision]
    return Verdict(
        decision=stronger.decision,
        reasons=(*one.reasons, *other.reasons) if same else stronger.reasons,
        block=(*one.block, *other.block),
        context=(*one.context, *other.context),
        messages=(*one.messages, *other.messages),
        stop=one.stop or other.stop,
        failed=(*one.failed, *other.failed),
        updated_input=one.updated_input if other.updated_input is None else other.updated_input,
        updated_output=one.updated_output if other.updated_output is None else other.updated_output,
        interrupt=one.interrupt or other.interrupt,
        rules=(*one.rules, *other.rules),
        title=other.title or one.title,
        opening=(*one.opening, *other.opening),
    )


def fold(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what all `verdicts` say together, in their order."""
    return reduce(both, verdicts, Verdict())


# ── the port ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Outcome = Literal["ok", "allow", "ask", "deny", "block", "stop", "failed", "background"]
"""How a hook ended, in one word; `background`: it goes on beside the run."""


@dataclass(frozen=True, slots=True)
class Began:
    """A hook begins; `name` is how people know it, `message` what to show meanwhile (may be empty)."""

    id: str
    name: str
    event: HookEvent
    message: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """A hook has ended. `sentence` says what came of it (may be empty), `output` what it printed, cut."""

    id: str
    name: str
    event: HookEvent
    outcome: Outcome
    sentence: str
    seconds: float
    output: str = ""


Report = Callable[[Began | Finished], None]


class Hooks(Protocol):
    """Asks the hooks of a session. Never raises for what a hook does: a hook that fails is part of the verdict."""

    def listens(self, event: HookEvent) -> bool:
        """Whether any hook might answer to `event`: where not, nothing has to be prepared for it."""
        ...

    async def fire(self, payload: Payload, where: Where, report: Report) -> Verdict:
        """Ask all hooks that fit, side by side, and return what they say together; raise `Interrupted` if a person did so."""
        ...


@dataclass(slots=True)
class NoHooks:
    """The double of the port: answers what was written down for an event, else nothing; `fired` is what it was told."""

    verdicts: dict[HookEvent, Verdict] = field(default_factory=dict[HookEvent, Verdict])
    fired: list[Payload] = field(default_factory=list[Payload])

    def listens(self, event: HookEvent) -> bool:
        """Whether an answer was written down for `event`."""
        return event in self.verdicts

    async def fire(self, payload: Payload, where: Where, report: Report) -> Verdict:  # noqa: ARG002  (the port's shape)
        """Return the answer that was written down."""
        self.fired.append(payload)
        return self.verdicts.get(payload.event, Verdict())
