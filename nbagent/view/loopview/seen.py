"""The fold of a run's events to what the loop view shows: the path, the transcript with its turns, requests, replies, what it took.

Pure and frozen; never raises, whatever the order of the events. A step costs O(new): what was seen before is kept, not made anew.
Knows nothing of HTML. Read `LoopSeen`, then `see`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nbagent.core import events as ev
from nbagent.core.events import Event, State, Status
from nbagent.core.messages import Json, Message, Usage
from nbagent.core.summary import SUM_UP

if TYPE_CHECKING:
    from collections.abc import Iterable


_PIECES = (ev.TextDelta, ev.ThinkingDelta, ev.InputDelta)


@dataclass(frozen=True, slots=True)
class Step:
    """One stay in a state: in which turn, and how many events it gave, pieces of a reply not counted."""

    turn: int
    state: State
    events: int = 1


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the transcript. `turn`: the one whose request brought it, or whose reply it is.

    `sent` is false for a message that was appended and has not gone to the model yet.
    """

    message: Message
    turn: int
    sent: bool = True

    @property
    def role(self) -> str:
        """Who speaks: user or assistant."""
        return str(self.message.get("role"))


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: `messages[first:upto]` of the transcript were sent, the last `new` of them for the first time.

    `prefix` is the hash of all of them, with those of earlier runs. `summing`: it asked for a summary of the conversation, with
    words that are no part of the transcript. `tries` counts how often it was sent.
    """

    turn: int
    model: str
    host: str
    prefix: str
    first: int
    upto: int
    new: int
    tries: int = 1
    summing: bool = False


@dataclass(frozen=True, slots=True)
class Replied:
    """One whole reply; `place` is its message in the transcript."""

    turn: int
    content: tuple[Json, ...]
    stop_reason: str
    usage: Usage
    cost: float | None
    place: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn took. `cost` is in US dollars, None where a price is not known; `calls` are names with how each ended ("" while open)."""

    number: int
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    requests: int = 0
    replies: int = 0
    discarded: int = 0
    stop_reason: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    summed: bool = False

    @property
    def took_in(self) -> int:
        """Tokens that the model read: fresh, from the cache, and written to it."""
        return self.usage.input + self.usage.cache_read + self.usage.cache_write


@dataclass(frozen=True, slots=True)
class Before:
    """What the events of a run do not hold: the system prompt, the tools, and the messages of earlier runs of its session."""

    system: str
    tools: tuple[Json, ...]
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSeen:
    """What has been seen of a loop. `event` is the one it reported last, whose `yield` it stands at until the next is pulled.

    `writing` counts the characters of the reply that streams in now. `before` is None where only events are known.
    """

    state: State = State.THINK
    turn: int = 0
    at: float = 0.0
    run_id: str = ""
    session_id: str = ""
    model: str = ""
    prompt: str = ""
    max_turns: int = 0
    event: Event | None = None
    path: tuple[Step, ...] = ()
    messages: tuple[Said, ...] = ()
    requests: tuple[Asked, ...] = ()
    replies: tuple[Replied, ...] = ()
    turns: tuple[Turn, ...] = ()
    results: tuple[ev.CallEnded, ...] = ()
    writing: int = 0
    first: int = 0
    ended: ev.RunEnded | None = None
    before: Before | None = None

    @property
    def usage(self) -> Usage:
        """Tokens of all turns."""
        return sum((turn.usage for turn in self.turns), Usage())

    @property
    def cost(self) -> float | None:
        """US dollars of all turns, None where a price is not known."""
        costs = [turn.cost for turn in self.turns]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def is_new(self, said: Said) -> bool:
        """Whether a message came since the last turn: with the newest request, or after it."""
        return said.turn >= self.turn or not said.sent

    def request_of(self, turn: int) -> Asked | None:
        """Return the last request of a turn."""
        return next((one for one in reversed(self.requests) if one.turn == turn), None)

    def reply_of(self, turn: int) -> Replied | None:
        """Return the reply of a turn."""
        return next((one for one in reversed(self.replies) if one.turn == turn), None)


def see(seen: LoopSeen, event: Event) -> LoopSeen:
    """Return `seen` with one more event taken in; kinds that are not known only move the path."""
    seen = _walked(seen, event)
    match event:
        case ev.RunStarted():
            return replace(seen, run_id=event.run_id, session_id=event.session_id, model=event.model, prompt=event.prompt,
                           max_turns=event.max_turns)  # fmt: skip
        case ev.RequestSent():
            return _asked(seen, event)
        case ev.ReplyStarted():
            return replace(seen, writing=0)
        case ev.TextDelta() | ev.ThinkingDelta() | ev.InputDelta():
            return replace(seen, writing=seen.writing + len(event.text))
        case ev.ReplyEnded():
            return _replied(seen, event)
        case ev.ReplyDiscarded():
            row = _row(seen)
            return _with(replace(seen, writing=0), replace(row, discarded=row.discarded + 1))
        case ev.RetryScheduled() if seen.requests:
            last = seen.requests[-1]
            return replace(seen, requests=(*seen.requests[:-1], replace(last, tries=last.tries + 1)))
        case ev.CallEnded():
            row = _row(seen)
            calls = tuple(c for c in row.calls if c[0] != event.call_id)
            known = (event.call_id, event.name, str(event.status))
            return _with(replace(seen, results=(*seen.results, event)), replace(row, calls=(*calls, known)))
        case ev.ResultsAppended():
            return _appended(seen, event)
        case ev.Compacted():
            return _summed(seen, event)
        case ev.RunEnded():
            return replace(seen, ended=event)
        case _:
            return seen


