"""Keeps what undo needs of one run: wraps its notebook, its kernel and those of its tools that reach beyond both.

What can be restored is kept in a checkpoint; what can't, as sentences. Must not know how anything is restored (see
restore.py). Read `Checkpointing`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from nbagent.app.restore import missing_folders, read_if_there
from nbagent.core.errors import ToolError
from nbagent.core.files import content_hash
from nbagent.core.ports import Kernel, Notebook, Output, Preview, Ran
from nbagent.core.tools import Call, Kind, Tool
from nbagent.extend.bindings import Bindings
from nbagent.extend.checkpointed import CheckpointedNotebook
from nbagent.extend.checkpoints import FILE_LIMIT, Checkpoint, FileChange
from nbagent.tools.cells import first_line
from nbagent.tools.effects import hints
from nbagent.tools.paths import locate

_WRITES = frozenset({"write_file", "edit_file"})
_IN_PLACE = re.compile(r"\Achanges `([^`]+)` in place")
_OF_NAMES = re.compile(r"\A(?:rebinds |deletes the variable |deletes variables|could |and \d+ more)")
_LOOKS = frozenset({Kind.READ, Kind.SHELL_READ})
TOO_LARGE = "it was too large to keep"


class Checkpointing:
    """One run, from its first call to its end. Use `notebook`, `kernel` and `tools(…)` in the place of what it wraps."""

    def __init__(
        self, checkpoint: Checkpoint, root: Path, notebook: Notebook | None, kernel: Kernel, *, by_call: bool = False
    ) -> None:
        self.checkpoint = checkpoint
        self.notebook = None if notebook is None else CheckpointedNotebook(notebook, checkpoint)
        self._by_call = Bindings() if by_call else None
        self._names = {} if by_call else dict(kernel.namespace())
        self._hints: dict[str, tuple[str, ...]] = {}
        self.kernel = WatchedKernel(kernel, self._ran)
        self.problem = ""
        """Why its checkpoint is not on disk, as one sentence, once the run has ended."""
        self._plain = kernel
        self._root = root

    @property
    def run(self) -> str:
        """The run's id."""
        return self.checkpoint.head.run

    def tools(self, tools: Iterable[Tool], own: Iterable[Tool] = ()) -> list[Tool]:
        """Return `tools` with those wrapped that write files or do what can't be taken back; `own` are the person's."""
        names = {tool.name for tool in own}
        return [self._watched(tool, own=tool.name in names) for tool in tools]

    def end(self) -> Bindings:
        """Return which names the run has changed; the old objects of all others are let go."""
        if self._by_call is not None:
            return self._by_call
        before, self._names = self._names, {}
        return Bindings.between(before, self._plain.namespace())

    # ── tools ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _watched(self, tool: Tool, *, own: bool) -> Tool:
        if own:
            return self._told(self._counted(tool), lambda _: f"the tool {tool.name}")
        if tool.name in _WRITES:
            return self._writing(tool)
        if tool.name == "shell":
            return self._told(tool, lambda given: f"the command `{first_line(str(given.get('command', '')), 80)}`")
        return dataclasses.replace(tool, preview=lambda given: self._previewed(tool.preview(given)))

    def _counted(self, tool: Tool) -> Tool:
        """Return a tool of the person's, which may change variables, too: by call, where the run counts so."""
        counted = self._by_call
        if counted is None:
            return tool

        async def function(call: Call, **given: Any) -> Any:
            before = dict(self._plain.namespace())
            try:
                return await tool.function(call, **given)
            finally:
                counted.add(before, self._plain.namespace())

        return dataclasses.replace(tool, function=function)

    def _previewed(self, preview: Preview) -> Preview:
        """Remember what was said of code before it runs: to look at it once more takes milliseconds."""
        self._hints[preview.body] = preview.effects
        return preview

    def _told(self, tool: Tool, name: Callable[[Mapping[str, Any]], str]) -> Tool:
        """Return `tool` with its calls, unless they only look, named among what can't be taken back."""

        async def function(call: Call, **given: Any) -> Any:
            if tool.kind(given) not in _LOOKS:
                self.checkpoint.note(f"what {name(given)} did")
            return await tool.function(call, **given)

        return dataclasses.replace(tool, function=function)

    def _writing(self, tool: Tool) -> Tool:
        async def function(call: Call, **given: Any) -> Any:
            left = self._before_writing(str(given.get("path", "")))
            try:
                return await tool.function(call, **given)
            finally:
                left()

        return dataclasses.replace(tool, function=function)

    def _before_writing(self, spelled: str) -> Callable[[], None]:
        """See what a file is before a tool writes it; return what sees what it is afterwards."""
        try:
            place = locate(self._root, spelled)
        except ToolError:  # nothing will be written: the tool says why
            return lambda: None
        path, known = place.path, self.checkpoint.files.get(str(place.path))
        made = missing_folders(path)
        before, lost = _read(path, min(FILE_LIMIT, self.checkpoint.room()))

        def left() -> None:
            after = _hash(path)
            if after == (content_hash(before) if not lost else None):
                return  # nothing was written
            change = known
            if change is None or change.after != content_hash(before):  # new to the run, or the person's by now
                self.checkpoint.use(len(before or b""))
                change = FileChange(str(path), place.shown, before, after, lost, made)
            self.checkpoint.set_file(dataclasses.replace(change, after=after))

        return left

    # ── code ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _ran(self, code: str, namespace: Mapping[str, Any], who: str) -> None:
        """Keep what code has probably done that can't be taken back: a look at its text, and no more than that."""
        if self._by_call is not None:
            self._by_call.add(namespace, self._plain.namespace())
        found_before = self._hints.pop(code, None)
        outside: list[str] = []
        for hint in hints(code, namespace) if found_before is None else found_before:
            if found := _IN_PLACE.match(hint):
                name = found[1].partition(".")[0].partition("[")[0]
                before = namespace if self._by_call is not None else self._names
                if name in before and before[name] is namespace.get(name):
                    self.checkpoint.note(f"what is in `{name}`: {who} has probably changed it in place")
            elif not _OF_NAMES.match(hint):
                outside.append(hint)
        if outside:
            self.checkpoint.note(f"what {who} also did, by its code: {'; '.join(outside)}")


