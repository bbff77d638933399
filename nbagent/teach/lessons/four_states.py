"""The exercises of lesson 02, four states: the path from the events, turns counted by a consumer, and a breakpoint of one's own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from nbagent.core.event import State
from nbagent.core.events import Event
from nbagent.core.tools import Tool, tool
from nbagent.models.scripted import Scripted, Turn, call, last_results, say
from nbagent.teach.bench import bench
from nbagent.teach.exercises import Exercise, NotYet


def tools() -> list[Tool]:
    """Return the tools of the lesson: `look` says what is in a column, `count` how many values it has."""

    @tool
    async def look(_: object, column: str) -> str:
        """Look at a column of the penguins.

        Args:
            column: Its name.
        """
        known = {"mass": "body mass in g", "island": "Biscoe, Dream, Torgersen"}
        return known.get(column, f"There is no column {column!r}. There are: {', '.join(known)}.")

    @tool
    async def count(_: object, column: str) -> str:
        """Count the values of a column of the penguins.

        Args:
            column: Its name.
        """
        return "342 values" if column == "mass" else "344 values"

    return [look, count]


def script() -> list[Scripted]:
    """Return the lesson's script: two calls in one reply, one in the next, then an answer made of the results."""
    return [
        [call("look", column="mass"), call("look", column="island")],
        call("count", column="mass"),
        lambda seen: f"The mass is known for {last_results(seen)[0].split()[0]} penguins.",
    ]


def in_a_cell() -> list[Scripted]:
    """Return a script for a `%%agent` cell: it looks how data/penguins.csv begins, and says which columns it saw."""
    return [
        [say("I look at the file first."), call("read_data_head", path="data/penguins.csv")],
        lambda seen: f"This is how the file begins:\n\n```\n{last_results(seen)[0][:400]}\n```",
    ]


async def _runs() -> dict[str, list[Event]]:
    """Return events of runs that differ in what the exercises are about."""
    ask = call("look", column="mass")
    return {
        "a run with two turns": await bench([ask, "In g."], tools()).collect("How heavy?"),
        "the run of this lesson": await bench(script(), tools()).collect("How heavy?"),
        "a run without any call": await bench(["I know it."], tools()).collect("How heavy?"),
        "a run that was stopped at its limit of 2 turns": await bench(
            [call("look", column="mass"), call("count", column="mass"), "That is all."], tools(), max_turns=2
        ).collect("How heavy?"),
        "a run with a reply that broke off and came again": await bench(
            [Turn(ask, cut=3), ask, "In g."], tools()
        ).collect("How heavy?"),
    }  # fmt: skip


def path_of(events: Sequence[Event]) -> list[str]:
    """Return the states that a run walked through, each named once for each stay in it."""
    path: list[str] = []
    for event in events:
        if not path or path[-1] != str(event.state):
            path.append(str(event.state))
    return path


async def _path(names: Mapping[str, Any]) -> None:
    for what, events in (await _runs()).items():
        found = names["state_path"](list(events))
        if found is None or [str(state) for state in found] != path_of(events):
            raise NotYet(f"{what} walked {' → '.join(path_of(events))}; yours says {_said(found)}.")


def _said(found: object) -> str:
    return " → ".join(map(str, found)) if isinstance(found, list | tuple) else repr(found)


async def _again(events: Sequence[Event]) -> AsyncGenerator[Event]:
    for event in events:
        yield event


async def _turns(names: Mapping[str, Any]) -> None:
    for what, events in (await _runs()).items():
        async with aclosing(_again(events)) as source:
            found = await names["count_turns"](source)
        if found != events[-1].turn:
            raise NotYet(f"{what} had {events[-1].turn} turns; yours says {found!r}.")


async def _breaks(names: Mapping[str, Any]) -> None:
    rest_here = names["rest_here"]
    for what, events in (await _runs()).items():
        before: Event | None = None
        for place, event in enumerate(events, 1):
            comes_in = event.state is State.ACT and (before is None or before.state is not State.ACT)
            runs_count = event.type == "call_started" and getattr(event, "name", "") == "count"
            found = bool(rest_here(before, event))
            if found is not (comes_in or runs_count):
                why = "comes into Act" if comes_in else "count is about to run" if runs_count else "neither of the two"
                raise NotYet(f"{what}, event {place} ({event.state}, {event.type}): {why}, and yours says {found}.")
            before = event


_PATH = """
def state_path(events):
    path = []
    for event in events:
        if not path or path[-1] != event.state:
            path.append(event.state)
    return path
"""

_TURNS = """
async def count_turns(events):
    turns = 0
    async for event in events:
        turns = event.turn
    return turns
"""

_BREAKS = """
def rest_here(before, event):
    comes_in = event.state == "Act" and (before is None or before.state != "Act")
    runs_count = event.type == "call_started" and event.name == "count"
    return comes_in or runs_count
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "02.path",
        "your function reads the path through the states from the events",
        (
            "Each event has a `state`. Many events in a row have the same one.",
            "Go through the events, and add a state to the path only where it is another one than the last of the path.",
            "`if not path or path[-1] != event.state:` then append.",
        ),
        _PATH,
        _path,
    ),
    Exercise(
        "02.turns",
        "your consumer counts the turns, also of a run whose replies broke off or were summed up",
        (
            "Print `event.turn` for each event. What does the last one say?",
            "Counting requests or replies goes wrong: a broken reply comes again in the same turn, and at the limit there is one more, the summary.",
            "Keep `event.turn` of each event that comes; the last one is the number.",
        ),
        _TURNS,
        _turns,
    ),
    Exercise(
        "02.break",
        "your breakpoint rests once where Act begins, and right before `count` runs",
        (
            "There are two reasons to rest: the state has changed to Act, or a call is about to run. Say each in a line of its own.",
            "“Comes into Act” needs two events: this one is in Act, the one before was not. At the first event of all there is none before.",
            '`event.type == "call_started" and event.name == "count"` is the second one. Ask for the type first: not every event has a name.',
        ),
        _BREAKS,
        _breaks,
    ),
)
"""In the order of the notebook."""
