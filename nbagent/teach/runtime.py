"""Be the runtime: for each call of a recorded model the learner says what the runtime does with it, and hears what ours did.

Nothing here validates or decides: a real run is made (or was recorded), and this is a fold of its events. So what is compared is
what `core/dispatch.py`, `core/policy.py` and `core/loop.py` did. Must not know of widgets. Read `handled`, then `BeTheRuntime`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.events import CallDecided, CallEnded, Event, ReplyEnded, RequestSent, RunEnded, Status
from nbagent.core.messages import Json, plain_text
from nbagent.core.ports import Answered
from nbagent.core.tools import Tool
from nbagent.models.scripted import Scripted
from nbagent.teach.bench import Says, bench
from nbagent.teach.exercises import Outcome


@dataclass(frozen=True, slots=True)
class Handled:
    """One call and what the runtime did: `decision` is allow, ask or deny ("" for an invalid call), `rule` what decided."""

    turn: int
    name: str
    input: Json
    valid: bool
    decision: str
    rule: str
    result: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class HandledReply:
    """One reply: its words, its calls, whether the loop went on after it, and the reason of the end where it did not."""

    words: str
    calls: tuple[Handled, ...]
    goes_on: bool
    reason: str


def handled(events: Iterable[Event]) -> tuple[HandledReply, ...]:
    """Return what was done with each reply of a run. Pure."""
    replies: list[ReplyEnded] = []
    decided: dict[str, CallDecided] = {}
    ended: dict[str, CallEnded] = {}
    requests, reason = 0, ""
    for event in events:
        match event:
            case RequestSent():
                requests += 1
            case ReplyEnded():
                replies.append(event)
            case CallDecided():
                decided[event.call_id] = event
            case CallEnded():
                ended[event.call_id] = event
            case RunEnded():
                reason = str(event.reason)
            case _:
                pass
    return tuple(
        HandledReply(
            plain_text([block for block in reply.content if block.get("type") == "text"]),
            tuple(
                _handled(reply.turn, block, decided.get(str(block["id"])), ended[str(block["id"])])
                for block in reply.content
                if block.get("type") == "tool_use" and str(block["id"]) in ended
            ),
            goes_on=place < requests,
            reason="" if place < requests else reason,
        )
        for place, reply in enumerate(replies, 1)
    )


def _handled(turn: int, block: Json, decided: CallDecided | None, ended: CallEnded) -> Handled:
    return Handled(
        turn, str(block.get("name")), block.get("input") or {}, ended.status is not Status.INVALID,
        decided.action if decided is not None else "", decided.rule if decided is not None else "",
        plain_text(list(ended.content)), ended.status is not Status.OK,
    )  # fmt: skip


async def played(
    script: Sequence[Scripted], tools: Sequence[Tool], *, mode: str = "default", prompt: str = "Go"
) -> tuple[HandledReply, ...]:
    """Run a script in the real loop, with Yes to what it asks, and return what was done with each reply."""
    return handled(await bench(script, tools, mode=mode, approver=Says(Answered(True))).collect(prompt))


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to say: `ask` names the method, `call` is what it is about (None: the whole reply)."""

    ask: str
    reply: HandledReply
    call: Handled | None = None