class WatchedKernel:
    """The kernel port over `kernel`; `ran` is told of code that ran, of the names before, and how people know it."""

    def __init__(self, kernel: Kernel, ran: Callable[[str, Mapping[str, Any], str], None]) -> None:
        self._kernel = kernel
        self._told = ran

    def namespace(self) -> Mapping[str, Any]:
        """Return the person's live variables."""
        return self._kernel.namespace()

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """Run code as a cell of the person's."""
        before = self._kernel.namespace()
        who = "a cell that was stopped"
        try:
            ran = await self._kernel.run(code, emit=emit, timeout=timeout)
            who = f"In[{ran.number}]" if ran.number is not None else who
            return ran
        finally:  # code that was interrupted has done something, too
            self._told(code, before, who)

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """Run code in a shallow copy of the namespace."""
        before = self._kernel.namespace()
        try:
            return await self._kernel.scratch(code, timeout=timeout, emit=emit)
        finally:
            self._told(code, before, "code that was run to look")


def _read(path: Path, room: int) -> tuple[bytes | None, str]:
    """Return a file's bytes and why they can't be kept ("" if they can)."""
    try:
        data = read_if_there(path)
    except ToolError:
        return None, TOO_LARGE
    except OSError as error:
        return None, error.strerror or "it can't be read"
    return (None, TOO_LARGE) if data is not None and len(data) > room else (data, "")


def _hash(path: Path) -> str:
    """Return what a file is recognised by; a file that can't be read is none of ours."""
    try:
        return content_hash(read_if_there(path))
    except (OSError, ToolError):
        return "unknown"
