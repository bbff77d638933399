"""The tools that find files by name and search their text. Read `glob_tool`."""

from __future__ import annotations

import asyncio
import os

from nbagent.core.errors import ToolError
from nbagent.core.messages import clean, text_block
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools.pathrules import PathRules
from nbagent.tools.paths import Place, locate
from nbagent.tools.workspace_root import Workspace, ask_sdk

_MAX_LINES = 200
_MAX_LINE = 400


def glob_tool(workspace: Workspace) -> Tool:
    """Return the tool that finds files by name."""

    @tool(
        kind=lambda given: workspace.kind(given["folder"], writes=False),
        subject=lambda given: workspace.subject(given["folder"], writes=False),
        title=lambda given: f"find files {given['pattern']}",
        grammar=PathRules(workspace.root, "folder", folder=True),
    )
    async def glob(_call: Call, pattern: str = "*", folder: str = ".") -> Result:
        """Find files by name, newest first, e.g. "**/*.csv". The pattern "*" lists a folder.

        Args:
            pattern: what names must look like: * any name, ** any folders, ? one letter.
            folder: where to look, relative to the working folder.
        """
        place = workspace.approved(folder, writes=False)
        import anthropic  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  (whole, before its parts: see clients.warm_up)
        from anthropic.lib.tools.agent_toolset import beta_glob_tool  # noqa: PLC0415

        finder = beta_glob_tool(workspace.context(place))
        given = {"pattern": clean(pattern), "path": str(place.path)}
        # in a thread: a walk through a big tree must not hold up the kernel
        said = await asyncio.to_thread(lambda: asyncio.run(ask_sdk(finder, given, place)))
        return _listed(workspace, str(said), place, "files")

    return glob


def grep_tool(workspace: Workspace) -> Tool:
    """Return the tool that searches the text of files."""

    @tool(
        kind=lambda given: workspace.kind(given["folder"], writes=False),
        subject=lambda given: workspace.subject(given["folder"], writes=False),
        title=lambda given: f"search for {given['pattern']}",
        grammar=PathRules(workspace.root, "folder", folder=True),
    )
    async def grep(_call: Call, pattern: str, folder: str = ".") -> Result:
        """Search the text of files for a regular expression; gives path:line:text for each hit.

        Args:
            pattern: the regular expression, e.g. "def load|read_csv".
            folder: a folder or one file, relative to the working folder.
        """
        place = workspace.approved(folder, writes=False)
        import anthropic  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  (whole, before its parts: see clients.warm_up)
        from anthropic.lib.tools.agent_toolset import beta_grep_tool  # noqa: PLC0415

        # on this thread: the SDK ends a search that takes too long by a signal, which only the main thread gets
        searcher = beta_grep_tool(workspace.context(place))
        said = await ask_sdk(searcher, {"pattern": clean(pattern), "path": str(place.path)}, place)
        return _listed(workspace, str(said), place, "hits")

    return grep


def _listed(workspace: Workspace, said: str, place: Place, what: str) -> Result:
    """Return the SDK's lines with paths relative to the root, without secret files, cut to a readable number."""
    root = os.path.join(os.path.realpath(workspace.root), "")  # noqa: PTH118  (with the separator at its end)
    secret: dict[str, bool] = {}
    lines: list[str] = []
    for line in "" if said == "no matches" else said.splitlines():
        short = line.removeprefix(root)
        path = short if what == "files" else short.partition(":")[0]
        if path not in secret:
            hidden = what == "hits" and not place.secret and _is_secret(workspace, path)
            secret[path] = hidden or workspace.denied(path)
        if not secret[path]:
            lines.append(clean(short if len(short) <= _MAX_LINE else short[:_MAX_LINE] + "…"))
    if not lines:
        return Result((text_block("no matches"),), "no matches")
    more = f"\n… and {len(lines) - _MAX_LINES} more: narrow the search" if len(lines) > _MAX_LINES else ""
    return Result((text_block("\n".join(lines[:_MAX_LINES]) + more),), f"{len(lines)} {what}")


def _is_secret(workspace: Workspace, path: str) -> bool:
    try:
        return locate(workspace.root, path).secret
    except ToolError:
        return False
