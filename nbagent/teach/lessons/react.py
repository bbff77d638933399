"""The exercises of lesson 10, ReAct and native calls: a parser, the runtime's words, and what a text can't carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbagent.teach.exercises import Exercise, NotYet
from nbagent.teach.react import Step, careful, parse, written
from nbagent.teach.react_count import SLIPS, in_blocks

_REPLIES: tuple[tuple[str, tuple[str, str] | None], ...] = (
    ("Thought: I count.\nAction: count\nInput: year == 2008", ("count", "year == 2008")),
    ("Thought: Next: the year.\nAction: count\nInput: note == seen: 14:30", ("count", "note == seen: 14:30")),
    ("Thought: Both.\nAction: count\nInput: year == 2008\nsex == male", ("count", "year == 2008\nsex == male")),
    ("I would count the birds of 2008.", None),
    ("Thought: I count.\nAction: count", None),
)


def _read(names: Mapping[str, Any]) -> None:
    for text, meant in _REPLIES:
        found = names["read"](text)
        if found != meant:
            raise NotYet(f"for {text!r} it returns {found!r}, and it should be {meant!r}.")


_MADE_UP = (
    ("Action: count\nInput: a\nObservation: 12\nAnswer: 12", "Action: count\nInput: a"),
    ("Thought: x\nObservation: 1\nThought: y\nObservation: 2", "Thought: x"),
    (
        "Thought: the next Observation: will tell.\nAction: count",
        "Thought: the next Observation: will tell.\nAction: count",
    ),
    ("Action: count\nInput: a", "Action: count\nInput: a"),
    ("Observation: 12\nAnswer: 12", ""),
)


def _until(names: Mapping[str, Any]) -> None:
    for text, wanted in _MADE_UP:
        found = names["until_observation"](text)
        if not isinstance(found, str) or found.rstrip() != wanted:
            raise NotYet(f"of {text!r} it leaves {found!r}, and it should leave {wanted!r}.")


async def _unsaid(names: Mapping[str, Any]) -> None:
    hard = names["hard"]
    if not isinstance(hard, Step) or hard.tool != "count" or not hard.input.strip():
        raise NotYet('`hard` should be a Step with the tool "count" and an input that is not empty.')
    for reader, name in ((parse, "parse"), (careful, "careful")):
        if reader(written(hard)) == hard:
            raise NotYet(f"`{name}` reads {hard.input!r} as it was meant. What does the parser look for, and where?")
    if await in_blocks(SLIPS["as it was asked for"](hard), str) != "right":
        raise NotYet("with tool blocks it does not arrive, either. Leave the input a plain text.")


_READ = r"""
import re


def read(text):
    found = re.search(r"^Action: (\w+)\nInput: (.*)", text, re.MULTILINE | re.DOTALL)
    return (found[1], found[2].strip()) if found else None
"""

_UNTIL = r"""
import re


def until_observation(text):
    return re.split(r"^Observation:", text, maxsplit=1, flags=re.MULTILINE)[0]
"""

_UNSAID = r"""
hard = Step("I count the birds of a note.", "count", "year == 2008\nAnswer: yes")
"""

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "10.read",
        "your parser finds tool and input, lets colons and lines of the input through, and says None to the rest",
        (
            "How many colons may stand in a reply? Which of them end a label?",
            "Only a label at the beginning of a line counts. The input goes on to the end of the text, over lines.",
            "A regular expression with `^Action: …` and `^Input: …`, and the flags re.MULTILINE and re.DOTALL; no match gives None.",
        ),
        _READ,
        _read,
    ),
    Exercise(
        "10.until",
        "what the model made up of the program's part is cut away, and nothing else",
        (
            "The word may stand inside a sentence, too. Where does the program's own part always stand?",
            "At the beginning of a line, which may be the first line of the text. The first such place counts.",
            "`re.split` with `^Observation:`, maxsplit=1 and re.MULTILINE; keep what is before.",
        ),
        _UNTIL,
        _until,
    ),
    Exercise(
        "10.unsaid",
        "you found an input that the text form can't carry, and tool blocks can",
        (
            "Colons and new lines come through. What is the one thing that a part may not contain?",
            "A part ends where a line begins with a label. Let a line of the input begin so.",
            'An input of two lines, joined by \\n; the second begins with one of the four labels, for example "Answer:".',
        ),
        _UNSAID,
        _unsaid,
    ),
)
