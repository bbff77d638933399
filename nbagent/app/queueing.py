"""How the code of a run takes turns with the person's cells: a run in the background queues, that of a cell has the turn.

Must not know how a run goes. Read `queue_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

from nbagent.core.ports import Kernel
from nbagent.core.tools import Tool
from nbagent.jupyter.mainthread import MainThread
from nbagent.jupyter.queued import QueuedKernel, queued_tool

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.underway import LiveRun


class Queue(Protocol):
    """What stands between the tools of a run and the main thread."""

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel whose code runs in turns of its own."""
        ...

    def tool(self, tool: Tool) -> Tool:
        """Return a tool whose calls each take a turn, if it touches the kernel's objects."""
        ...


class _HasTheTurn:
    """The cell of the run has the turn."""

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return it as it is."""
        return kernel

    def tool(self, tool: Tool) -> Tool:
        """Return it as it is."""
        return tool


class _Queues:
    """Each piece of code waits for a turn as `who`.

    `touching` are the names of tools that touch the kernel's objects, `looking` those of them that only look.
    """

    def __init__(
        self,
        main: MainThread,
        who: str,
        touching: Collection[str],
        looking: Collection[str],
        waiting: Callable[[str], object],
    ) -> None:
        self._main, self._who, self._waiting = main, who, waiting
        self._touching, self._looking = touching, looking

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel whose code waits for its turn."""
        return QueuedKernel(kernel, self._main, self._who, self._waiting)

    def tool(self, tool: Tool) -> Tool:
        """Return a tool that waits for its turn, if it touches the kernel's objects."""
        if tool.name not in self._touching:
            return tool
        return queued_tool(tool, self._main, self._who, self._waiting, looks=tool.name in self._looking)


def queue_of(extension: Extension, live: LiveRun) -> Queue:
    """Return how the code of a run takes turns."""
    if not live.background:
        return _HasTheTurn()
    from nbagent.tools import variables

    def waits(text: str) -> None:
        live.waits = text
        extension.underway.changed()

    own = {tool.name for tool in extension.tools}
    looking = {tool.name for tool in variables.tools(extension.kernel)}
    return _Queues(extension.main, live.who, looking | own, looking - own, waits)
