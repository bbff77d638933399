"""Tells a person's code from the agent's, whatever context or thread it is called in: `%agent` is for people.

Code is a person's if its context comes from a cell that a front end (in a terminal: the prompt) asked for, and the
agent's code is not in it. Each such request marks its context; tasks and callbacks inherit the mark. The agent's code
can leave its own context behind (`contextvars.Context()`), also for later, and run cells there, but no request is made
by that, so there is no mark. Code's own threads have neither, and their names can be anything: only threads that run
cells count. This is no sandbox: code that reaches into this module can do anything. Must not know of magics. Read
`Persons.speaks`.
"""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import Any

from nbagent.jupyter.interrupts import OWNER
from nbagent.jupyter.kernel import ShellKernel

PERSON: ContextVar[bool] = ContextVar("nbagent_person", default=False)
"""Whether the current context comes from a cell that a person ran."""


class Persons:
    """Marks the cells of one shell in whose `kernel` the agent's code runs."""

    def __init__(self, shell: Any, kernel: ShellKernel) -> None:
        self._shell, self._kernel = shell, kernel

    def install(self) -> None:
        """Begin to mark; the cell that runs now, which loads nbagent, is a person's.

        In a kernel `asked` must be called for each execute request; a terminal has none, there every cell counts.
        """
        if getattr(self._shell, "kernel", None) is None:
            self._shell.events.register("pre_execute", self._typed)
        PERSON.set(True)

    def remove(self) -> None:
        """Mark nothing any more."""
        if getattr(self._shell, "kernel", None) is None:
            self._shell.events.unregister("pre_execute", self._typed)

    def asked(self) -> None:
        """A front end asks for a cell: what runs in this context is a person's."""
        PERSON.set(True)

    def speaks(self) -> bool:
        """Whether a person's code, not the agent's, calls this."""
        return PERSON.get() and OWNER.get() is None and _runs_cells(threading.current_thread())

    def _typed(self) -> None:
        if not (self._kernel.running and threading.current_thread() is threading.main_thread()):
            PERSON.set(True)


def _runs_cells(thread: threading.Thread) -> bool:
    """Whether it is the main thread, or one of ipykernel's subshells."""
    subshells = sys.modules.get("ipykernel.subshell")
    return thread is threading.main_thread() or (
        subshells is not None and isinstance(thread, subshells.SubshellThread) and thread.name.startswith("subshell-")
    )
