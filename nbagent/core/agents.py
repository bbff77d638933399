"""A kind of subagent as a value: what it is for, what it may use, and how far it may go.

It says nothing of how one is run, and grants nothing: what a subagent may do is never more than what its parent may.
Read `AgentSpec`, then `Child`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from nbagent.core.messages import Block, Json

if TYPE_CHECKING:
    from nbagent.core.hooks import Hooks
    from nbagent.core.ports import Model
    from nbagent.core.session import Session
    from nbagent.core.tools import Toolset


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """A kind of subagent, from a file (`agents/NAME.md`) or from code.

    `description` tells the model when to use it; `prompt` is its system prompt. `tools` are the names and rules of the
    tools that it has (None: all of its parent's), less `disallowed_tools`. `model`: a name, an alias, or "" for the
    parent's. `mcp_servers`: name → configuration, or None for a server that is known by its name. `hooks` has the shape of
    a settings file's `hooks`. `skills` are loaded when it begins. `memory`: where it keeps notes of its own. `isolation`:
    "worktree" where it works on a copy. `with_instructions`: whether it is told CLAUDE.md and the state of the project.
    `only_looks`: whatever the mode is, it changes and runs nothing.
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
    only_looks: bool = False
    source: Literal["built-in", "user", "project", "code"] = "code"

    @property
    def widens(self) -> bool:
        """Whether it names tools, a mode, hooks or servers of its own: from a project's file this needs trust."""
        return bool(self.tools or self.permission_mode or self.hooks or self.mcp_servers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One subagent that is to run for a call. `session` is its own; `blocks` is what it is told, `prompt` its readable part.

    `title` says in a few words what it is for; `hooks` are those of its own beside its parent's (None: its parent's);
    `transcript` is the path of its session's file.
    """

    id: str
    spec: AgentSpec
    title: str
    model: Model
    tools: Toolset
    session: Session
    blocks: Sequence[Block]
    prompt: str
    max_turns: int
    hooks: Hooks | None = None
    transcript: str = ""
