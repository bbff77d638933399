"""Feeds the tray of one kernel with what the runs under way ask, and has the desk hang it into the pages.

Made when something waits for the first time; it stays, empty and unseen, as long as nbagent is loaded. Must not know
how a run goes. Everything is called on the kernel's loop. Read `KernelTray.look`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.underway import LiveRun
    from nbagent.view.tray import Tray, Waiting
    from nbagent.view.widget import AgentView


class KernelTray:
    """Follows the runs under way of one kernel. `tray` is None until something has waited."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._followed: dict[AgentView, Callable[[], None]] = {}
        self._end = extension.underway.on_change(self._changed)
        self.tray: Tray | None = None

    def close(self) -> None:
        """Take the tray out of the pages and follow nothing any more."""
        self._end()
        for end in self._followed.values():
            end()
        self._followed.clear()
        if self.tray is not None:
            self.tray.close()

    def _changed(self) -> None:
        """Hear of what each run asks, as soon as it has a view, until it is over."""
        views = [run.view for run in self._extension.underway.runs.values() if run.view is not None]
        for view in views:
            if view not in self._followed:
                self._followed[view] = view.on_asks(self.look)
        for view in [view for view in self._followed if view not in views]:
            self._followed.pop(view)()
        self.look()

    def look(self) -> None:
        """Show what waits now, once there is a desk: where no page has the notebook's document, there is none."""
        waiting = [one for run in self._extension.underway.runs.values() for one in _waiting(run)]
        if self.tray is None and waiting and (desk := self._extension.desk) is not None:
            from nbagent.view.tray import Tray

            self.tray = Tray()
            desk.hang(self.tray.widget.model_id)
        if self.tray is not None:
            self.tray.show(waiting)


def _waiting(run: LiveRun) -> list[Waiting]:
    from nbagent.view.tray import Waiting

    view = run.view
    if view is None:
        return []
    name, about = _names(run)
    return [Waiting(ask, run.id, name, about, run.cell, run.background, view) for ask in view.asks]


def _names(run: LiveRun) -> tuple[str, str]:
    """Return who asks, and what it works on: often its name is how its prompt begins, and that is not said twice."""
    if run.agent:
        return run.agent, run.name
    return (run.prompt, "") if run.prompt.startswith(run.name.removesuffix("…")) else (run.name, run.prompt)
