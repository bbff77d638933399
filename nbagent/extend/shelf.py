"""The skills and slash commands that there are here: which file counts for a name, and what the model is told of them.

The person's own come before a project's, ours before Claude Code's in one place, the nearest folder before those above
it, all before the shipped ones, and a skill before a command of its name. Read `Shelf`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from nbagent.core.errors import ToolError
from nbagent.extend.commands import command_files
from nbagent.extend.globs import matches
from nbagent.extend.places import Places
from nbagent.extend.scripts import scripts_of
from nbagent.extend.skills import FILE_LIMIT, SHIPPED, SKILL_FILE, Skill, Source, read_skill
from nbagent.extend.textfiles import files_below, is_inside, read_text
from nbagent.extend.trust import Power, Trust

ENTRY_LIMIT = 1_536
"""Characters of a skill's description in the list that the model gets."""
LIST_LIMIT = 16_000
"""Characters of that whole list; with more skills each gets less, and at last only its name."""
_HEAD = "Skills are instructions for a kind of task. Load one with the tool `skill` before you begin such a task:"
_MOST = 500  # folders of one place that are looked into
_NAME = re.compile(r"\w[\w.:/+-]{0,127}")
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Found:
    """All skills and commands of the places, by name, and what is to be told of their files."""

    skills: Mapping[str, Skill]
    problems: tuple[str, ...]


