"""The file tools: read, write, edit, find and search files of the workspace.

Reading and searching use the helpers of Anthropic's SDK (imported at the first call, never before); writing is ours,
since it must not follow a link and must never leave half a file. Which call needs a person is decided by the policy from
`kind`; what was decided is bound to the resolved path, so a path that leads elsewhere at the time of the call is refused.
Read `Workspace` in workspace_root.py first.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nbagent.core.errors import ToolError
from nbagent.core.files import content_hash
from nbagent.core.messages import Block, Json, clean, text_block
from nbagent.core.ports import Notebook, Preview
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools import notebook_files, paths
from nbagent.tools.data.heads import head_tool
from nbagent.tools.pathrules import PathRules
from nbagent.tools.paths import Place
from nbagent.tools.results import output_blocks
from nbagent.tools.search import glob_tool, grep_tool
from nbagent.tools.workspace_root import IMAGES, MAX_EDIT, MAX_FILE, Workspace, ask_sdk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")
_LANGUAGES = {".py": "python", ".md": "markdown", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def tools(
    root: Path,
    notebook: Notebook | None = None,
    *,
    also: Sequence[Path] = (),
    denied: Callable[[str], bool] = lambda _: False,
) -> list[Tool]:
    """Return read_file, write_file, edit_file, glob, grep and read_data_head, at home in the folder `root`.

    `notebook` is the open one of this run, which is not written as a file; `also` are folders that count as inside;
    `denied` tells of a path that a rule forbids to read: searches leave it out.
    """
    workspace = Workspace(root, notebook, also, denied)
    return [
        _read_tool(workspace),
        _write_tool(workspace),
        _edit_tool(workspace),
        glob_tool(workspace),
        grep_tool(workspace),
        head_tool(workspace),
    ]


def _read_tool(workspace: Workspace) -> Tool:
    @tool(
        kind=lambda given: workspace.kind(given["path"], writes=False),
        subject=lambda given: workspace.subject(given["path"], writes=False),
        grammar=PathRules(workspace.root),
    )
    async def read_file(_call: Call, path: str, start_line: int = 1, end_line: int | None = None) -> Result:
        """Read a file: text, an image, a PDF, or a notebook. For big data files use Python in a cell instead.

        Args:
            path: the file, relative to the working folder.
            start_line: the first line to read, from 1.
            end_line: the last line to read; without it to the end.
        """
        place = workspace.approved(path, writes=False)
        if notebook_files.is_notebook(place):
            return Result((text_block(notebook_files.read(place)),), place.shown)
        if place.path.is_dir():
            raise ToolError(f"{place.shown} is a folder: use glob to see what is in it")
        whole = start_line <= 1 and end_line is None
        size = _on_disk(place, lambda: place.path.stat().st_size)
        if whole and size > MAX_FILE and place.path.suffix.lower() not in IMAGES:
            raise ToolError(f"{place.shown} has {size} bytes: give start_line and end_line, or load it in a cell")
        given = {"file_path": str(place.path)} | ({} if whole else {"view_range": [max(start_line, 1), end_line or -1]})
        import anthropic  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]  (whole, before its parts: see clients.warm_up)
        from anthropic.lib.tools.agent_toolset import beta_read_tool  # noqa: PLC0415

        said = await ask_sdk(beta_read_tool(workspace.context(place)), given, place)
        if isinstance(said, str):
            text = said or ("(the file is empty)" if whole else "(no such lines)")
            return Result((text_block(text),), f"{place.shown}: {len(said.splitlines())} lines")
        return Result(tuple(_media(block) for block in said), place.shown)

    return read_file


def _write_tool(workspace: Workspace) -> Tool:
    def preview(given: Json) -> Preview:
        place = workspace.decide(given["path"], writes=True)
        old = workspace.old_text(place)
        kind = "diff" if old else "code"
        return Preview(kind, clean(given["content"]), old=old, language=_language(given["path"]))

    @tool(
        kind=lambda given: workspace.kind(given["path"], writes=True),
        subject=lambda given: workspace.subject(given["path"], writes=True),
        preview=preview,
        grammar=PathRules(workspace.root, writes=True),
    )
    async def write_file(_call: Call, path: str, content: str) -> Result:
        """Write a whole text file, new or over an old one. To change a part of a file use edit_file.

        The open notebook is not a file for this tool: use the cell tools.

        Args:
            path: the file, relative to the working folder; missing folders are made.
            content: the whole text of the file.
        """
        place = workspace.approved(path, writes=True)
        _on_disk(place, lambda: workspace.check_unchanged(place))
        if notebook_files.is_notebook(place):
            said = await asyncio.to_thread(notebook_files.write, workspace.keeper(place), content)
            return Result((text_block(said),), f"wrote {place.shown}")
        data = clean(content).encode()
        _on_disk(place, lambda: paths.replace_file(place.path, data))
        written = _on_disk(place, lambda: place.path.stat().st_size)
        lines = len(content.splitlines())
        return Result((text_block(f"wrote {place.shown}: {lines} lines, {written} bytes"),), f"wrote {place.shown}")

    return write_file


def _edit_tool(workspace: Workspace) -> Tool:
    def preview(given: Json) -> Preview:
        new, old = clean(given["new_text"]), given["old_text"]
        line = _line_of(workspace.decide(given["path"], writes=True), old)
        return Preview("diff", new, old=old, language=_language(given["path"]), line=line)

    @tool(
        kind=lambda given: workspace.kind(given["path"], writes=True),
        subject=lambda given: workspace.subject(given["path"], writes=True),
        preview=preview,
        grammar=PathRules(workspace.root, writes=True),
    )
    async def edit_file(call: Call, path: str, old_text: str, new_text: str, replace_all: bool = False) -> Result:
        """Replace a piece of text in a file. Read the file first and copy the old text exactly.

        In a notebook that is not open it replaces text in the source of a cell, and runs nothing.

        Args:
            path: the file, relative to the working folder.
            old_text: the text to replace; it must be in the file exactly once.
            new_text: the text to put there.
            replace_all: true to replace every place where the old text is.
        """
        place = workspace.approved(path, writes=True)
        if notebook_files.is_notebook(place):
            keeper = workspace.keeper(place)
            said = await asyncio.to_thread(notebook_files.edit, keeper, call, old_text, new_text, every=replace_all)
            return Result((text_block(said),), f"edited {place.shown}")
        data = _on_disk(place, lambda: paths.read_file(place.path, MAX_EDIT))
        changed, count = _replaced(data, place, old_text, clean(new_text), every=replace_all)
        was = content_hash(data)
        _on_disk(place, lambda: paths.replace_file(place.path, changed, was=was))
        return Result((text_block(f"edited {place.shown} in {count} place(s)"),), f"edited {place.shown}")

    return edit_file


def _line_of(place: Place | None, old: str) -> int:
    """Return the number of the line in which the one place of a text begins in a file; 0 where there is no such place."""
    try:
        text = "" if place is None else paths.read_file(place.path, MAX_EDIT).decode("utf-8")
    except (OSError, ValueError, ToolError):  # the call itself will say so
        return 0
    text, old = (part.replace("\r\n", "\n") for part in (text, old))
    return text.count("\n", 0, text.find(old)) + 1 if old and text.count(old) == 1 else 0


def _replaced(data: bytes, place: Place, old: str, new: str, *, every: bool) -> tuple[bytes, int]:
    """Return the bytes with `old` replaced by `new`, all others as they were, and the number of places."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ToolError(
            f"{place.shown} is not UTF-8 text (line {line}, byte {error.start}): it is not edited. Python in a cell can do it"
        ) from None
    if not old:
        raise ToolError("old_text is empty: say which text to replace, or use write_file for a new file")
    everywhere = 0 < text.count("\n") == text.count("\r\n")
    if everywhere or (old not in text and "\r\n" in text):  # the model writes plain newlines; the file keeps its own
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    count = text.count(old)
    if not count:
        raise ToolError(f"old_text is not in {place.shown}: read the file again and copy the text exactly")
    if count > 1 and not every:
        raise ToolError(f"old_text is {count} times in {place.shown}: give more lines around it, or replace_all=true")
    return text.replace(old, new).encode("utf-8"), count


def _media(block: Json) -> Block:
    """Return a block of the SDK as one that fits a request: images are scaled down as a cell's images are."""
    source = block.get("source") or {}
    if block.get("type") != "image":
        return block
    shown = {"output_type": "display_data", "data": {source["media_type"]: source["data"]}, "metadata": {}}
    return output_blocks([shown])[0]


def _on_disk(place: Place, operation: Callable[[], _T]) -> _T:
    """Do one thing with a file; what the system says against it becomes a sentence for the model."""
    try:
        return operation()
    except OSError as error:
        raise ToolError(f"{place.shown}: {(error.strerror or 'it does not work').lower()}") from None


def _language(path: str) -> str:
    return _LANGUAGES.get(Path(path).suffix.lower(), "text")
