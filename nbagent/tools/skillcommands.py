"""Runs the commands that a skill's text has: what the rules and the mode say of them counts, and a person is asked.

It must not know of files of skills, or how a question reaches the person. Read `runner`.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json
from nbagent.core.policy import Decision
from nbagent.core.ports import Question
from nbagent.core.shown import visible_plain
from nbagent.core.tools import Tool
from nbagent.tools.processes import Finished, run_command
from nbagent.tools.results import fold_terminal
from nbagent.tools.shell import child_environment

SECONDS = 120.0
"""How long one command of a skill may take."""
YES, NO = "Run it", "Don't run it"
_FOUND_NOTHING = frozenset({"grep", "egrep", "fgrep", "rg", "diff", "cmp", "find", "test", "["})
"""Commands whose exit code 1 is an answer and no failure."""


class Commanding(Protocol):
    """The skill whose command it is."""

    @property
    def name(self) -> str:
        """What the skill is called."""
        ...

    @property
    def shell(self) -> str:
        """Which shell its commands are written for: bash or powershell."""
        ...


class Deciding(Protocol):
    """What decides about a command."""

    async def decide(self, tool: Tool, given: Json) -> Decision:
        """Return what happens to it; raises `ToolError` where it may not run as it is."""
        ...


def runner(
    shell: Tool, gate: Deciding, folder: Path, ask: Callable[[Question], Awaitable[str]], *, seconds: float = SECONDS
) -> Callable[[str, Commanding], Awaitable[str]]:
    """Return what runs a command of a skill in `folder`, as a call of the tool `shell` would be decided by `gate`.

    What it returns raises `ToolError` where the command may not run, nobody says yes, it can't be started, takes longer
    than `seconds`, or fails.
    """

    async def run(command: str, skill: Commanding) -> str:
        given = shell.validate({"command": command})
        decision = await gate.decide(shell, given)
        if decision.action == "deny":
            raise ToolError(f"it is not allowed ({decision.rule})")
        if decision.action == "ask":
            text = (
                f"The skill {skill.name} begins with a command. Run it? ({decision.rule})\n\n{visible_plain(command)}"
            )
            answer = await ask(Question(f"skill-{secrets.token_hex(4)}", text, (YES, NO)))
            if answer != YES:
                raise ToolError("nobody was there to say yes" if not answer else f"the person said no: {answer}")
        try:
            done = await run_command(
                _argv(skill.shell, command), cwd=folder, env=child_environment(os.environ), timeout=seconds
            )
        except OSError as error:
            raise ToolError(f"it could not be started: {error.strerror or error}") from None
        return _output(done, command, seconds)

    return run


def _argv(shell: str, command: str) -> list[str]:
    """Return how a shell is given a command; raise `ToolError` where it is not here."""
    names = ("pwsh", "powershell") if shell == "powershell" else ("bash",)
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise ToolError(f"it is written for {names[0]}, which is not on this machine")
    if shell == "powershell":
        return [found, "-NoProfile", "-NonInteractive", "-Command", command]
    return [found, "--noprofile", "--norc", "-c", command]


def _output(done: Finished, command: str, seconds: float) -> str:
    output = fold_terminal(done.output).strip("\n")
    if done.code is None:
        raise ToolError(f"it was stopped after {seconds:g} s\n{output}".strip())
    words = command.split()
    if done.code == 0 or (done.code == 1 and words and Path(words[0]).name in _FOUND_NOTHING):
        return output
    raise ToolError(f"exit code {done.code}\n{output}".strip())
