"""All that a folder's own files say, put together: instructions, skills, agents, settings; notes; and what needs trust.

The one place that a host has to know. Nothing of a project runs or widens anything before `doubt` was answered. Read
`FolderFiles.load`, then `FolderFiles.news`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nbagent.extend.agentfiles import Agents, load_agents
from nbagent.extend.instructions import WAITS, Instructions, Loaded
from nbagent.extend.memory import Memory, memory_folder
from nbagent.extend.places import Places
from nbagent.extend.project import ProjectState, look
from nbagent.extend.seals import Seals
from nbagent.extend.shelf import Shelf
from nbagent.extend.survey import NOT_HERE, Survey, survey
from nbagent.extend.trust import Doubt, Power, Trust, what_would_run
from nbagent.extend.wishes import Wishes

_NO_WISHES = Wishes()


class FolderFiles:
    """The files that count for one working folder. `wishes` are the settings that speak of them, or what reads those."""

    def __init__(
        self, places: Places, wishes: Wishes | Callable[[], Wishes] = _NO_WISHES, *, seals: Seals | None = None
    ) -> None:
        self.places = places
        self.trust = Trust(places.root, places.own / "trust", seals or Seals(places.own))
        self._read: Callable[[], Wishes] = (lambda: wishes) if isinstance(wishes, Wishes) else wishes
        self.wishes = self._read()
        self.shelf = Shelf(places, self.trust, overrides=self.wishes.overrides)
        self.instructions = self.instructions_anew()
        self.agents = Agents({}, (), ())
        self.told = Loaded()
        self._survey = Survey((), ())

    def load(self) -> None:
        """Read all files and the answers about trust anew: at the start of a run, and after an answer."""
        self.trust.look()
        self.wishes = self._read()
        self.shelf.load(self.wishes.overrides)
        self.agents = load_agents(self.places, self.trust)
        self.instructions = self.instructions_anew()
        self.told = self.instructions.start()
        self._survey = survey(self.places)

    def instructions_anew(self) -> Instructions:
        """Return the instructions of this folder with nothing of them told yet."""
        return Instructions(self.places, self.trust, excludes=self.wishes.excludes, own=self.wishes.own)

    @property
    def memory(self) -> Memory | None:
        """The notes on this project, None where they are switched off."""
        if not self.wishes.memory:
            return None
        folder = self.wishes.memory_folder or memory_folder(self.places)
        return Memory(folder if folder.name == "memories" else folder / "memories")

    # ── trust ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def powers(self) -> tuple[Power, ...]:
        """All in the project's files that can run or widen, here."""
        found = (*self._survey.powers, *self.shelf.powers, *self.agents.powers, *self.instructions.powers)
        return tuple(power for power in dict.fromkeys(found) if not _is_idle(power))

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
        """What is wrong with files, a sentence each; what only waits for trust is not among it."""
        trust = (self.trust.problem,) if self.trust.problem else ()
        found = (*self._survey.problems, *self.shelf.problems, *self.agents.problems, *self.told.problems, *trust)
        return tuple(problem for problem in dict.fromkeys(found) if not problem.endswith(WAITS))

    # ── what the model is told ───────────────────────────────────────────────────────────────────────────────────────

    async def news(
        self, environment: Mapping[str, str], said: str = "", before: ProjectState | None = None
    ) -> tuple[str, ProjectState]:
        """Return what to tell a conversation of these files, and the state of the project as it is told then.

        `said` is what it was told so far: of that only what is other by now is told again; "" begins one. `before` is the
        state that it was told last.
        """
        state = await look(self.places, environment)
        notes = self.memory.text() if self.memory is not None else ""
        notes = "" if notes.partition("\n")[0] in said else notes
        knows = before is not None and state.text.partition("\n")[0] in said
        of_project = state.news(before) if before is not None and knows else state.text
        of_project = "" if of_project in said else of_project
        parts = (self.told.untold(said).text, self.shelf.untold(said), notes, of_project)
        return "\n\n".join(part for part in parts if part), state

    def touched(self, path: Path, instructions: Instructions | None = None) -> tuple[Loaded, str]:
        """Take note of a file that was read or changed; return the instructions for it, and its skills as a list.

        Both are empty mostly. `instructions` are those of a subagent's own, which was told nothing of them.
        """
        more = (instructions or self.instructions).touched(path)
        lines = [f"- {skill.name}: {skill.description}" for skill in self.shelf.touched(path)]
        return more, "\n".join(["Skills for these files, for the tool `skill`:", *lines]) if lines else ""

    # ── what a person is shown ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def report(self) -> str:
        """What was found, for a person."""
        skills = (
            ", ".join(f"{one.name}{'' if one.trusted else ' (not trusted)'}" for one in self.shelf.skills) or "none"
        )
        agents = ", ".join(sorted(self.agents.specs)) or "none"
        return (
            f"Instructions\n{self.told.report}\n\nSkills and commands: {skills}\nAgents: {agents}\n"
            f"Notes: {self.memory.folder if self.memory is not None else 'off'}\n\n{self.answered}"
            + "".join(f"\n\n{one}" for one in self.problems[:1])
            + "".join(f"\n{one}" for one in self.problems[1:])
        )

    @property
    def answered(self) -> str:
        """All that runs or widens, by what the person said of it."""
        groups: dict[str, list[Power]] = {}
        for power in self.powers:
            said = (
                "Used, because you trust it:"
                if self.trust.holds(power)
                else "Not used, because you said no:"
                if self.trust.refused(power)
                else "Not used, because you have not said yet whether you trust it (%agent trust yes asks):"
            )
            groups.setdefault(said, []).append(power)
        texts = [f"{head}\n{what_would_run(found)}" for head, found in groups.items()] or [what_would_run(())]
        if idle := [f"{power.name} ({power.file})" for power in self._survey.powers if _is_idle(power)]:
            texts.append(f"Settings of Claude Code that have no effect here: {', '.join(idle)}.")
        return "\n\n".join(texts)


def _is_idle(power: Power) -> bool:
    return power.kind == "setting" and power.name in NOT_HERE
