"""The exercises of lesson 07, generators in generators: two phases, a result, a consumer that has had enough, a depth."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from nbagent.core.events import Event, Noted, State
from nbagent.teach.composing import under
from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.scenarios import Progress, Refused

_ALL = ["load 1", "load 2", "clean 1", "clean 2"]


async def _close(names: Mapping[str, Any]) -> None:
    pipeline, log = names["pipeline"], list[str]()
    async with aclosing(pipeline(log.append)) as events:
        first = await anext(events, None)
        begun = list(log)
        seen = [first, *[event async for event in events]]
    if seen != _ALL:
        raise NotYet(f"it should yield {_ALL}, and yields {seen}.")
    if begun != ["load begins"]:
        raise NotYet(
            f"at the first event so much had happened: {begun}. Hand on each event when it comes, do not collect."
        )
    for events_taken, phase in ((1, "load"), (3, "clean")):
        log.clear()
        events = pipeline(log.append)
        for _ in range(events_taken):
            await anext(events)
        await events.aclose()
        if f"{phase} closed" not in log:
            raise NotYet(
                f"closed after {events_taken} events, the phase {phase!r} is still open when `aclose()` returns."
            )


async def _result(names: Mapping[str, Any]) -> None:
    adding = names["Adding"]
    whole = adding([3, 4, 5])
    seen = [event async for event in whole.events()]
    if seen != [3, 4, 5]:
        raise NotYet(f"for the values 3, 4, 5 its events should be these values, and they are {seen}.")
    if whole.total != 12:
        raise NotYet(f"after the last event `total` should be 12, and it is {whole.total!r}.")
    early = adding([3, 4, 5])
    async with aclosing(early.events()) as events:
        await anext(events)
    if early.total is not None:
        raise NotYet(f"closed after one event it has no result, so `total` must be None; it is {early.total!r}.")


class _Watched:
    """A pipeline that knows how many facts were taken and whether it was closed."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.taken = 0
        self.closed = False

    async def facts(self) -> AsyncGenerator[Progress | Refused]:
        try:
            for line, sort in enumerate(self._pattern, 1):
                self.taken = line
                yield Refused(line, "not weighed") if sort == "x" else Progress("load", line)
        finally:
            self.closed = True


async def _enough(names: Mapping[str, Any]) -> None:
    for pattern, limit, counted, taken in (
        ("..x.x..x..", 1, 2, 5),
        ("x.......", 1, 1, 8),
        ("x.x", 0, 1, 1),
        ("...", 0, 0, 3),
    ):
        pipeline = _Watched(pattern)
        kept = pipeline.facts()  # held here: only your code closes it
        found = await names["enough"](kept, limit)
        said = f"with the facts {pattern!r} (x: refused) and limit {limit}"
        if found != counted:
            raise NotYet(f"{said} it should return {counted}, and returns {found!r}.")
        if pipeline.taken != taken:
            raise NotYet(f"{said} it should take {taken} facts, and took {pipeline.taken}.")
        if not pipeline.closed:
            raise NotYet(f"{said} the pipeline is still open when your function has returned.")


async def _depth(names: Mapping[str, Any]) -> None:
    for depth in (0, 1, 3):
        events = _noted()
        for level in range(depth):
            events = under(f"toolu_{level}", f"helper {level}", events)
        (event,) = [event async for event in events]
        if (found := names["depth_of"](event)) != depth:
            raise NotYet(f"for an event that came through {depth} runs it returns {found!r}.")


async def _noted() -> AsyncGenerator[Event]:
    yield Noted(state=State.THINK, turn=1, at=0.0, text="hello")


_CLOSE = """
async def pipeline(log):
    for name in ("load", "clean"):
        async with aclosing(phase(name, 2, log)) as events:
            async for event in events:
                yield event
"""

_RESULT = """
class Adding:
    def __init__(self, values):
        self.values = values
        self.total = None

    async def events(self):
        total = 0
        for value in self.values:
            total += value
            yield value
        self.total = total
"""

_ENOUGH = """
async def enough(facts, limit):
    refused = 0
    async with aclosing(facts):
        async for fact in facts:
            refused += isinstance(fact, Refused)
            if refused > limit:
                break
    return refused
"""

_DEPTH = """
def depth_of(event):
    found = 0
    while event.type == "agent_reported":
        event, found = event.event, found + 1
    return found
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "07.close",
        "your pipeline hands on each event when it comes, and whoever closes it closes the phase that runs",
        (
            "Compare `phases` and `leaky`: which line is in one and not in the other?",
            "A phase is closed at once if it stands in `async with aclosing(…)`; each of the two phases needs one.",
            "A `for` over the two names; in it `async with aclosing(phase(name, 2, log)) as events:` and an `async for` that yields.",
        ),
        _CLOSE,
        _close,
    ),
    Exercise(
        "07.result",
        "your phase yields its events and leaves a result, and none where it was closed before its end",
        (
            "An async generator can't return a value. Where else can a result be left?",
            "In an attribute of the object that has the method `events`. When may it be set?",
            "Add up in a local variable; `self.total = total` comes after the loop, when the last event was taken.",
        ),
        _RESULT,
        _result,
    ),
    Exercise(
        "07.enough",
        "your consumer stops a pipeline that refuses too many rows, and leaves it closed",
        (
            "`break` ends your loop. Does it end the generator?",
            "Count what is a `Refused`; leave the loop when the count is greater than the limit. And close what you were given.",
            "`async with aclosing(facts):` around the `async for`; return the count after it.",
        ),
        _ENOUGH,
        _enough,
    ),
    Exercise(
        "07.depth",
        "you unwrap an event of a subagent of a subagent",
        (
            "Print `event.type` and `event.event.type` of the first events of `nested_events`.",
            "As long as the type is `agent_reported`, the event inside is one run deeper.",
            "A `while` loop: count one, and go on with `event.event`.",
        ),
        _DEPTH,
        _depth,
    ),
)
