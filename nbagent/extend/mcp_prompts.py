"""Prompts of MCP servers as commands that a person writes: `/mcp__server__prompt words …`.

Must not know of clients. Read `commands`, then `chosen`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbagent.core.errors import ConfigError
from nbagent.extend.mcp_schema import tool_name
from nbagent.extend.mcp_tool import short_description

if TYPE_CHECKING:
    from mcp import types


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """A prompt of a server's, to be offered as `/name`. `arguments` are the names, `needed` those that must be given."""

    name: str
    description: str
    arguments: tuple[str, ...]
    needed: frozenset[str]
    server: str
    prompt: str

    @property
    def hint(self) -> str:
        """The arguments as they are to be written after the name."""
        return " ".join(name if name in self.needed else f"[{name}]" for name in self.arguments)


def commands(prompts: Mapping[str, Sequence[types.Prompt]]) -> list[PromptCommand]:
    """Return the commands of servers' prompts, each under a name of its own."""
    made: dict[str, PromptCommand] = {}
    for server, offered in prompts.items():
        for prompt in offered:
            given = prompt.arguments or []
            name = tool_name(server, prompt.name, made)
            made[name] = PromptCommand(
                name,
                short_description(prompt.description or prompt.title or prompt.name),
                tuple(argument.name for argument in given),
                frozenset(argument.name for argument in given if argument.required),
                server,
                prompt.name,
            )
    return list(made.values())


def chosen(known: Sequence[PromptCommand], name: str, arguments: Sequence[str]) -> tuple[PromptCommand, dict[str, str]]:
    """Return the command of a name and its arguments filled in, in order: all that is left over belongs to the last one.

    Raises `ConfigError` for a command that is not there or that lacks arguments.
    """
    command = next((c for c in known if c.name == name.removeprefix("/")), None)
    if command is None:
        names = ", ".join(f"/{c.name}" for c in known) or "none"
        raise ConfigError(f"There is no prompt {name!r} of an MCP server. There are: {names}.")
    given = list(arguments)
    if command.arguments and len(given) > len(command.arguments):
        given[len(command.arguments) - 1 :] = [" ".join(given[len(command.arguments) - 1 :])]
    filled = dict(zip(command.arguments, given, strict=False))
    if missing := [n for n in command.arguments if n in command.needed and n not in filled]:
        raise ConfigError(f"/{command.name} needs {', '.join(missing)}: /{command.name} {command.hint}")
    return command, filled
