"""What a teacher sets for a notebook or a course: hints only, fewer tools, fewer turns. It narrows, and never widens.

A value, read from `lesson.toml` or from a notebook's metadata (`nbagent.lesson`), put together by intersection. It guides and does not
secure: the kernel is the student's. Must not know of settings or of cells: `nbagent/app/lesson.py` folds it into a run. Read `Lesson`, then
`parsed` and `Lesson.both`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any

from nbagent.core.agents import AgentSpec
from nbagent.core.errors import ConfigError
from nbagent.core.narrowing import Narrowed, chosen
from nbagent.core.policy import Gate
from nbagent.core.rules import Rule
from nbagent.core.tools import Tool

FILE = "lesson.toml"
FREE, EXPLAIN, HINT = "free", "explain-only", "hint-only"
WIDTH = {HINT: 0, EXPLAIN: 1, FREE: 2}
"""The modes of a lesson, the narrowest first."""
OFF = "off"
_LONGEST = 2_000
_MEANS = {
    HINT: "hints only",
    EXPLAIN: "explanations only",
}

TOLD = {
    FREE: "",
    HINT: (
        "This is a lesson, and its teacher allows hints only. Do not give the solution, nor code that is the solution. There are three "
        "levels: first a question or a nudge; if the person asks again about the same thing, name what to use; then nearly the answer, "
        "with one gap left. Give one level at a time, begin with the first, and say which one it is. Only if they ask once more after "
        "the third may you give the answer, with the reason. You can look; nothing can be changed or run."
    ),
    EXPLAIN: (
        "This is a lesson, and its teacher allows explanations only. Say what code, an output or an error means, and why. Do not solve "
        "the person's exercise and write no code for it. You can look; nothing can be changed or run."
    ),
}
REASONING = (
    "This lesson wants your reasoning first: before each call and before the answer say in one or two plain sentences what you know, "
    "what you still need, and why this is the next step."
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is set. `tools`: one list of names or rules for each source that names any, and a call must be in all of them.

    `max_turns` and `max_tokens` are for one run. `sources` are the files, `problems` what is wrong with one of them.
    """

    name: str = ""
    mode: str = FREE
    tools: tuple[tuple[str, ...], ...] = ()
    max_turns: int | None = None
    max_tokens: int | None = None
    model: str = ""
    reasoning_first: bool = False
    message: str = ""
    sources: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        """Whether anything was set by any file."""
        return bool(self.sources)

    @property
    def only_looks(self) -> bool:
        """Whether nothing may be changed or run."""
        return self.mode != FREE

    def both(self, other: Lesson) -> Lesson:
        """Return what is left where both count; of two names, models and messages this one's comes first."""
        return Lesson(
            name=self.name or other.name,
            mode=min(self.mode, other.mode, key=lambda mode: WIDTH[mode]),
            tools=tuple(dict.fromkeys((*self.tools, *other.tools))),
            max_turns=least(self.max_turns, other.max_turns),
            max_tokens=least(self.max_tokens, other.max_tokens),
            model=self.model or other.model,
            reasoning_first=self.reasoning_first or other.reasoning_first,
            message="\n".join(dict.fromkeys(filter(None, (self.message, other.message)))),
            sources=tuple(dict.fromkeys((*self.sources, *other.sources))),
            problems=tuple(dict.fromkeys((*self.problems, *other.problems))),
        )

    def gate(self, gate: Gate) -> Gate:
        """Return `gate` made narrower; it never allows what `gate` does not."""
        for spec in self._specs():
            gate = Narrowed(gate, spec)
        return gate

    def chosen(self, tools: Iterable[Tool]) -> list[Tool]:
        """Return those of `tools` that a model is offered."""
        return reduce(chosen, self._specs(), list(tools))

    def _specs(self) -> list[AgentSpec]:
        """Say it in the words of a kind of subagent: one definition of what it is to be narrower."""
        about = AgentSpec("this lesson", "What the teacher allows.", only_looks=self.only_looks, source="built-in")
        return [replace(about, tools=names) for names in self.tools] or ([about] if self.only_looks else [])

    @property
    def told(self) -> str:
        """What the model is told of it with each prompt, "" where there is nothing."""
        words = " ".join(filter(None, (TOLD[self.mode], REASONING if self.reasoning_first else "")))
        return f"(From the runtime, not the person:) {words}" if words else ""

    def points(self) -> list[str]:
        """Return what is set, a few words each."""
        said = [
            _MEANS.get(self.mode, ""),
            *("no tools" if not names else f"only {', '.join(names)}" for names in self.tools),
            f"at most {self.max_turns} turn{'s' * (self.max_turns != 1)}" if self.max_turns is not None else "",
            f"at most {self.max_tokens:,} tokens" if self.max_tokens is not None else "",
            f"always the model {self.model}" if self.model else "",
            "reasoning first" if self.reasoning_first else "",
        ]
        return [text for text in said if text]

    @property
    def line(self) -> str:
        """What a run shows of it, in one line; "" where nothing is set."""
        if self.problems:
            return f"This lesson: {', '.join(self.points())}, because its rules can't be read. {self.problems[0]}"
        points = ", ".join(self.points())
        return f"This lesson: {points} ({', '.join(self.sources)})" if points else ""


