"""What the scripted solutions are made of: generators that make calls, get the results' texts, and decide by them.

    def solve() -> Steps:
        text = yield from use("read_file", path="sales.csv")
        ...
        return "the answer"

A script may know what a task asks for, and nothing of what differs in the twin of its data. Read `Steps` and `Playing`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Generator, Sequence
from typing import Any

from nbagent.core.messages import Block, Message
from nbagent.models.scripted import ScriptedModel, call, last_results, say

__all__ = ["Playing", "Steps", "add", "call", "heading", "look", "say", "scripted", "separator", "table", "use"]

Steps = Generator[list[Block], list[str], str]
"""Yields the blocks of a reply, is sent the texts of its calls' results, returns the last answer."""

Use = Generator[list[Block], list[str], str]
_LONGEST = 200


class Playing:
    """A model from a solution: each transcript is answered with the solution's next step."""

    def __init__(self, solve: Callable[[], Steps]) -> None:
        self._steps = solve()
        self._begun = False
        self.failed: Exception | None = None
        """What the solution stumbled over: its run then ends with these words."""

    def __call__(self, transcript: Sequence[Message]) -> list[Block] | str:
        """Return the next reply: blocks, or the last words."""
        try:
            if self._begun:
                return self._steps.send(last_results(transcript))
            self._begun = True
            return next(self._steps)
        except StopIteration as ended:
            return str(ended.value)
        except Exception as error:  # the server that asks would swallow it
            self.failed = error
            return f"The script failed: {error!r}"


def scripted(solve: Callable[[], Steps]) -> ScriptedModel:
    """Return a solution as a model of `scripted:…`, for a run without a server."""
    return ScriptedModel([Playing(solve)] * _LONGEST)


def use(tool: str, /, words: str = "", **given: Any) -> Use:
    """Make one call, with words before it, and return the text of its result."""
    texts = yield [*([say(words)] if words else []), call(tool, **given)]
    return texts[0]


def add(source: str, words: str = "") -> Use:
    """Add a code cell and run it; an error in it ends the solution."""
    text = yield from use("add_cell", words, source=source.strip())
    assert ": ok." in text, text
    return text


def heading(title: str) -> Use:
    """Add a Markdown heading."""
    return (yield from use("add_cell", source=f"## {title}", cell_type="markdown"))


def look(code: str) -> Generator[list[Block], list[str], Any]:
    """Run scratch code that leaves JSON in the name `found`, and return it as Python."""
    text = yield from use(
        "run_python", code=f"import json\n{code.strip()}\nprint('FOUND', json.dumps(found, default=str))"
    )
    line = next((line for line in text.splitlines() if line.startswith("FOUND ")), None)
    assert line is not None, text
    return json.loads(line.removeprefix("FOUND "))


def separator(head: str) -> str:
    """Return the separator of a text table: the one that is equally often in each of the first lines, the most often."""
    lines = [line for line in head.splitlines() if line.strip()][:10]
    counts = {mark: {len(next(csv.reader([line], delimiter=mark))) for line in lines} for mark in ",;\t|"}
    even = {mark: found.pop() for mark, found in counts.items() if len(found) == 1}
    return max(even, key=lambda mark: even[mark])


def table(head: str) -> list[list[str]]:
    """Return the rows of a text table that was read as a file, header first."""
    lines = [line for line in head.splitlines() if line.strip()]
    return list(csv.reader(lines, delimiter=separator(head)))


# ── what the folder tells ────────────────────────────────────────────────────────────────────────────────────────────


def reading(text: str, *more: str) -> str:
    """Return the call that reads a file, as `read_data_head` says it, with `more` arguments."""
    read = re.findall(r"^\w+ = (pd\.read_\w+\(.+\))$", text, re.MULTILINE)
    assert read, text
    return ", ".join([read[0].removesuffix(")"), *more]) + ")"


def meanings(text: str) -> dict[str, str]:
    """Return what each column means, from the text of columns.md."""
    return dict(re.findall(r"`([^`]+)`: (.+)", text))


def meant(known: dict[str, str], word: str) -> str:
    """Return the column whose meaning has the word."""
    return next(column for column, meaning in known.items() if re.search(rf"\b{word}\b", meaning))
