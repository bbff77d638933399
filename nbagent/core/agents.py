"""A kind of subagent as a value: what it is for, what it may use, and how far it may go.

It says nothing of how one is run, and grants nothing: what a subagent may do is never more than what its parent may.
Read `AgentSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nbagent.core.messages import Json


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """A kind of subagent, from a file (`agents/NAME.md`) or from code.

    `description` tells the model when to use it; `prompt` is its system prompt. `tools` are the names and rules of the
    tools that it has (None: all of its parent's), less `disallowed_tools`. `model`: a name, an alias, or "" for the
    parent's. `mcp_servers`: name → configuration, or None for a server that is known by its name. `hooks` has the shape of
    a settings file's `hooks`. `skills` are loaded when it begins. `memory`: where it keeps notes of its own. `isolation`:
    "worktree" where it works on a copy. `with_instructions`: whether it is told CLAUDE.md and the state of the project.
    """

    name: str
    description: str
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: str = ""
    permission_mode: str = ""
    max_turns: int | None = None
    skills: tuple[str, ...] = ()
    mcp_servers: Mapping[str, Json | None] = field(default_factory=dict[str, Any])
    hooks: Mapping[str, tuple[Json, ...]] = field(default_factory=dict[str, tuple[Json, ...]])
    memory: Literal["", "user", "project", "local"] = ""
    background: bool = False
    effort: str = ""
    isolation: Literal["", "worktree"] = ""
    color: str = ""
    initial_prompt: str = ""
    with_instructions: bool = True
    source: Literal["built-in", "user", "project", "code"] = "code"

    @property
    def widens(self) -> bool:
        """Whether it names tools, a mode, hooks or servers of its own: from a project's file this needs trust."""
        return bool(self.tools or self.permission_mode or self.hooks or self.mcp_servers)
