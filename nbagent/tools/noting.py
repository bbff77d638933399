"""Where it is seen what a run reads: around its kernel, whose code is looked at and heard, and around its tools.

Knows nothing of stores or notebooks. Read `NotingKernel`, then `watched`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from nbagent.core.messages import Json
from nbagent.core.ports import Kernel, Output, Ran
from nbagent.core.tools import Call, Result, Tool
from nbagent.tools.inputs import Inputs
from nbagent.tools.opens import heard
from nbagent.tools.unseen import FROM_PROGRAMS

_OF_FILES = frozenset({"read_file", "read_data_head", "edit_file", "glob", "grep", "shell"})


class NotingKernel:
    """A kernel whose code is looked at before it runs, and whose files are heard while it runs."""

    def __init__(self, kernel: Kernel, inputs: Inputs) -> None:
        self._kernel, self._inputs = kernel, inputs

    def namespace(self) -> Mapping[str, Any]:
        """See `Kernel.namespace`."""
        return self._kernel.namespace()

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """See `Kernel.run`."""
        ran, ended = self._inputs.code(code), False
        await asyncio.to_thread(self._inputs.look)
        try:
            with heard(self._inputs.heard):
                done = await self._kernel.run(code, emit=emit, timeout=timeout)
            ended = done.status == "ok"
        finally:
            ran(ended)
        return done

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """See `Kernel.scratch`."""
        self._inputs.code(code)
        await asyncio.to_thread(self._inputs.look)
        with heard(self._inputs.heard):
            return await self._kernel.scratch(code, timeout=timeout, emit=emit)


def watched(tool: Tool, inputs: Inputs) -> Tool:
    """Return `tool`, which is one of nbagent's, with what its calls read taken down."""

    async def function(call: Call, **given: Any) -> Result:
        if tool.name in _OF_FILES:  # these hash files; variables are looked at on the loop's thread only
            await asyncio.to_thread(_before, tool.name, given, inputs)
        else:
            _before(tool.name, given, inputs)
        await asyncio.to_thread(inputs.look)
        result = Result.of(await tool.function(call, **given))
        if tool.name == "grep":
            await asyncio.to_thread(_found, result, inputs)
        return result

    return dataclasses.replace(tool, function=function)


def _found(result: Result, inputs: Inputs) -> None:
    for line in "\n".join(str(block.get("text", "")) for block in result.content).splitlines():
        inputs.file(line.partition(":")[0])


def unwatched(tool: Tool, inputs: Inputs) -> Tool:
    """Return `tool`, which is one of the person's: that it was called is all that can be told of what it read."""

    async def function(call: Call, **given: Any) -> Result:
        inputs.tools.add(tool.name)
        return Result.of(await tool.function(call, **given))

    return dataclasses.replace(tool, function=function)


def _before(name: str, given: Json, inputs: Inputs) -> None:
    match name:
        case "inspect_variable" | "profile_table":
            inputs.name(str(given["name"]))
        case "list_variables":
            inputs.listing(str(given["pattern"]), int(given["limit"]))
        case "read_file" | "read_data_head" | "edit_file":
            inputs.file(str(given["path"]), asked=True)
        case "write_file":
            inputs.written(str(given["path"]))
        case "glob":
            inputs.matches(str(given["folder"]), str(given["pattern"]))
        case "grep":
            inputs.file(str(given["folder"]), asked=True)
            inputs.matches(str(given["folder"]), "**/*")
        case "query":
            inputs.query(str(given["sql"]), str(given["connection"]))
        case "shell":
            inputs.words(str(given["command"]))
            inputs.unseen.add(FROM_PROGRAMS)
        case _:
            pass
