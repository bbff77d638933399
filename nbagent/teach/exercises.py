"""Exercises that check themselves: a task, three hints, an answer, and a check that says what is still missing.

A lesson's exercises lie in `nbagent/teach/lessons/`, one module a notebook, as a tuple `EXERCISES`. In the notebook the learner
fills a cell, and the cell below says `await check("05.dies", globals())`. Must not know of cells or of a screen; a check looks
at what the learner's names *do*, never at how they are written. Read `Exercise`, then `check`.
"""

from __future__ import annotations

import asyncio
import html
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.summary import clipped
from nbagent.teach.lessons import LESSONS

PATIENCE = 20.0
"""Seconds that a check may take: an answer that awaits for ever is a wrong answer. One that never awaits ends by Interrupt only."""

LONGEST = 600
"""Characters of what a check says: an answer that is much too long is not read to its end."""
_CODE = re.compile(r"`([^`\n]+)`")
_NO_ASYNC = "can't be used in 'await' expression"


class NotYet(Exception):
    """What an answer still lacks, in a sentence to the learner; never the answer itself."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise: `id` is `NN.word` (the notebook's number and a word), `task` one line of Markdown.

    `check` gets the notebook's names and returns nothing if the answer is right; it raises `NotYet` otherwise. `hints` are three, from
    a nudge to nearly the answer; `answer` is the source of a cell that passes.
    """

    id: str
    task: str
    hints: tuple[str, str, str]
    answer: str
    check: Callable[[Mapping[str, Any]], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found: `passed`, and a sentence. Shows itself as one line in a cell."""

    exercise: str
    passed: bool
    said: str

    def __repr__(self) -> str:
        return f"{'✓ Right' if self.passed else '… Not yet'}: {self.said}"

    def _repr_html_(self) -> str:
        color = "#2e7d32" if self.passed else "#b26a00"
        bar = f"border-left:4px solid {color};padding:4px 10px;margin:4px 0;font-family:var(--jp-ui-font-family,sans-serif)"
        said = _CODE.sub(r"<code>\1</code>", html.escape(self.said))
        return f'<div style="{bar}"><b>{"✓ Right" if self.passed else "Not yet"}:</b> {said}</div>'


def exercises_of(lesson: str) -> tuple[Exercise, ...]:
    """Return the exercises of the lesson with this number (`"05"`), in order. Raises `ConfigError` for a number that means none."""
    if lesson not in LESSONS:
        raise ConfigError(f"There is no lesson {lesson!r}. There are: {', '.join(sorted(LESSONS))}.")
    return tuple(import_module(f"nbagent.teach.lessons.{LESSONS[lesson]}").EXERCISES)


def exercise(name: str) -> Exercise:
    """Return the exercise `NN.word`. Raises `ConfigError` where there is none."""
    there = exercises_of(name.partition(".")[0])
    for each in there:
        if each.id == name:
            return each
    raise ConfigError(f"There is no exercise {name!r}. This lesson has: {', '.join(one.id for one in there)}.")


class _Names(dict[str, Any]):
    """The notebook's names; one that is not there is "not yet", in words, and no `KeyError`."""

    def __missing__(self, name: str) -> Any:
        raise NotYet(f"there is no {name} yet. Run the cell above, then this one.")


async def check(name: str, names: Mapping[str, Any]) -> Outcome:
    """Check the learner's answer to the exercise `name` in the notebook's names (`globals()`); raises `ConfigError` for an unknown one.

    An answer that raises, or goes on for longer than `PATIENCE`, is "not yet", with the reason.
    """
    this = exercise(name)
    missing = await _verdict(this, names)
    return Outcome(name, passed=not missing, said=missing or this.task)


async def _verdict(this: Exercise, names: Mapping[str, Any]) -> str:
    try:
        if inspect.isawaitable(found := this.check(_Names(names))):
            await asyncio.wait_for(found, PATIENCE)
    except NotYet as missing:
        return clipped(str(missing), LONGEST)
    except TimeoutError:
        return f"it was still going on after {PATIENCE:.0f} seconds. What makes it stop?"
    except Exception as error:  # noqa: BLE001  (a learner's code may raise anything)
        return (
            f"{'a name is missing' if isinstance(error, NameError) else 'it raised'}: {type(error).__name__}: {error}"
            f"{' (Does it begin with async def?)' if _NO_ASYNC in str(error) else ''}"
        )
    return ""


def hint(name: str, level: int = 1) -> str:
    """Return hint `level` (1 to 3) of the exercise `name`; level 4 is the answer, as a fenced block. Raises `ConfigError`."""
    this = exercise(name)
    if level in {1, 2, 3}:
        return this.hints[level - 1]
    if level == len(this.hints) + 1:
        return f"```python\n{this.answer.strip()}\n```"
    raise ConfigError(f"Hints have the levels 1, 2 and 3, and 4 is the answer; {level!r} is none of them.")
