"""nbagent: an agent that lives in your notebook.

`%load_ext nbagent`, then write a task in a `%%agent` cell. Everything here is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from nbagent.app.answer import Answer
    from nbagent.app.branches import Branch, fork_session
    from nbagent.app.extension import Extension
    from nbagent.app.hooks import hook, unhook
    from nbagent.app.mapping import MapStopped
    from nbagent.app.mapping import map as map  # noqa: A004  (what everybody calls it; in no star)
    from nbagent.app.team import Team, TeamAnswer
    from nbagent.core.agents import AgentSpec
    from nbagent.core.tools import Kind, Result, Tool, tool
    from nbagent.tools.data.describers import describer

__version__ = "0.1.0"
__all__ = ["AgentSpec", "Answer", "Branch", "Kind", "MapStopped", "Result", "Team", "TeamAnswer", "Tool", "describer", "fork_session", "hook", "load_ipython_extension", "mcp_server",
           "register", "tool", "unhook", "unload_ipython_extension"]  # fmt: skip

Registered = TypeVar("Registered", "Tool", "AgentSpec")

_HOMES = {"Branch": "nbagent.app.branches", "fork_session": "nbagent.app.branches", "AgentSpec": "nbagent.core.agents", "Answer": "nbagent.app.answer", "Kind": "nbagent.core.tools",
          "Result": "nbagent.core.tools", "Tool": "nbagent.core.tools", "tool": "nbagent.core.tools",
          "map": "nbagent.app.mapping", "MapStopped": "nbagent.app.mapping",
          "Team": "nbagent.app.team", "TeamAnswer": "nbagent.app.team",
          "describer": "nbagent.tools.data.describers",
          "hook": "nbagent.app.hooks", "unhook": "nbagent.app.hooks"}  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nbagent' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "map"])  # no star brings `map` along: it would hide Python's own


def register(tool: Registered) -> Registered:
    """Offer a tool to the agent in this kernel, from the next session on, or a kind of subagent, from the next run on.

    One of the same name is replaced. Raises `ConfigError` where nbagent is not loaded, and while an agent runs: its own
    code must not make itself tools. Returns what it was given, so that it can be used as a decorator.
    """
    from nbagent.core.agents import AgentSpec

    extension = _at_rest()
    if isinstance(tool, AgentSpec):
        extension.agents[tool.name] = tool
        return tool
    extension.tools = [other for other in extension.tools if other.name != tool.name] + [tool]
    return tool


def mcp_server(name: str, server: Any) -> None:
    """Offer the tools of an MCP server made in this kernel (an `MCPServer` of the package `mcp`), from the next session on.

    Raises `ConfigError` where nbagent is not loaded, and while an agent runs.
    """
    _at_rest().mcp.hand_over(name, server)


def _at_rest() -> Extension:
    """Return the extension of this kernel; raise `ConfigError` while an agent runs: what runs then is its code."""
    from IPython.core.getipython import get_ipython

    from nbagent.app.extension import current
    from nbagent.core.errors import ConfigError

    extension = current(get_ipython())
    if extension.agents_code:
        raise ConfigError(
            "Tools, servers and kinds of subagents can't be made while an agent runs. Run that cell yourself, afterwards."
        )
    return extension


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext nbagent`: add `%%agent` and `%agent` to the shell."""
    from nbagent.app.extension import load_extension

    load_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext nbagent`: take away exactly what loading added."""
    from nbagent.app.extension import unload_extension

    unload_extension(shell)
