"""Has the code of one agent take turns on the main thread: its kernel, and its tools that touch the kernel's objects.

For agents in the background; the cell of an agent in the foreground has the turn already. Must not know what asks for the
code. Read `QueuedKernel`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from nbagent.core.ports import Kernel, Output, Ran
from nbagent.core.tools import Call, Result, Tool
from nbagent.jupyter.mainthread import MainThread


def _nobody(_: str) -> None:
    """Where nobody wants to know what is waited for."""


class QueuedKernel:
    """The kernel port over `kernel`, whose code runs when `who` has the turn; `who` and `waiting` are as in `turn`.

    Put it around wrappers that look at the variables before code runs: what the person's cells change while it waits is
    not the code's doing. Waiting does not count against the code's time limit; who is stopped while waiting is
    cancelled, and its code has not run.
    """

    def __init__(self, kernel: Kernel, main: MainThread, who: str, waiting: Callable[[str], object] = _nobody) -> None:
        self._kernel, self._main, self._who, self._waiting = kernel, main, who, waiting

    def namespace(self) -> Mapping[str, Any]:
        """Return the person's live variables, as they are at once: a tool that looks closer takes a turn for it."""
        return self._kernel.namespace()

    async def run(self, code: str, *, emit: Callable[[Output], None], timeout: float | None) -> Ran:
        """Run code as a cell of the person's, at its turn."""
        async with self._main.turn(self._who, self._waiting):
            return await self._kernel.run(code, emit=emit, timeout=timeout)

    async def scratch(self, code: str, *, timeout: float | None, emit: Callable[[Output], None] | None = None) -> Ran:
        """Run code in a shallow copy of the namespace, at its turn."""
        async with self._main.turn(self._who, self._waiting):
            return await self._kernel.scratch(code, timeout=timeout, emit=emit)


def queued_tool(
    tool: Tool, main: MainThread, who: str, waiting: Callable[[str], object] = _nobody, *, looks: bool = False
) -> Tool:
    """Return `tool`, whose calls each take a turn: for those that touch the kernel's objects, and the person's own.

    Not for a tool that asks the person, nor for one that waits for another agent: nobody else could run meanwhile.
    One that only `looks`, and at once, does so too while code of `who` awaits: that has the turn already.
    """

    async def function(call: Call, **given: Any) -> Result:
        if looks and main.holder == who:
            return Result.of(await tool.function(call, **given))
        async with main.turn(who, waiting):
            return Result.of(await tool.function(call, **given))

    return dataclasses.replace(tool, function=function)
