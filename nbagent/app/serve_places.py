"""What `nbagent mcp-serve` serves: a notebook file with a kernel of its own, a kernel that runs already, or a kernel alone.

Read `of_file`, then `OfKernel`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from nbagent.app import served
from nbagent.core.messages import Json
from nbagent.core.ports import Kernel, Notebook, Output, Preview, Ran
from nbagent.core.tools import Call, Kind, Result, Tool
from nbagent.tools import control, python, variables
from nbagent.tools import notebook as notebook_tools
from nbagent.tools.results import ResultStore, capped

if TYPE_CHECKING:
    from nbagent.headless.remote import RemoteKernel


class Here:
    """Tools that run in this program: nothing about them has to be asked elsewhere."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = _with_results(tools)

    def tools(self) -> Sequence[Tool]:
        """Return all of them."""
        return self._tools

    async def ready(self, tool: Tool, given: Json) -> Tool:  # noqa: ARG002  (the port's names)
        """Return the tool as it is."""
        return tool


def of_file(kernel: Kernel, notebook: Notebook | None, *, timeout: float | None) -> Here:
    """Serve a kernel of this program, and a notebook that nobody has open, whose cells run in it."""
    cells = notebook_tools.tools(notebook, kernel, timeout=timeout) if notebook is not None else ()
    return Here([*variables.tools(kernel), *python.tools(kernel, timeout=timeout), *cells])


class OfKernel:
    """Tools that run in a kernel elsewhere. What a call would do is asked there before it is decided about here."""

    def __init__(self, remote: RemoteKernel, *, timeout: float | None) -> None:
        self._remote = remote
        self._timeout = timeout
        self._tools = _with_results(
            [
                dataclasses.replace(tool, function=self._called(tool.name))
                for tool in served.tools(_Nowhere(), timeout=timeout)
            ]
        )
        self._there = {tool.name for tool in self._tools} - {"read_result"}

    def tools(self) -> Sequence[Tool]:
        """Return all of them."""
        return self._tools

    async def ready(self, tool: Tool, given: Json) -> Tool:
        """Return the tool with what the kernel says of this very call."""
        if tool.name not in self._there:
            return tool
        said = await self._asked("describe", tool.name, given, lambda: None)
        if "error" in said:
            served.result_of(said)
        kind, told = Kind[said["kind"]], dict[str, Any](said["preview"])
        shown = Preview(told["kind"], told["body"], told["old"], told["language"], tuple(told["effects"]))
        return dataclasses.replace(
            tool,
            kind=lambda _: kind,
            subject=lambda _: str(said["subject"]),
            title=lambda _: str(said["title"]),
            preview=lambda _: shown,
            amend=None,
        )

    def _called(self, name: str) -> Callable[..., Any]:
        async def function(call: Call, **given: Any) -> Result:
            def waiting() -> None:
                call.progress("the kernel is busy with something else")

            return served.result_of(await self._asked("call", name, given, waiting))

        return function

    async def _asked(self, do: str, name: str, given: Json, waiting: Callable[[], None]) -> Json:
        request = {"do": do, "tool": name, "given": given, "timeout": self._timeout}
        return await self._remote.ask(request, json.dumps, waiting)


class _Nowhere:
    """A kernel that is not here: enough to know which tools there are."""

    def namespace(self) -> Mapping[str, Any]:
        """Nothing."""
        return MappingProxyType({})

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """Never called: what runs, runs there."""
        raise NotImplementedError

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """Never called."""
        raise NotImplementedError


def _with_results(tools: Sequence[Tool]) -> list[Tool]:
    """The tools with long results cut, and the one that reads the rest."""
    store = ResultStore()
    reading = [tool for tool in control.tools(store) if tool.name == "read_result"]
    return [*(capped(tool, store) for tool in tools), *reading]


def own_kernel(folder: Path) -> Kernel:
    """Return a kernel in this program, for a notebook that has none; what it prints never reaches stdout."""
    from IPython.core.interactiveshell import InteractiveShell

    from nbagent.jupyter.kernel import ShellKernel

    return ShellKernel(InteractiveShell.instance(), floods=folder / ".nbagent" / "outputs")
