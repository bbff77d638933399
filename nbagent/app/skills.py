"""`%agent skill`, `%agent /name`: skills and commands as a person lists and calls them; those that run in a subagent.

What a call of one does in a run is in app/files.py. Read `called`, then `forked`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbagent.app.agents import Errand
from nbagent.app.files import MCP, is_known
from nbagent.config import Settings
from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.messages import Json, clean
from nbagent.core.ports import Model
from nbagent.core.shown import visible_plain
from nbagent.extend.invoking import names_a_call
from nbagent.models.scripted import ScriptedModel, call, result_of
from nbagent.tools.results import clip
from nbagent.view.text import one_line

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.extend.skills import Skill

_TOLD = 4_000


@dataclass(frozen=True, slots=True)
class ForkedSkill(Errand):
    """A skill that the person called and that runs in a context of its own, without the conversation's model."""

    skill: str = ""
    arguments: str = ""

    def model(self, words: str) -> Model:
        """Return what stands in for a model: it loads the skill and answers with what came out."""
        del words

        def answer(transcript: object) -> str:
            text = result_of(transcript, "skill")  # type: ignore[arg-type]  # the messages of a request
            return text.rpartition("\n[")[0].strip() or text  # without the line on what it took

        sent = call("skill", skill=self.skill, args=self.arguments)
        return ScriptedModel([sent, answer], name=self.agent or "skill")

    def heard(self, words: str, text: str) -> str:
        """Return what the conversation is told of it with the next prompt."""
        return (
            f"The person called {clean(words)}. It ran in a context of its own and came out with:\n{clip(text, _TOLD)}"
        )


def forked(extension: Extension, words: str) -> ForkedSkill | None:
    """Return the errand that a prompt is where it calls a skill with `context: fork`, else None."""
    if names_a_call(words):
        extension.files.load()
    found = _called(extension, words)
    if found is None or found.context != "fork" or not found.for_person:
        return None
    arguments = " ".join(words.split(maxsplit=1)[1:])
    return ForkedSkill(found.agent, "medium", found.name, arguments)


def with_its_model(extension: Extension, words: str, settings: Settings, given: Json) -> Settings:
    """Return the settings of a run whose prompt calls a skill: its model counts unless the cell names one."""
    found = _called(extension, words)
    if found is None or not found.model or found.context == "fork" or "model" in given:
        return settings
    return replace(settings, model=found.model.removesuffix("[1m]"))


def _called(extension: Extension, words: str) -> Skill | None:
    if not names_a_call(words) or words.startswith(MCP) or not is_known(extension, words):
        return None
    return extension.files.shelf.get(words.split(maxsplit=1)[0])


async def called(extension: Extension, line: str) -> str:
    """Carry out `%agent /name arguments`; raises `ConfigError` where there is no such skill or command."""
    from nbagent.app.cell import agent_cell

    if not line.startswith(MCP):
        try:
            extension.files.load()
            extension.files.shelf.get(line.split(maxsplit=1)[0])
        except ToolError as error:
            raise ConfigError(f"%agent: {error}") from None
    await agent_cell(extension, line, "")
    return ""


def command(extension: Extension, rest: str) -> str | Coroutine[Any, Any, str]:
    """Carry out `%agent skill [NAME arguments]`: without a name the skills and commands that there are."""
    words = rest.strip()
    return called(extension, f"/{words.removeprefix('/')}") if words else listed(extension)


def listed(extension: Extension) -> str:
    """Return all skills, commands and prompts of MCP servers that run, for a person."""
    extension.files.load()
    lines = [_line(extension, skill) for skill in extension.files.shelf.skills]
    if "mcp" in vars(extension):
        lines += [
            f"/{one.name} {one.hint}  (MCP server {one.server})\n    {one.description}"
            for one in extension.mcp.prompts()
        ]
    problems = [f"! {problem}" for problem in extension.files.shelf.problems]
    return visible_plain("\n".join([*lines, *problems, "%agent skill NAME or %agent /NAME calls one."]))


def _line(extension: Extension, skill: Skill) -> str:
    facts = [skill.kind, skill.source]
    facts += ["you only"] if not skill.for_model else []
    facts += ["the model only"] if not skill.for_person else []
    facts += [f"in a subagent{f' {skill.agent}' if skill.agent else ''}"] if skill.context == "fork" else []
    facts += ["not trusted: %agent trust"] if not skill.trusted else []
    facts += [f"effort {skill.effort} has no effect here"] if skill.effort else []
    shown = "" if skill.source == "shipped" else f" {extension.files.places.shown(skill.file)}"
    about = one_line(skill.description, 240)
    return f"{skill.name} {skill.argument_hint}".rstrip() + f"  ({', '.join(facts)}){shown}\n    {about}"
