"""An agent's loop in thirty lines, as lesson 01 builds it, with a model and tools small enough to read in a minute.

`mini_agent` is the seed's template in Python (../shared/seeds/async-generator-loop.txt, "Minimal Agentic Loop"): real enough to end
for three reasons, small enough to see whole. What it lacks against `nbagent.core.loop.run` is the rest of the course.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nbagent.core.messages import Message
from nbagent.models.scripted import Scripted, call, last_results

Reply = dict[str, Any]
Messages = list[dict[str, Any]]
MiniModel = Callable[[Messages], Awaitable[Reply]]
MiniTools = Mapping[str, Callable[..., Awaitable[str]]]


async def mini_agent(
    model: MiniModel, tools: MiniTools, prompt: str, max_turns: int = 10
) -> AsyncGenerator[tuple[str, Any]]:
    """Yield what happens as pairs (what, more): think, reply, call, result, and at last done with its reason."""
    messages: Messages = [{"role": "user", "content": prompt}]
    for turn in range(1, max_turns + 1):
        yield "think", turn
        reply = await model(messages)
        messages.append({"role": "assistant", "content": reply["content"]})
        yield "reply", reply
        if reply["stop_reason"] != "tool_use":
            yield "done", "end_turn"
            return
        results: list[dict[str, Any]] = []
        for block in reply["content"]:
            if block["type"] != "tool_use":
                continue
            yield "call", block
            if block["name"] in tools:
                result = await tools[block["name"]](**block["input"])
            else:
                result = f"There is no tool {block['name']!r}."
            results.append({"type": "tool_result", "tool_use_id": block["id"], "content": result})
            yield "result", result
        messages.append({"role": "user", "content": results})
    yield "done", "max_turns"


def penguin_tools(data: Path) -> dict[str, Callable[..., Awaitable[str]]]:
    """Return two tools over the CSV files of the folder `data`: `columns(file)` and `count(file, column)`."""

    def rows(file: str) -> list[dict[str, str]]:
        with (data / file).open(encoding="utf-8", newline="") as opened:
            return list(csv.DictReader(opened))

    async def columns(file: str) -> str:
        return ", ".join(rows(file)[0])

    async def count(file: str, column: str) -> str:
        found = Counter(row.get(column, f"no column {column!r}") for row in rows(file))
        return ", ".join(f"{value}: {n}" for value, n in found.most_common())

    return {"columns": columns, "count": count}


async def penguin_model(messages: Messages) -> Reply:
    """Play the model for "How many penguins live on each island?": look at the columns, count, answer from the results."""
    results = [
        block["content"]
        for message in messages
        for block in message["content"]
        if isinstance(message["content"], list) and block["type"] == "tool_result"
    ]
    if not results:
        return _calls("columns", file="penguins.csv")
    if len(results) == 1:
        column = "island" if "island" in results[0] else results[0].split(", ")[0]
        return _calls("count", file="penguins.csv", column=column)
    return {"stop_reason": "end_turn", "content": [{"type": "text", "text": f"The penguins by island: {results[-1]}."}]}


async def stubborn_model(messages: Messages) -> Reply:
    """Play a model that never has enough: it asks for the same columns again, for ever."""
    return _calls("columns", file="penguins.csv", turn=len(messages))


def _calls(tool: str, *, turn: int = 0, **given: str) -> Reply:
    block = {"type": "tool_use", "id": f"toolu_{tool}_{turn}", "name": tool, "input": given}
    return {"stop_reason": "tool_use", "content": [block]}


def in_a_cell() -> list[Scripted]:
    """Return a script for a `%%agent` cell that is asked which columns data/penguins.csv has: it looks, and says what it saw."""
    return [
        call("read_data_head", path="data/penguins.csv"),
        lambda seen: f"I looked:\n\n```\n{last_results(seen)[0][:600]}\n```",
    ]


def endless() -> list[Scripted]:
    """Return a script for a `%%agent` cell that looks at one file after the other and never says a word."""
    return [call("read_data_head", path=f"data/{name}.csv") for name in ("penguins", "field", "penguins", "field")]


def explores() -> list[Scripted]:
    """Return a script for an Explore subagent that is asked which species there are: one look, one sentence."""

    def answer(seen: Sequence[Message]) -> str:
        common = next((line for line in last_results(seen)[0].splitlines() if "most common" in line), "no such line")
        return f"They stand in `penguins`, column `species`; {common.strip()}."

    return [call("inspect_variable", name="penguins", column="species"), answer]