def see_all(events: Iterable[Event], seen: LoopSeen | None = None) -> LoopSeen:
    """Return `seen` (default: nothing yet) with all `events` taken in."""
    result = LoopSeen() if seen is None else seen
    for event in events:
        result = see(result, event)
    return result


def _walked(seen: LoopSeen, event: Event) -> LoopSeen:
    path, number = seen.path, 1
    if isinstance(event, _PIECES):  # many or, merged, one: the same is seen
        event, number = replace(event, text=""), 0
    if path and (path[-1].turn, path[-1].state) == (event.turn, event.state):
        path = (*path[:-1], replace(path[-1], events=path[-1].events + number)) if number else path
    else:
        path = (*path, Step(event.turn, event.state, number))
    return replace(seen, state=event.state, turn=event.turn, at=event.at, event=event, path=path)


def _asked(seen: LoopSeen, event: ev.RequestSent) -> LoopSeen:
    """Take a request in: its new messages stand in the place of those that were appended and not sent yet."""
    summing = _sums_up(event)
    kept = seen.messages
    if event.new and not summing:
        while kept and not kept[-1].sent:
            kept = kept[:-1]
        kept = (*kept, *(Said(message, event.turn) for message in event.new))
    elif not summing:
        kept = tuple(said if said.sent else replace(said, sent=True, turn=event.turn) for said in kept)
    asked = Asked(
        event.turn, event.model, event.host, event.prefix, seen.first, len(kept), len(event.new), summing=summing
    )
    row = _row(seen)
    seen = replace(seen, messages=kept, requests=(*seen.requests, asked), results=(), writing=0)
    return _with(seen, replace(row, requests=row.requests + 1))


def _sums_up(event: ev.RequestSent) -> bool:
    """Whether a request asks for a summary of the conversation: its words are no part of the transcript."""
    blocks: Any = event.new[-1].get("content") if event.new else None
    first: Any = blocks[0] if isinstance(blocks, list) and blocks else None
    return isinstance(first, dict) and str(first.get("text", "")).startswith(SUM_UP)


def _replied(seen: LoopSeen, event: ev.ReplyEnded) -> LoopSeen:
    content = tuple(block for block in event.content if hasattr(block, "get"))  # from a damaged file: anything
    messages = seen.messages
    if content:
        messages = (*messages, Said({"role": "assistant", "content": list(content)}, event.turn))
    replied = Replied(event.turn, content, event.stop_reason, event.usage, event.cost, len(messages) - bool(content))
    row = _row(seen)
    calls = [(str(b.get("id")), str(b.get("name")), "") for b in content if b.get("type") == "tool_use"]
    row = replace(row, usage=row.usage + event.usage, cost=_sum(row.cost, event.cost), replies=row.replies + 1,
                  stop_reason=event.stop_reason, calls=(*row.calls, *calls))  # fmt: skip
    return _with(replace(seen, messages=messages, replies=(*seen.replies, replied), writing=0), row)


def _appended(seen: LoopSeen, event: ev.ResultsAppended) -> LoopSeen:
    """Show the message of results before it is sent; the request that sends it has it whole."""
    ended = {one.call_id: one for one in seen.results}
    blocks: list[Json] = []
    for call_id in event.call_ids:
        if (one := ended.get(call_id)) is not None:
            block: Json = {"type": "tool_result", "tool_use_id": call_id, "content": list(one.content)}
            blocks.append(block if one.status is Status.OK else {**block, "is_error": True})
    seen = replace(seen, results=())
    if not blocks:
        return seen
    said = Said({"role": "user", "content": blocks}, event.turn, sent=False)
    return replace(seen, messages=(*seen.messages, said))


def _summed(seen: LoopSeen, event: ev.Compacted) -> LoopSeen:
    """What was said so far is not sent any more; the summary and what follows it come with the next request."""
    kept = tuple(said for said in seen.messages if said.sent)
    row = _row(seen)
    row = replace(row, usage=row.usage + event.usage, cost=_sum(row.cost, event.cost), summed=True)
    return _with(replace(seen, messages=kept, first=len(kept), session_id=event.session_id), row)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _row(seen: LoopSeen) -> Turn:
    """Return the row of the turn at hand."""
    last = seen.turns[-1] if seen.turns else None
    return last if last is not None and last.number == seen.turn else Turn(seen.turn)


def _with(seen: LoopSeen, row: Turn) -> LoopSeen:
    """Return `seen` with another row for the turn at hand."""
    last = seen.turns[-1:]
    rest = seen.turns[:-1] if last and last[0].number == row.number else seen.turns
    return replace(seen, turns=(*rest, row))
