"""Servers of the hand-written script (mcp_script.py), and a call that keeps what it was told and asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.core.ports import Question
from nbagent.core.tools import Call, Result, Tool
from nbagent.extend.mcp import Servers
from nbagent.extend.mcp_config import Found, ServerSpec
from nbagent.tools.results import scaled_image

SCRIPT = Path(__file__).with_name("mcp_script.py")


def script(folder: Path, *options: str, name: str = "s", scope: Any = "user", **config: Any) -> ServerSpec:
    """The script as a server of a person's, or of another `scope`."""
    command = {"command": sys.executable, "args": [str(SCRIPT), *options], **config}
    return ServerSpec(name, scope, "here", command, folder)


def servers(
    folder: Path,
    *specs: ServerSpec,
    environment: Mapping[str, str] | None = None,
    trusted: Callable[[ServerSpec], bool] = lambda _: False,
    disabled: frozenset[str] = frozenset(),
) -> Servers:
    """The servers of `specs`; none is started."""
    found = Found({spec.name: spec for spec in specs}, disabled=disabled)
    known = {**os.environ, **(environment or {})}
    return Servers(folder, lambda: found, environment=known, trusted=trusted, picture=scaled_image)


@dataclass
class Heard:
    """What a call was told and asked; `replies` are the person's answers, in order."""

    replies: list[str] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def call(self) -> Call:
        async def ask(question: Question) -> str:
            self.questions.append(question)
            return self.replies.pop(0) if self.replies else ""

        return Call("c1", self.progress.append, ask)


def named(tools: list[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}


async def use(of: Servers, name: str, heard: Heard | None = None, **given: Any) -> Result:
    """Call a tool as a run does: validated, then run."""
    tool = named(of.tools())[name]
    return await tool.run((heard or Heard()).call(), tool.validate(given))


def text(result: Result) -> str:
    return "\n".join(block["text"] for block in result.content if block["type"] == "text")
