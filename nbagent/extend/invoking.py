"""Calls skills, for the model (the tool `skill`) and for a person (`%agent skill NAME …`, `%agent /name …`).

What a skill brings besides its text (rules for this turn, a model, hooks) is handed to who must see to it; a skill that
runs in a context of its own is handed to who runs subagents. Read `Invoker.called`, then `Invoker.invoke`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

from nbagent.core.errors import ToolError
from nbagent.core.tools import Call
from nbagent.extend.render import Invocation, Runner, Surroundings, attached_again, render
from nbagent.extend.shelf import Shelf
from nbagent.extend.skills import Skill, does

STACKED = 6
"""How many skills one line may name one after the other: `/write-tests /fix-issue 123`."""

Fork = Callable[[Invocation, Call], Awaitable[str]]
"""Runs a skill in a context of its own and returns what came out; `ToolError` if that does not work."""


def _nothing(_: Invocation) -> None:
    pass


_CALL = re.compile(r"/[^\s/][^\s]*(\s|\Z)")


def names_a_call(prompt: str) -> bool:
    """Whether a prompt looks like a call: its first word is a slash and a name."""
    return _CALL.match(prompt) is not None


class Invoker:
    """Calls the skills of a shelf in one session.

    `took_effect` is told of each skill that was called, before its text is given out. Without `run` a skill that has
    commands can't be called; without `fork` one that wants a context of its own works in this one. `by_person` are skills
    that `invoke` loads though only a person may call them: one did.
    """

    def __init__(
        self,
        shelf: Shelf,
        around: Surroundings,
        *,
        run: Runner | None = None,
        took_effect: Callable[[Invocation], None] = _nothing,
        fork: Fork | None = None,
        by_person: Collection[str] = (),
    ) -> None:
        self._shelf = shelf
        self._around = around
        self._run = run
        self._took_effect = took_effect
        self._fork = fork
        self._by_person = by_person
        self.called_so_far: list[Invocation] = []

    def brings(self, name: str) -> str:
        """Return in plain words what a skill runs, allows or brings when the model loads it, "" where it is text only."""
        try:
            skill = self._shelf.for_model(name)
        except ToolError:
            return ""  # the call itself will say why
        return does(skill) if skill.has_power and self._shelf.holds_now(skill) else ""

    async def invoke(self, name: str, arguments: str, call: Call) -> tuple[str, bool]:
        """Load a skill for the model: its text and False, or what came out of its own context and True."""
        find = self._shelf.get if name in self._by_person else self._shelf.for_model
        one = await self._call(find(name), arguments)
        if one.fork and self._fork is not None:
            return await self._fork(one, call), True
        return one.text, False

    def file(self, name: str, path: str) -> str:
        """Return the text of one of a skill's files."""
        return self._shelf.file(self._shelf.for_model(name).name, path)

    async def called(self, line: str) -> tuple[Invocation, ...]:
        """Call what a person wrote: `NAME arguments` or `/name /other arguments`; each gets the same arguments.

        Raises `ToolError` with a sentence for the person: no such skill, one for the model only, a command that failed.
        """
        names, arguments = self._named(line.strip())
        skills = [self._for_person(name) for name in names]
        return tuple([await self._call(skill, arguments) for skill in skills])

    def attached_again(self) -> str:
        """Return the text by which the skills that were called survive a compaction, "" where there are none."""
        return attached_again(self.called_so_far)

    async def _call(self, skill: Skill, arguments: str) -> Invocation:
        if skill.trusted and not self._shelf.holds_now(skill):
            skill = replace(skill, trusted=False)  # what the agent has written since must not run by an older yes
        one = await render(skill, arguments, self._around, self._run)
        self.called_so_far.append(one)
        self._took_effect(one)
        return one

    def _for_person(self, name: str) -> Skill:
        skill = self._shelf.get(name)
        if not skill.for_person:
            raise ToolError(
                f"{skill.name} is for the model only (user-invocable: false); ask for what you want in words"
            )
        return skill

    def _named(self, line: str) -> tuple[list[str], str]:
        """Split a line into the skills that it names and what they are called with."""
        if not line.strip("/ "):
            raise ToolError("Name a skill, e.g. %agent skill explain-this-notebook. %agent skill alone lists them")
        name, rest = _first_word(line)
        names = [name]
        while name.startswith("/") and rest.startswith("/") and len(names) < STACKED:
            word, after = _first_word(rest)
            if not self._stacks(word):
                break
            names.append(word)
            rest = after
        return names, rest

    def _stacks(self, word: str) -> bool:
        try:
            skill = self._shelf.get(word)
        except ToolError:
            return False
        return skill.for_person and skill.context != "fork"


def _first_word(text: str) -> tuple[str, str]:
    """Split a text after its first word; the rest keeps its own line breaks."""
    name, *rest = text.split(maxsplit=1)
    return name, rest[0].strip() if rest else ""
