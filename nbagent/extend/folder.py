"""All that a folder's own files say, put together: instructions, skills, agents, settings; notes; and what needs trust.

The one place that a host has to know. Nothing of a project runs or widens anything before `doubt` was answered. Read
`FolderFiles.load`, then `FolderFiles.opening`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbagent.extend.agentfiles import Agents, load_agents
from nbagent.extend.instructions import Instructions, Loaded
from nbagent.extend.memory import Memory, memory_folder
from nbagent.extend.places import Places
from nbagent.extend.project import ProjectState, look
from nbagent.extend.seals import Seals
from nbagent.extend.shelf import Shelf
from nbagent.extend.survey import Survey, survey
from nbagent.extend.trust import Doubt, Power, Trust, what_would_run


@dataclass(frozen=True, slots=True)
class Wishes:
    """The settings that speak of such files, under Claude Code's names where it has one.

    `excludes`: claudeMdExcludes; `overrides`: skillOverrides; `memory`: autoMemoryEnabled; `memory_folder`:
    autoMemoryDirectory, from the person's own settings only.
    """

    excludes: Sequence[str] = ()
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    memory: bool = True
    memory_folder: Path | None = None


_NO_WISHES = Wishes()


class FolderFiles:
    """The files that count for one working folder, in one session."""

    def __init__(self, places: Places, wishes: Wishes = _NO_WISHES, *, seals: Seals | None = None) -> None:
        self.places = places
        self.trust = Trust(places.root, places.own / "trust", seals or Seals(places.own))
        self.shelf = Shelf(places, self.trust, overrides=wishes.overrides)
        self.instructions = Instructions(places, self.trust, excludes=wishes.excludes)
        folder = wishes.memory_folder or memory_folder(places)
        folder = folder if folder.name == "memories" else folder / "memories"
        self.memory = Memory(folder) if wishes.memory else None
        self.agents = Agents({}, (), ())
        self.told = Loaded()
        self.state: ProjectState | None = None
        self._survey = Survey((), ())

    def load(self) -> None:
        """Read all files anew: at the start of a session, and after an answer about trust."""
        self.shelf.load()
        self.agents = load_agents(self.places, self.trust)
        self.told = self.instructions.start()
        self._survey = survey(self.places)

    @property
    def powers(self) -> tuple[Power, ...]:
        """All in the project's files that can run or widen."""
        found = (*self._survey.powers, *self.shelf.powers, *self.agents.powers, *self.instructions.powers)
        return tuple(dict.fromkeys(found))

    @property
    def doubt(self) -> Doubt | None:
        """What the person must be asked before it is used; None where all was answered."""
        return self.trust.doubt(self.powers)

    def answer(self, doubt: Doubt, *, yes: bool) -> None:
        """Keep the answer for what was shown, and read the files anew."""
        self.trust.answer(doubt.powers, yes=yes)
        self.load()

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with files, a sentence each."""
        trust = (self.trust.problem,) if self.trust.problem else ()
        found = (*self._survey.problems, *self.shelf.problems, *self.agents.problems, *self.told.problems, *trust)
        return tuple(dict.fromkeys(found))

    async def opening(self, environment: Mapping[str, str]) -> str:
        """Return what a session begins with: instructions, skills, notes, the state of the project; "" for nothing."""
        self.state = await look(self.places, environment)
        notes = self.memory.text() if self.memory is not None else ""
        parts = (self.told.text, self.shelf.listing(), notes, self.state.text)
        return "\n\n".join(part for part in parts if part)

    async def news(self, environment: Mapping[str, str]) -> str:
        """Return what changed in the project since it was last told, "" where nothing did."""
        before, self.state = self.state, await look(self.places, environment)
        return self.state.news(before) if before is not None else self.state.text

    def touched(self, path: Path) -> str:
        """Take note of a file that was read or changed; return what the model is to be told because of it, mostly ""."""
        more = self.instructions.touched(path)
        skills = self.shelf.touched(path)
        lines = [f"- {skill.name}: {skill.description}" for skill in skills]
        listed = "\n".join(["Skills for these files, for the tool `skill`:", *lines]) if lines else ""
        return "\n\n".join(part for part in (more.text, listed) if part)

    @property
    def report(self) -> str:
        """What was found, for a person."""
        skills = (
            ", ".join(f"{one.name}{'' if one.trusted else ' (not trusted)'}" for one in self.shelf.skills) or "none"
        )
        agents = ", ".join(sorted(self.agents.specs)) or "none"
        asked = "answered" if self.doubt is None else "not answered yet: %agent trust asks"
        return (
            f"Instructions\n{self.told.report}\n\nSkills and commands: {skills}\nAgents: {agents}\n"
            f"Notes: {self.memory.folder if self.memory is not None else 'off'}\n\n"
            f"What runs or widens ({asked})\n{what_would_run(self.powers)}"
            + "".join(f"\n\n{one}" for one in self.problems[:1])
            + "".join(f"\n{one}" for one in self.problems[1:])
        )