class BeTheRuntime:
    """Asks the learner, call by call: valid? which decision? which result? and after each reply: does the loop go on?

    Show the object to see what waits. Each answer says whether it is right, and what our runtime did; a wrong one may be given again.
    """

    def __init__(self, replies: Iterable[HandledReply], *, mode: str = "default") -> None:
        self.mode = mode
        self._steps = [step for reply in replies for step in _steps(reply)]
        self._place = 0
        self._missed: set[int] = set()

    @classmethod
    async def of(
        cls, script: Sequence[Scripted], tools: Sequence[Tool], *, mode: str = "default", prompt: str = "Go"
    ) -> BeTheRuntime:
        """Play `script` with `tools` once in the real loop, and ask about it."""
        return cls(await played(script, tools, mode=mode, prompt=prompt), mode=mode)

    @property
    def done(self) -> bool:
        """Whether all was answered."""
        return self._place >= len(self._steps)

    @property
    def score(self) -> str:
        """How many answers were right at the first try."""
        missed = sum(place < self._place for place in self._missed)
        return f"{self._place - missed} of {self._place} right at the first try"

    def valid(self, answer: bool) -> Outcome:
        """Say whether the call that waits is valid: is there such a tool, and do the arguments fit its schema?"""
        call = self._waiting("valid")
        if isinstance(call, Outcome):
            return call
        why = (
            "it names a tool that is there, and its arguments fit the schema."
            if call.valid
            else f"the model gets: {call.result}"
        )
        return self._told(answer is call.valid, f"the call is {'valid' if call.valid else 'not valid'}: {why}")

    def decide(self, answer: str) -> Outcome:
        """Say what the mode makes of a valid call: "allow", "ask" (a person) or "deny"."""
        call = self._waiting("decide")
        if isinstance(call, Outcome):
            return call
        if answer not in {"allow", "ask", "deny"}:
            return Outcome("", passed=False, said=f'a decision is "allow", "ask" or "deny", not {answer!r}.')
        return self._told(answer == call.decision, f"the policy says {call.decision} ({call.rule}).")

    def result(self, text: str, *, error: bool = False) -> Outcome:
        """Give the result that goes back to the model; `error` marks it as one that says what went wrong."""
        call = self._waiting("result")
        if isinstance(call, Outcome):
            return call
        ours = f"our runtime sent {'an error' if call.is_error else 'the result'}: {call.result}"
        if error is not call.is_error:
            said = (
                "this result is an error, and must be marked as one"
                if call.is_error
                else "this call worked: its result is no error"
            )
            return self._told(False, f"{said}; {ours}")
        if call.is_error:
            return self._told(
                _names_it(text, call),
                f"an error result says what was wrong, by its name, so that the model can mend it; {ours}",
            )
        return self._told(text.strip() == call.result.strip(), ours)

    def go_on(self, answer: bool) -> Outcome:
        """Say whether the loop asks the model again after this reply."""
        step = self._step("go_on")
        if isinstance(step, Outcome):
            return step
        reply = step.reply
        why = (
            "the reply had calls, so the model must see their results."
            if reply.goes_on
            else f"the run ends here ({reply.reason})."
        )
        return self._told(answer is reply.goes_on, f"{'it goes on' if reply.goes_on else 'it ends'}: {why}")

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        head, *rest = self._lines()
        body = "".join(
            f"<div style='margin:2px 0;font-family:monospace;overflow-wrap:anywhere'>{html.escape(line)}</div>"
            for line in rest
        )
        return (
            "<div style='border-left:4px solid #1976d2;padding:4px 10px;margin:4px 0'>"
            f"<b>{html.escape(head)}</b>{body}</div>"
        )

    def _lines(self) -> list[str]:
        if self.done:
            return ["All is done.", self.score]
        step = self._steps[self._place]
        said = [f"The model says: {step.reply.words}"] if step.reply.words else []
        if step.call is None:
            return ["You are the runtime. The results are sent.", *said, f"Next: {_HOW['go_on']}"]
        shown = json.dumps(step.call.input, ensure_ascii=False)
        return [
            f"You are the runtime, in mode {self.mode}. Turn {step.call.turn}.",
            *said,
            f"The model calls: {step.call.name} {shown}",
            f"Next: {_HOW[step.ask]}",
        ]

    def _step(self, ask: str) -> _Step | Outcome:
        if self.done:
            return Outcome("", passed=False, said="all is done: there is nothing to answer any more.")
        step = self._steps[self._place]
        if step.ask != ask:
            return Outcome("", passed=False, said=f"first: {_HOW[step.ask]}")
        return step

    def _waiting(self, ask: str) -> Handled | Outcome:
        step = self._step(ask)
        if isinstance(step, Outcome):
            return step
        assert step.call is not None, "only go_on is about a whole reply"
        return step.call

    def _told(self, right: bool, said: str) -> Outcome:
        if right:
            self._place += 1
        else:
            self._missed.add(self._place)
        return Outcome("", passed=right, said=said)


_HOW = {
    "valid": "is the call valid? .valid(True) or .valid(False)",
    "decide": 'what does the policy say in this mode? .decide("allow"), .decide("ask") or .decide("deny")',
    "result": 'which result does the model get? .result("text"), and .result("text", error=True) for an error',
    "go_on": "does the loop ask the model again? .go_on(True) or .go_on(False)",
}


def _steps(reply: HandledReply) -> list[_Step]:
    steps: list[_Step] = []
    for call in reply.calls:
        asks = ("valid", "decide", "result") if call.valid else ("valid", "result")
        steps += [_Step(ask, reply, call) for ask in asks]
    return [*steps, _Step("go_on", reply)]


def _names_it(text: str, call: Handled) -> bool:
    """Whether an error says what it is about: the tool, an argument or its value, or that it was not allowed."""
    said = text.casefold()
    values: list[Any] = [value for value in call.input.values() if isinstance(value, str) and value.strip()]
    names = [call.name, *call.input, *map(str, values)]
    denied = call.decision == "deny" and any(word in said for word in ("not allowed", "denied"))
    return len(text.split()) > 2 and (denied or any(name.casefold() in said for name in names))
