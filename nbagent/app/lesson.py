"""A teacher's rules for this notebook: found in `lesson.toml` and in the notebook's metadata, folded into the settings of its runs.

`%agent lesson` shows them and how the exercises stand; `%agent hint` gives the next hint. They can only narrow (course_policy.py), so a
notebook may bring them without anybody's yes. Must not know how a run goes. Read `Lessons.in_force`, then `under`.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.ways import narrowed, sifted
from nbagent.config import WIDTH as MODE_WIDTH
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.core.policy import Mode
from nbagent.core.run import Agent
from nbagent.extend.places import Places
from nbagent.teach.course_policy import FILE, NO_LESSON, Lesson, closed, least, parsed
from nbagent.teach.exercises import Exercise, Outcome, exercise, exercises_of, hint
from nbagent.teach.lessons import LESSONS

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.reports import Said
    from nbagent.app.runtools import MakeTools

SCRIPTS = ("scripted:", "broken:", "human")
"""Beginnings of names of models that no server is asked for: a lesson that fixes the model leaves its notebook's own scripts alone."""
_CHECKED = re.compile(r"""\bcheck\(\s*["']((\d\d)\.\w+)["']""")
_CELL = re.compile(r"(?:ex|check)-(\d\d)-(\w+)")


# ── what counts ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Lessons:
    """The lesson of one kernel: what its files say, read anew when they change, and the hints that were given so far."""

    folder: Path
    notebook: Callable[[], str]
    hinted: dict[str, int] = field(default_factory=dict[str, int])
    _read: dict[Path, tuple[tuple[int, int], Any]] = field(default_factory=dict[Path, Any])

    def in_force(self) -> Lesson:
        """Return what all files say together: each `lesson.toml` from here to the top of the project, and the notebook's metadata."""
        places = Places.of(self.folder, os.environ)
        files = [place / FILE for place in places.upward()]
        found = [self._looked(file, lambda path: _of_file(path, places.root)) for file in files]
        path = self.notebook_file()
        metadata = self.content(path).get("metadata", {}) if path is not None else {}
        return reduce(
            Lesson.both, [*(one for one in found if one is not None), _of_metadata(metadata, path)], NO_LESSON
        )

    def notebook_file(self) -> Path | None:
        """Return the file of this kernel's notebook, None where it is not known or is none."""
        said = self.notebook()
        path = Path(said) if Path(said).is_absolute() else self.folder / Path(said).name
        return path if path.suffix == ".ipynb" and path.is_file() else None

    def content(self, path: Path) -> dict[str, Any]:
        """Return the notebook in `path` as it was saved last, {} where it can't be read."""
        return self._looked(path, _notebook) or {}

    def _looked(self, path: Path, read: Callable[[Path], Any]) -> Any:
        """Read a file, once as long as it does not change; None where there is none."""
        try:
            stat = path.stat()
        except OSError:
            self._read.pop(path, None)
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        if self._read.get(path, ((), None))[0] != stamp:
            self._read[path] = (stamp, read(path))
        return self._read[path][1]


def _of_file(path: Path, root: Path) -> Lesson:
    where = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    table: dict[str, Any] = {}
    if not path.is_file():  # a pipe would be waited for
        return closed(f"{where} is no file.", where)
    try:
        return parsed(table := tomllib.loads(path.read_text("utf-8")), where)
    except ConfigError as error:
        return closed(str(error), where, table)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return closed(f"{where} can't be read: {error}.", where)


def _of_metadata(metadata: Any, path: Path | None) -> Lesson:
    ours = metadata.get("nbagent") if isinstance(metadata, dict) else None
    table = ours.get("lesson") if isinstance(ours, dict) else None
    if table is None or path is None:
        return NO_LESSON
    where = f"the metadata of {path.name}"
    if not isinstance(table, dict):
        return closed(f"{where}: nbagent.lesson is not a table of fields.", where)
    try:
        return parsed(table, where)
    except ConfigError as error:
        return closed(str(error), where, table)


