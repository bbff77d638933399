"""The file tools: read, write, edit, find and search files of the workspace.

Reading and searching use the helpers of Anthropic's SDK (imported at the first call, never before); writing is ours,
since it must not follow a link and must never leave half a file. Which call needs a person is decided by the policy from
`kind`; what was decided is bound to the resolved path, so a path that leads elsewhere at the time of the call is refused.
Read `_Workspace` first.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nbagent.core.errors import ToolError
from nbagent.core.files import content_hash
from nbagent.core.messages import Block, Json, clean, text_block
from nbagent.core.ports import Notebook, Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools import notebook_files, paths
from nbagent.tools.keeping import Keeper
from nbagent.tools.pathrules import PathRules
from nbagent.tools.paths import Place, locate
from nbagent.tools.results import output_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")
_MAX_FILE = 256 * 1024
_MAX_EDIT = 4 * 1024 * 1024
_MAX_IMAGE = 40 * 1024 * 1024
_MAX_LINES = 200
_MAX_LINE = 400
_MISSING = "(no file)"
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"})
_LANGUAGES = {".py": "python", ".md": "markdown", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def tools(
    root: Path,
    notebook: Notebook | None = None,
    *,
    also: Sequence[Path] = (),
    denied: Callable[[str], bool] = lambda _: False,
) -> list[Tool]:
    """Return read_file, write_file, edit_file, glob and grep, at home in the folder `root`.

    `notebook` is the open one of this run, which is not written as a file; `also` are folders that count as inside;
    `denied` tells of a path that a rule forbids to read: searches leave it out.
    """
    workspace = _Workspace(root, notebook, also, denied)
    return [_read_tool(workspace), _write_tool(workspace), _edit_tool(workspace), _glob(workspace), _grep(workspace)]


class _Workspace:
    """The root, and where each spelled path led when the policy decided about it."""

    def __init__(
        self, root: Path, notebook: Notebook | None, also: Sequence[Path], denied: Callable[[str], bool]
    ) -> None:
        self.root = root
        self.denied = denied
        self._also = tuple(Path(os.path.realpath(folder)) for folder in also)
        self.notebook = notebook
        self._keepers: dict[Path, Keeper] = {}
        self._decided: dict[tuple[str, bool], set[Place | None]] = {}
        self._overwritten: dict[Path, set[str]] = {}

    def decide(self, spelled: str, *, writes: bool) -> Place | None:
        """Return where a path leads (None: nowhere, the call will say why) and bind the call to it.

        Every question of the policy comes through here; if two got different answers, the call is refused.
        """
        try:
            place = locate(self.root, spelled)
        except ToolError:
            place = None
        self._decided.setdefault((spelled, writes), set()).add(place)
        return place

    def kind(self, spelled: str, *, writes: bool) -> Kind:
        """Return the row of the policy table: outside the root is protected, and so are guarded or secret files."""
        place = self.decide(spelled, writes=writes)
        if place is None:
            return Kind.READ  # nothing can happen: the call only returns the reason
        self._overwritten.pop(place.path, None)  # a new decision begins with this question
        inside = place.inside or any(folder in (place.path, *place.path.parents) for folder in self._also)
        if not inside or place.secret or (writes and place.guarded):
            return Kind.PROTECTED
        return Kind.WRITE_FILE if writes else Kind.READ

    def subject(self, spelled: str, *, writes: bool) -> str:
        """Return what a rule matches: the path where it really leads, relative to the root if inside."""
        place = self.decide(spelled, writes=writes)
        return place.shown if place else spelled

    def approved(self, spelled: str, *, writes: bool) -> Place:
        """Return where the path leads now; refuse if the decision was about another place."""
        decided = self._decided.pop((spelled, writes), None)
        place = locate(self.root, spelled)
        if decided is None and place.inside and not place.secret and not (writes and place.guarded):
            return place
        if decided != {place}:
            raise ToolError(
                f"{spelled!r} leads elsewhere than when the call was decided on: nothing was done. Try again"
            )
        return place

    def old_text(self, place: Place | None) -> str:
        """Return the text of a file that would be overwritten, and remember it: another text must not be overwritten."""
        if place is None:
            return ""
        try:
            data = paths.read_file(place.path, _limit(place))
        except FileNotFoundError:
            self._overwritten.setdefault(place.path, set()).add(_MISSING)
            return ""
        except (OSError, ToolError):  # too big or no file: the call itself will say so
            return ""
        self._overwritten.setdefault(place.path, set()).add(hashlib.sha256(data).hexdigest())
        return data.decode("utf-8", "replace")

    def check_unchanged(self, place: Place) -> None:
        """Refuse to overwrite a file that is not the one that was shown."""
        shown = self._overwritten.pop(place.path, None)
        if shown is None:
            return
        try:
            now = hashlib.sha256(paths.read_file(place.path, _limit(place))).hexdigest()
        except FileNotFoundError:
            now = _MISSING
        if shown != {now}:
            raise ToolError(f"{place.shown} changed since the call was shown: nothing was written. Read it again")

    def keeper(self, place: Place) -> Keeper:
        """Return what writes the notebook at `place`; refuse for the open notebook of this run."""
        notebook_files.refuse_open(place, self.root, self.notebook)
        return self._keepers.setdefault(place.path, Keeper(place.path, place.shown))

    def context(self, place: Place) -> Any:
        """Return the SDK's context: confined to the root and, where it was approved, this one place outside."""
        from anthropic.lib.tools.agent_toolset import AgentToolContext  # noqa: PLC0415  (the SDK takes a second)

        return AgentToolContext(
            workdir=self.root,
            allowed_roots=[] if place.inside else [place.path],
            max_file_bytes=None if place.path.suffix.lower() in _IMAGES else _MAX_FILE,
            max_image_base64_bytes=_MAX_IMAGE,
        )


