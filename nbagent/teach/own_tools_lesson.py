"""What lesson 13 stands on: a small table, a tool that is recorded, and scripts that use what the learner has just made.

Small enough to be shown in the notebook. Must not know of cells. Read `with_the_tool`, then `taped`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nbagent.core.events import RunEnded
from nbagent.core.tools import Tool
from nbagent.models.recorded import Recording, Replayed
from nbagent.models.recording import Cleaning, Tape, read_recording
from nbagent.models.scripted import Scripted, ScriptedModel, call, last_results, say
from nbagent.teach.bench import bench

PRICES: dict[str, list[float]] = {"bread": [2.1, 2.4, 1.9], "milk": [1.1, 0.9], "salt": [0.6]}
"""Prices of a shop, by article."""

QUESTION = "What does bread cost on average?"


def with_the_tool() -> list[Scripted]:
    """Return a model that asks the tool `mean_price` and answers from its result."""
    return [
        [say("I ask the tool."), call("mean_price", article="bread")],
        lambda seen: f"On average bread costs {last_results(seen)[0]}.",
    ]


def with_the_skill() -> list[Scripted]:
    """Return a model that loads the skill `price-note` and does what it says."""
    return [
        [say("There is a skill for this."), call("skill", skill="price-note")],
        lambda seen: (
            f"The skill says: {last_results(seen)[0].strip().splitlines()[-1]}\n\nBread costs 2.13 € a loaf (mean of 3 prices)."
        ),
    ]


def against_the_hook() -> list[Scripted]:
    """Return a model that wants to run code that throws rows away, hears why not, and says so."""
    return [
        [say("I drop what disturbs me."), call("run_python", code="prices.drop(columns='milk')")],
        lambda seen: f"I was told: {last_results(seen)[0].strip().splitlines()[0]}",
    ]


async def taped(path: Path, tools: Sequence[Tool]) -> str:
    """Record one run of `with_the_tool` in `path` and return the answer."""
    model = Recording(ScriptedModel(with_the_tool()), Tape(path, cleaning=Cleaning()))
    return _answer(await bench(model, tools).collect(QUESTION))


async def replayed(path: Path, tools: Sequence[Tool]) -> str:
    """Play the recording with these tools; return the answer, or where the run departs from what was recorded."""
    return _answer(await bench(Replayed(read_recording(path), cleaning=Cleaning()), tools).collect(QUESTION))


def _answer(events: Sequence[object]) -> str:
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    return ended.text if str(ended.reason) == "end_turn" else ended.sentence