class Shelf:
    """The skills and commands for one working folder. `overrides` is the setting `skillOverrides`: name → how it is shown.

    Reads the files at `load`, which is cheap enough for every run; nothing of a project's that was not trusted runs or
    widens anything.
    """

    def __init__(
        self, places: Places, trust: Trust, *, overrides: Mapping[str, str] = _NOTHING, shipped: Path = SHIPPED
    ) -> None:
        self._places = places
        self._trust = trust
        self._overrides = overrides
        self._shipped = shipped
        self._nested: list[Path] = []
        self._touched: list[str] = []
        self._found = Found({}, ())

    @property
    def skills(self) -> tuple[Skill, ...]:
        """All skills and commands, in the order of their names."""
        return tuple(self._found.skills[name] for name in sorted(self._found.skills))

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with files of skills, a sentence each."""
        return self._found.problems

    @property
    def powers(self) -> tuple[Power, ...]:
        """What of a project's skills and commands must be trusted before it runs or widens anything."""
        return tuple(skill.power for skill in self.skills if skill.power is not None)

    def load(self, overrides: Mapping[str, str] | None = None) -> None:
        """Read all files anew; `overrides` take the place of those of before."""
        self._overrides = self._overrides if overrides is None else overrides
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        for skill in self._read(problems):
            if (first := skills.get(skill.name)) is None:
                skills[skill.name] = replace(skill, trusted=skill.trusted or self._trusted(skill))
            elif skill.source == "project" and first.file != skill.file:
                shown = self._places.shown
                problems.append(
                    f"{shown(skill.file)} is not used: {shown(first.file)} has the same name and comes first."
                )
        self._found = Found(skills, tuple(problems))

    def touched(self, path: Path) -> tuple[Skill, ...]:
        """Take note of a file that was read or changed; return the skills that are listed to the model from now on.

        These are skills of folders between the working folder and the file, and those whose `paths` fit it.
        """
        before = {skill.name for skill in self._listed()}
        path = Path(os.path.realpath(self._places.folder / path))
        if not is_inside(path, self._places.root):
            return ()
        self._touched.append(path.relative_to(self._places.root).as_posix())
        folders = [
            folder
            for folder in reversed(path.parents)
            if self._places.folder in folder.parents and folder not in self._nested
            if any((folder / kind / "skills").is_dir() for kind in (".nbagent", ".claude"))
        ]
        if folders:
            self._nested += folders
            self.load()
        return tuple(skill for skill in self._listed() if skill.name not in before)

    def get(self, name: str) -> Skill:
        """Return the skill or command of a name, with or without its slash; raise `ToolError` that names the nearest."""
        wanted = name.strip().removeprefix("/")
        if (skill := self._found.skills.get(wanted)) is not None and self._shown(skill) != "off":
            return skill
        ends = [one for one in self.skills if one.kind == "command" and one.name.rpartition(":")[2] == wanted]
        if len(ends) == 1:
            return ends[0]
        names = [one.name for one in self.skills if self._shown(one) != "off"]
        near = difflib.get_close_matches(wanted, names, 1, 0.5)
        hint = (
            f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names)}." if names else "There are none."
        )
        raise ToolError(f"There is no skill or command {wanted!r}. {hint}")

    def for_model(self, name: str) -> Skill:
        """Return a skill that the model may load by itself; raise `ToolError` where there is none or only a person may."""
        skill = self.get(name)
        if not skill.for_model or self._shown(skill) == "user-invocable-only":
            raise ToolError(
                f"Only the person can start {skill.name!r} (%agent skill {skill.name}). Don't do what it does another way"
            )
        return skill

    def listing(self) -> str:
        """Return what the model is told of the skills that it may load, "" where there are none."""
        listed = self._listed()
        if not listed:
            return ""
        room = LIST_LIMIT - sum(len(skill.name) + 4 for skill in listed)
        each = min(ENTRY_LIMIT, room // len(listed))
        lines = [_entry(skill, each if self._shown(skill) != "name-only" else 0) for skill in listed]
        return "\n".join([_HEAD, *lines])

    def untold(self, said: str) -> str:
        """Return what of the list does not stand in `said`, what a conversation was told; "" for nothing."""
        head, *lines = self.listing().split("\n")
        if head not in said:
            return "\n".join([head, *lines])
        known = set(said.split("\n"))
        new = [line for line in lines if line not in known]
        return "\n".join(["More skills, or others than before, for the tool `skill`:", *new]) if new else ""

    def holds_now(self, skill: Skill) -> bool:
        """Whether what a skill runs or allows may be used with the content that its files have at this moment."""
        if skill.power is None or not skill.trusted:
            return skill.trusted
        shown = self._places.shown(skill.file)
        found = read_skill(skill.name, skill.kind, skill.source, skill.file, shown, [], self._scripts)
        return found is not None and self._trusted(found)

    def file(self, name: str, path: str) -> str:
        """Return the text of one of a skill's other files; raise `ToolError` that says what there is."""
        skill = self.get(name)
        place = skill.folder / path
        if skill.kind != "skill" or not path.strip() or "\0" in path or not is_inside(place, skill.folder):
            raise ToolError(f"{path!r} is no file of the skill {skill.name!r}")
        read = read_text(place, FILE_LIMIT)
        if read is None:
            there = sorted(one.relative_to(skill.folder).as_posix() for one in _files(skill.folder))
            listed = ", ".join(there[:50]) or "none"
            raise ToolError(f"The skill {skill.name!r} has no file {path!r}. Its files: {listed}")
        if read.problem and not read.text:
            raise ToolError(read.problem.rstrip("."))
        return read.text

    def _scripts(self, commands: Sequence[str]) -> Sequence[str]:
        return scripts_of(commands, self._places)

    def _listed(self) -> list[Skill]:
        return [
            skill
            for skill in self.skills
            if skill.for_model and self._shown(skill) not in {"off", "user-invocable-only"} and self._is_due(skill)
        ]

    def _is_due(self, skill: Skill) -> bool:
        return not skill.paths or any(matches(path, skill.paths) for path in self._touched)

    def _shown(self, skill: Skill) -> str:
        return self._overrides.get(skill.name, "on") if skill.kind == "skill" else "on"

    def _trusted(self, skill: Skill) -> bool:
        return skill.power is not None and self._trust.holds(skill.power)

    def _read(self, problems: list[str]) -> Iterator[Skill]:
        """Yield all skills and commands, those that count more first."""
        places = self._places
        own = (places.administrators("skills"), *places.user("skills"))
        users: list[tuple[Path, Source]] = [(folder, "user") for folder in own]
        project: list[tuple[Path, Source]] = [(folder, "project") for folder in places.project("skills")]
        for folder, source in [*users, *project]:
            yield from self._skills(folder, source, "", problems)
        for base in self._nested:
            before = f"{base.relative_to(places.folder).as_posix()}:"
            for folder in places.project("skills", base):
                yield from self._skills(folder, "project", before, problems)
        yield from self._skills(self._shipped, "shipped", "", problems)
        for name, source, path in command_files(places, problems):
            yield from self._one(name, "command", source, path, problems)

    def _skills(self, folder: Path, source: Source, before: str, problems: list[str]) -> Iterator[Skill]:
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            return
        for entry in entries[:_MOST]:
            path = entry / SKILL_FILE
            if source == "project" and path.exists() and not is_inside(path, self._places.root):
                problems.append(f"{self._places.shown(path)} is not used: it leads out of the project.")
                continue
            name = entry.name
            if before and any(name == other.name for other in self._found.skills.values() if other.folder != entry):
                name = before + name
            yield from self._one(name, "skill", source, path, problems)
        if len(entries) > _MOST:
            problems.append(
                f"{self._places.shown(folder)} has more than {_MOST} entries; the others are not looked at."
            )

    def _one(
        self, name: str, kind: Literal["skill", "command"], source: Source, path: Path, problems: list[str]
    ) -> Iterator[Skill]:
        """Yield the skill in a file, if it can be used."""
        shown = self._places.shown(path)
        if not _NAME.fullmatch(name):
            if path.exists():
                problems.append(f"{shown} is not used: its name must be one word of letters, digits, hyphens.")
            return
        skill = read_skill(name, kind, source, path, shown, problems, self._scripts)
        if skill is not None:
            yield skill


def _entry(skill: Skill, room: int) -> str:
    when = f" When: {skill.when_to_use}" if skill.when_to_use else ""
    said = " ".join(f"{skill.description}{when}".split())
    if room < 24 or not said:
        return f"- {skill.name}"
    return f"- {skill.name}: {said if len(said) <= room else said[: room - 1] + '…'}"


def _files(folder: Path) -> Iterable[Path]:
    return [path for path in files_below(folder, "") if path.name != SKILL_FILE]
