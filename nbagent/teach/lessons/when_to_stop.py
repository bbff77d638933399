"""The exercises of lesson 03, when does it stop: find a circle, tell an end from a stop, and build a runaway that gets past the guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbagent.core.events import RunEnded
from nbagent.core.tools import Tool, tool
from nbagent.models.scripted import ScriptedModel, Turn, call
from nbagent.teach.bench import bench
from nbagent.teach.exercises import Exercise, NotYet

_CAP = 6


def tools() -> list[Tool]:
    """Return the tools of the lesson: `look` says the same each time, `ticket` draws a new number each time."""
    drawn: list[str] = []

    @tool
    async def look(_: object, column: str, note: str = "") -> str:  # noqa: ARG001 - the lesson is that it has no influence
        """Look up a column of the table.

        Args:
            column: Name of the column.
            note: Why you look; has no influence.
        """
        known = {"mass": "body mass in g, 344 values", "island": "3 islands"}
        return known.get(column, f"There is no column {column!r}. There are: {', '.join(known)}.")

    @tool
    async def ticket(_: object) -> str:
        """Draw a ticket: a number that nobody had before."""
        drawn.append("ticket")
        return f"ticket {'i' * len(drawn)}"

    return [look, ticket]


def _circle(names: Mapping[str, Any]) -> None:
    goes_round = names["goes_round"]
    a, b, c = ("look", "mass", "in g"), ("look", "island", "three"), ("look", "mass", "in kg")
    cases = [
        ([a], False, "one turn is no circle"),
        ([a, a], True, "the same call with the same result, twice in a row"),
        ([a, b], False, "two different calls"),
        ([a, c], False, "the same call with another result: something has changed, it may be worth it"),
        ([a, b, a], False, "it came back once; that can be a second look"),
        ([a, b, a, b], True, "two steps that take turns are a circle, too"),
        ([a, a, b], False, "it has left the circle: only how the list ENDS counts"),
        ([], False, "nothing yet"),
    ]
    for turns, round_, why in cases:
        if bool(goes_round(list(turns))) is not round_:
            raise NotYet(
                f"for {len(turns)} turns {['-'.join(turn[1:]) for turn in turns]} the answer is {round_}: {why}."
            )


async def _done(names: Mapping[str, Any]) -> None:
    is_done = names["is_done"]
    ask = call("look", column="mass")
    runs = {
        "a run whose model answered": ([ask, "344 values."], 25, True),
        "a run that was cut off at its limit of turns": ([call("ticket") for _ in range(9)], 3, False),
        "a run that went in circles": ([ask] * 9, 25, False),
        "a run whose model said nothing at all": ([Turn([]) for _ in range(4)], 25, False),
    }
    for what, (script, most, right) in runs.items():
        events = await bench(script, tools(), max_turns=most).collect("How many?")
        if bool(is_done(events)) is not right:
            ended = events[-1]
            assert isinstance(ended, RunEnded)
            raise NotYet(
                f"{what} ended with the reason {str(ended.reason)!r}: is the task done? Your answer is {not right}."
            )


async def _runaway(names: Mapping[str, Any]) -> None:
    script = list(names["runaway"])
    if len(script) <= _CAP:
        raise NotYet(f"a runaway has more turns than the limit of {_CAP}: yours has {len(script)}.")
    model = ScriptedModel(script)
    events = await bench(model, tools(), max_turns=_CAP).collect("Go")
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    if str(ended.reason) != "max_turns":
        raise NotYet(
            f"this run ended with {str(ended.reason)!r} after {ended.turn} turns. The guard, or the model itself, ended it: get past both."
        )


_CIRCLE = """
def goes_round(turns):
    for period in (1, 2):
        if len(turns) >= 2 * period and turns[-period:] == turns[-2 * period : -period]:
            return True
    return False
"""

_DONE = """
def is_done(events):
    end = events[-1]
    said = any(event.type == "text_delta" and event.text.strip() for event in events)
    return str(end.reason) == "end_turn" and said
"""

_RUNAWAY = """
runaway = [call("ticket") for _ in range(12)]
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "03.done",
        "you can tell a task that is done from a run that is over",
        (
            "Every run ends with a `run_ended` event. Its `reason` says why.",
            "Only one reason means that the model itself came to an end. But look also at what it had said by then.",
            "The reason must be end_turn, and there must have been at least one `text_delta` with a text that is not empty: a model that says nothing has answered nothing.",
        ),
        _DONE,
        _done,
    ),
    Exercise(
        "03.circle",
        "your guard finds a model that goes in circles, and lets one alone that gets on",
        (
            "Compare how the list ends with what stands just before that end.",
            "A circle of length 1: the last turn equals the one before. Of length 2: the last two equal the two before them.",
            "`turns[-p:] == turns[-2 * p : -p]` for p in 1 and 2, where the list is at least 2 * p long.",
        ),
        _CIRCLE,
        _circle,
    ),
    Exercise(
        "03.runaway",
        "your runaway gets past the guard of repetition, and only the limit of turns ends it",
        (
            "The guard looks at calls AND results. Which tool gives another result each time?",
            "A changed `note` does not help: labels are left out of the comparison. Neither do two calls that take turns.",
            'A list of more than six turns, each `call("ticket")`.',
        ),
        _RUNAWAY,
        _runaway,
    ),
)  # fmt: skip
