"""The tool by which the model loads a skill, or reads one of its files.

It must not know where skills lie or how they are read (`Skills`). What a skill brings (rules for this turn, hooks, a
model) is handed on by those who give the skills; where it brings any, the person is asked first. Read `tools`.
"""

from __future__ import annotations

from typing import Protocol

from nbagent.core.messages import Json, text_block
from nbagent.core.ports import Preview, text_hash
from nbagent.core.tools import Call, Kind, Result, Tool, tool


class Skills(Protocol):
    """The skills that a model may load; all methods but `brings` raise `ToolError` with a sentence for the model."""

    def brings(self, name: str) -> str:
        """Return in plain words what a skill runs, allows or brings when it is loaded, "" where it is text only."""
        ...

    async def invoke(self, name: str, arguments: str, call: Call) -> tuple[str, bool]:
        """Load a skill and let what it brings take effect.

        Returns its text and False; of one that runs in a context of its own what came out there, and True.
        """
        ...

    def file(self, name: str, path: str) -> str:
        """Return the text of one of a skill's files."""
        ...


def tools(skills: Skills) -> list[Tool]:
    """Return skill."""
    loaded: set[str] = set()

    def kind(given: Json) -> Kind:
        return Kind.READ if given["file"] or not skills.brings(given["skill"]) else Kind.SHELL

    @tool(
        name="skill",
        kind=kind,
        subject=lambda given: f"{given['skill']} {given['args']}".strip(),
        title=lambda given: f"skill {given['skill']} {given['file'] or given['args']}".strip()[:120],
        preview=lambda given: Preview("text", skills.brings(given["skill"])) if not given["file"] else Preview(),
    )
    async def load(call: Call, skill: str, args: str = "", file: str = "") -> Result:
        """Load a skill: instructions for a kind of task. Which there are is told in a message.

        Load one before you begin a task that it fits, and follow it. Names that you were not told don't exist.

        Args:
            skill: the skill's name.
            args: what it is to be done with, if the skill wants that.
            file: instead of the instructions, one of the files that they name, e.g. "reference.md".
        """
        if file:
            text = skills.file(skill, file)
            return Result((text_block(text),), f"{file}: {len(text.splitlines())} lines")
        text, came_out = await skills.invoke(skill, args, call)
        known = text_hash(f"{call.session}\0{skill}\0{text}")
        if came_out:
            return Result((text_block(text),), f"skill {skill}: done")
        if known in loaded:
            return Result((text_block(f"The skill {skill} is loaded already, with the same text: go by it."),), "again")
        loaded.add(known)
        return Result((text_block(text),), f"skill {skill}")

    return [load]