def _notebook(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# ── what a run may do under it ───────────────────────────────────────────────────────────────────────────────────────


def under(settings: Settings, lesson: Lesson) -> Settings:
    """Return the settings made narrower by a lesson. Raises `ConfigError` for an unknown preset."""
    if not lesson.there:
        return settings
    wide = lesson.only_looks and MODE_WIDTH[settings.mode] > MODE_WIDTH[Mode.DONT_ASK]
    fixed = bool(lesson.model)
    return replace(
        settings,
        mode=Mode.READ_ONLY if wide else settings.mode,
        max_turns=settings.max_turns
        if lesson.max_turns is None
        else least(settings.limits().max_turns, lesson.max_turns),
        budget_tokens=least(settings.budget_tokens, lesson.max_tokens),
        model=model_under(lesson, settings.model),
        fallback_model="" if fixed else settings.fallback_model,
        web=() if lesson.tools else settings.web,
        lesson=lesson,
    )


def model_under(lesson: Lesson, name: str) -> str:
    """Return the model that is asked where `name` is wanted."""
    return name if not lesson.model or name.strip().startswith(SCRIPTS) else lesson.model


def agent_under(agent: Agent, lesson: Lesson) -> Agent:
    """Return `agent` with a narrower gate; nothing that it starts outlives a run that only looks."""
    gate = lesson.gate(agent.gate)
    return agent if gate is agent.gate else replace(agent, gate=gate, start=None)


def tools_under(make: MakeTools, names: Sequence[str], lesson: Lesson) -> MakeTools:
    """Return what makes only the tools of these names (() for all; see `ways.narrowed`), and of them what the lesson leaves."""
    chosen = narrowed(make, names)
    return sifted(chosen, lambda tools, _: lesson.chosen(tools)) if lesson.tools else chosen


# ── %agent lesson, %agent hint ───────────────────────────────────────────────────────────────────────────────────────

GUIDES = "These rules guide, they do not secure: this kernel is yours."
_SAID = {
    "hint-only": "Hints only: the agent looks and gives hints, in three levels; it changes and runs nothing.",
    "explain-only": "Explanations only: the agent looks and explains; it changes and runs nothing.",
}


def command(extension: Extension, _: str) -> str:
    """Say what a teacher has set for this notebook, by which file, and how its exercises stand."""
    lesson = extension.settings().lesson
    lines = [f"Lesson: {lesson.name}"] if lesson.name else []
    if lesson.points():
        said = [_SAID.get(lesson.mode, ""), *lesson.points()[bool(lesson.only_looks) :]]
        lines += [f"  {text[0].upper()}{text[1:].rstrip('.')}." for text in said if text]
        lines.append(f"Set by {', '.join(lesson.sources)}. {GUIDES}")
    else:
        lines.append(f"Nothing is set for this notebook. A teacher can, in {FILE} (docs/teaching.md).")
    lines += [f"Not as it was meant: {problem}" for problem in lesson.problems]
    if lesson.message:
        lines.append(f"From your teacher: {lesson.message}")
    return "\n".join([*lines, *_exercises(extension)])


def _exercises(extension: Extension) -> list[str]:
    there = _there(_number(extension))
    if not there:
        return []
    tried, lines = _tried(extension), ["", "Exercises of this notebook:"]
    for one in there:
        outcomes, given = tried.get(one.id, []), min(extension.lessons.hinted.get(one.id, 0), len(one.hints))
        right = any(outcome.passed for outcome in outcomes)
        times = f"tried {len(outcomes)} time{'s' * (len(outcomes) != 1)}" if outcomes else "not tried yet"
        state = "right" if right else f"{times}, not yet right" if outcomes else times
        hints = f", {given} of {len(one.hints)} hints" if given else ""
        lines.append(f"  {'✓' if right else '…' if outcomes else '·'} {one.id:12} {state}{hints}")
    return [*lines, "%agent hint gives a hint for the exercise above it; %agent hint NN.word for another."]


def hints(extension: Extension, rest: str) -> Said:
    """Give the next hint for an exercise: three, then a question, then the answer. Raises `ConfigError` where there is none."""
    from nbagent.app.reports import Linked

    number = _number(extension)
    asked = rest.strip()
    if asked in LESSONS:
        raise ConfigError(
            f"Lesson {asked} has these exercises: {', '.join(one.id for one in _there(asked))}. Name one."
        )
    if asked and "." not in asked and not number:
        raise ConfigError(f"%agent hint {asked}: of which lesson? Write its number, too: %agent hint 02.path")
    name = asked if "." in asked else f"{number}.{asked}" if asked else _nearest(extension, number)
    one = exercise(name)
    level = extension.lessons.hinted[one.id] = extension.lessons.hinted.get(one.id, 0) + 1
    count = len(one.hints)
    if level <= count:
        text = f"Hint {level} of {count} for {one.id}: {hint(one.id, level)}"
    elif level == count + 1:
        text = (
            f"You have all {count} hints for {one.id}. Try it once more with the last one: {one.hints[-1]} "
            f"If you want to see an answer, ask again: %agent hint {one.id}"
        )
    else:
        text = f"An answer to {one.id} (yours may look different):\n\n{hint(one.id, count + 1)}"
    return Linked(text, text)


def _there(number: str) -> tuple[Exercise, ...]:
    try:
        return exercises_of(number) if number else ()
    except ImportError:  # a lesson that is not written yet
        return ()


def _number(extension: Extension) -> str:
    """Return the number of this notebook's lesson: by its file's name, else by what was checked last; "" where it is none."""
    path = extension.lessons.notebook_file()
    number, _, name = path.stem.partition("_") if path is not None else ("", "", "")
    if LESSONS.get(number) == name != "":
        return number
    for source in reversed(extension.shell.user_ns.get("In", [])):
        if isinstance(source, str) and (found := _CHECKED.findall(source)):
            return found[-1][1] if found[-1][1] in LESSONS else ""
    return ""


def _tried(extension: Extension) -> dict[str, list[Outcome]]:
    """Return what the checks of this kernel found, as the kernel itself remembers their cells' values."""
    found: dict[str, list[Outcome]] = {}
    for value in dict(extension.shell.user_ns.get("Out", {})).values():
        if isinstance(value, Outcome):
            found.setdefault(value.exercise, []).append(value)
    return found


def _nearest(extension: Extension, number: str) -> str:
    """Return the exercise nearest above the running cell; else the one that was tried last, of those not right yet. Raises `ConfigError`."""
    from nbagent.jupyter.front_end import running_cell

    path = extension.lessons.notebook_file()
    cells = extension.lessons.content(path).get("cells", []) if path is not None else []
    ids = [str(cell.get("id", "")) for cell in cells if isinstance(cell, dict)]
    here = running_cell(extension.shell)
    above = ids[: ids.index(here)] if here in ids else []
    for one in reversed(above):
        if found := _CELL.match(one):
            return f"{found[1]}.{found[2]}"
    there, tried = _there(number), _tried(extension)
    open_ones = [one.id for one in there if not any(outcome.passed for outcome in tried.get(one.id, []))]
    if open_ones:
        return next((name for name in reversed(tried) if name in open_ones), open_ones[0])
    if there:
        raise ConfigError(
            f"All exercises of this notebook are right. %agent hint {there[-1].id} still gives its hints."
        )
    raise ConfigError("%agent hint: this notebook has no exercises that I know. Name one: %agent hint 02.path")