def _read_tool(workspace: _Workspace) -> Tool:
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
        if whole and size > _MAX_FILE and place.path.suffix.lower() not in _IMAGES:
            raise ToolError(f"{place.shown} has {size} bytes: give start_line and end_line, or load it in a cell")
        given = {"file_path": str(place.path)} | ({} if whole else {"view_range": [max(start_line, 1), end_line or -1]})
        from anthropic.lib.tools.agent_toolset import beta_read_tool  # noqa: PLC0415

        said = await _ask_sdk(beta_read_tool(workspace.context(place)), given, place)
        if isinstance(said, str):
            text = said or ("(the file is empty)" if whole else "(no such lines)")
            return Result((text_block(text),), f"{place.shown}: {len(said.splitlines())} lines")
        return Result(tuple(_media(block) for block in said), place.shown)

    return read_file


def _write_tool(workspace: _Workspace) -> Tool:
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


def _edit_tool(workspace: _Workspace) -> Tool:
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
        data = _on_disk(place, lambda: paths.read_file(place.path, _MAX_EDIT))
        changed, count = _replaced(data, place, old_text, clean(new_text), every=replace_all)
        was = content_hash(data)
        _on_disk(place, lambda: paths.replace_file(place.path, changed, was=was))
        return Result((text_block(f"edited {place.shown} in {count} place(s)"),), f"edited {place.shown}")

    return edit_file


def _line_of(place: Place | None, old: str) -> int:
    """Return the number of the line in which the one place of a text begins in a file; 0 where there is no such place."""
    try:
        text = "" if place is None else paths.read_file(place.path, _MAX_EDIT).decode("utf-8")
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


def _glob(workspace: _Workspace) -> Tool:
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
        from anthropic.lib.tools.agent_toolset import beta_glob_tool  # noqa: PLC0415

        finder = beta_glob_tool(workspace.context(place))
        given = {"pattern": clean(pattern), "path": str(place.path)}
        # in a thread: a walk through a big tree must not hold up the kernel
        said = await asyncio.to_thread(lambda: asyncio.run(_ask_sdk(finder, given, place)))
        return _listed(workspace, str(said), place, "files")

    return glob


def _grep(workspace: _Workspace) -> Tool:
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
        from anthropic.lib.tools.agent_toolset import beta_grep_tool  # noqa: PLC0415

        # on this thread: the SDK ends a search that takes too long by a signal, which only the main thread gets
        searcher = beta_grep_tool(workspace.context(place))
        said = await _ask_sdk(searcher, {"pattern": clean(pattern), "path": str(place.path)}, place)
        return _listed(workspace, str(said), place, "hits")

    return grep


async def _ask_sdk(sdk_tool: Any, given: Json, place: Place) -> str | list[Json]:
    """Call one of the SDK's tools; its errors become ours, without the name of its operation."""
    from anthropic.lib.tools import ToolError as SdkError  # noqa: PLC0415

    try:
        return await sdk_tool.call(given)
    except SdkError as error:
        said = str(error).partition(": ")[2].replace(str(place.path), place.shown)
        raise ToolError(said.replace("view_range", "start_line and end_line")) from None
    except OSError as error:
        raise ToolError(error.strerror or "the file can't be read") from None


def _listed(workspace: _Workspace, said: str, place: Place, what: str) -> Result:
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


def _is_secret(workspace: _Workspace, path: str) -> bool:
    try:
        return locate(workspace.root, path).secret
    except ToolError:
        return False


def _media(block: Json) -> Block:
    """Return a block of the SDK as one that fits a request: images are scaled down as a cell's images are."""
    source = block.get("source") or {}
    if block.get("type") != "image":
        return block
    shown = {"output_type": "display_data", "data": {source["media_type"]: source["data"]}, "metadata": {}}
    return output_blocks([shown])[0]


def _limit(place: Place) -> int:
    return notebook_files.MOST if notebook_files.is_notebook(place) else _MAX_EDIT


def _on_disk(place: Place, operation: Callable[[], _T]) -> _T:
    """Do one thing with a file; what the system says against it becomes a sentence for the model."""
    try:
        return operation()
    except OSError as error:
        raise ToolError(f"{place.shown}: {(error.strerror or 'it does not work').lower()}") from None


def _language(path: str) -> str:
    return _LANGUAGES.get(Path(path).suffix.lower(), "text")
