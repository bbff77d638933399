"""Where a stepped run rests: after each event, at the next turn, or at a breakpoint; never inside a reply.

Pure: values and a fold of events, no clock, no waiting, no screen. A reply that has begun is read to its end first, so that no
server waits for us. Read `walk`, then `rests`; who waits is in `pacer`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from nbagent.core import events as ev
from nbagent.core.errors import ConfigError
from nbagent.core.event import State
from nbagent.core.events import AgentReported, CallStarted, Event, RunEnded, innermost

DELTAS = (ev.TextDelta, ev.ThinkingDelta, ev.InputDelta)
"""Pieces of a reply that streams in; what they say is whole in the `ReplyEnded`."""

_ASKED = (ev.ApprovalAsked, ev.QuestionAsked)
"""Here the run waits for a person by itself; before it is pulled again nobody could answer."""

_STATES = {str(state).lower(): state for state in State}
_TYPES = tuple(sorted(kind.type for kind in vars(ev).values() if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event))  # fmt: skip
_TOOL = "tool:"


class Until(StrEnum):
    """How far a run goes before it rests by itself; at a breakpoint it rests in any case."""

    EVENT = "event"
    TURN = "turn"
    PLAY = "play"


@dataclass(frozen=True, slots=True)
class Break:
    """A breakpoint: the main run comes into a state, an event of a type is reported, or a call of a tool is about to run."""

    kind: Literal["state", "event", "tool"]
    name: str

    def __str__(self) -> str:
        return f"{_TOOL}{self.name}" if self.kind == "tool" else self.name

    def hit(self, before: State | None, event: Event) -> bool:
        """Whether a run rests at `event` for this; `before` is the state that it was in until then."""
        match self.kind:
            case "state":
                return event.state is _STATES[self.name] and before is not event.state
            case "event":
                return self.name in {event.type, innermost(event).type}
            case "tool":
                inner = innermost(event)
                return isinstance(inner, CallStarted) and fnmatchcase(inner.name, self.name)


def breaks_of(text: str) -> tuple[Break, ...]:
    """Return the breakpoints in a text like `act,call_ended,tool:run_python` ("" has none); raises `ConfigError` for what is none."""
    return tuple(_break_of(part) for part in (part.strip() for part in text.split(",")) if part)


def _break_of(text: str) -> Break:
    if text.startswith(_TOOL) and (name := text.removeprefix(_TOOL).strip()):
        return Break("tool", name)
    if text.lower() in _STATES:
        return Break("state", text.lower())
    if text in _TYPES:
        return Break("event", text)
    meant = text.lower().replace("tool_", "call_")
    near = difflib.get_close_matches(meant, [*_STATES, *_TYPES, _TOOL], 1, 0.5)
    hint = f"Did you mean {near[0]}{'NAME' if near[0] == _TOOL else ''}? " if near else ""
    raise ConfigError(
        f"{text!r} is no breakpoint. {hint}A breakpoint is a state ({', '.join(_STATES)}), tool:NAME, or the type of an event, such as call_ended."
    )


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a run has come: the state and turn of its last event, and whether it may rest after that.

    `replies` are those that stream in now, by the path of subagents that leads to them. `due` are the breakpoints that were
    hit and not rested at yet. `over`: that was the run's last event.
    """

    state: State | None = None
    turn: int = 0
    replies: frozenset[tuple[str, ...]] = frozenset()
    due: tuple[Break, ...] = ()
    may_rest: bool = False
    over: bool = False


def walk(before: Walk, event: Event, breaks: tuple[Break, ...] = ()) -> Walk:
    """Return `before` with one more event taken in."""
    path, inner = _path(event)
    replies = before.replies
    match inner:
        case ev.ReplyStarted():
            replies |= {path}
        case ev.ReplyEnded() | ev.ReplyDiscarded() | ev.RequestSent():
            replies -= {path}
        case RunEnded():  # also those below: nothing of them comes any more
            replies = frozenset(open_ for open_ in replies if open_[: len(path)] != path)
        case _:
            pass
    rested_in_vain = () if before.may_rest else before.due
    hit = tuple(each for each in breaks if each not in rested_in_vain and each.hit(before.state, event))
    return Walk(
        state=event.state,
        turn=event.turn,
        replies=replies,
        due=(*rested_in_vain, *hit),
        may_rest=not replies and not isinstance(inner, (*DELTAS, *_ASKED)),
        over=isinstance(event, RunEnded),
    )


def _path(event: Event) -> tuple[tuple[str, ...], Event]:
    """Return by which subagents an event came, and the event that the innermost of them reports."""
    path: list[str] = []
    while isinstance(event, AgentReported):
        path.append(event.agent_id)
        event = event.event
    return tuple(path), event


def rests(now: Walk, until: Until, turn: int) -> str:
    """Return why a run rests here, "" where it goes on; `turn` is the one in which the person said how far to go."""
    if not now.may_rest:
        return ""
    if now.due:
        return f"breakpoint {now.due[0]}"
    if until is Until.EVENT:
        return "the run is over" if now.over else "one step"
    if until is Until.TURN and (now.turn > turn or now.over):
        return "the run is over" if now.over else "a new turn"
    return ""


def is_step(event: Event) -> bool:
    """Whether an event is a step of its own to look back at, and no piece of a reply."""
    return not isinstance(innermost(event), DELTAS)