NO_LESSON = Lesson()
FIELDS = tuple(f.name for f in fields(Lesson) if f.name not in {"sources", "problems"})


def least(one: int | None, other: int | None) -> int | None:
    """Return the smaller of two caps; None is no cap."""
    return min((cap for cap in (one, other) if cap is not None), default=None)


def closed(problem: str, where: str, table: Mapping[str, Any] | None = None) -> Lesson:
    """Return what counts where a teacher's file can't be read: hints only, and those fields of its `table` that can be read.

    A mistyped field must not open what the teacher meant to close, and hints do no harm: the student reads what is wrong.
    """
    made = Lesson(mode=HINT, sources=(where,), problems=(problem,))
    for name, value in (table or {}).items():
        with suppress(ConfigError):
            made = made.both(parsed({name: value}, where))
    return made


def parsed(table: Mapping[str, Any], where: str) -> Lesson:
    """Return the lesson that a table of fields means; raises `ConfigError` that names `where`, the field and what is expected."""
    made = Lesson(sources=(where,))
    for raw, value in table.items():
        name = raw.replace("-", "_")
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"The fields are {', '.join(FIELDS)}."
            raise ConfigError(f"{where}: there is no field {raw!r}. {hint}")
        made = replace(made, **{name: _READ[name](value, f"{where}: {raw} = {value!r}")})
    return made


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ConfigError(f"{where} is not a text of at most {_LONGEST:,} characters.")
    return value.strip()


def _mode(value: Any, where: str) -> str:
    if value not in WIDTH:
        near = difflib.get_close_matches(str(value), WIDTH, 1)
        raise ConfigError(f"{where} is not one of {', '.join(WIDTH)}.{f' Did you mean {near[0]!r}?' if near else ''}")
    return value


def _model(value: Any, where: str) -> str:
    name = _text(value, where)
    if "scripted:" in name:
        raise ConfigError(f"{where}: a script would import a module of this folder. Name a model, e.g. 'haiku'.")
    return name


def _cap(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{where} is not a whole number above 0.")
    return value


def _yes(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{where} is not true or false.")
    return value


def _tools(value: Any, where: str) -> tuple[tuple[str, ...], ...]:
    if value == OFF:
        return ((),)
    names: list[Any] = value if isinstance(value, list) else [None]
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise ConfigError(f"{where} is not 'off' or a list of tools, e.g. ['read_file', 'list_variables'].")
    for name in names:
        Rule.parse("allow", name)
    return (tuple(names),)


_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "name": _text, "mode": _mode, "tools": _tools, "max_turns": _cap, "max_tokens": _cap, "model": _model,
    "reasoning_first": _yes, "message": _text,
}  # fmt: skip
