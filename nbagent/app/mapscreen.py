"""Where a map shows how far it is: one output of a cell that is replaced, a line of a terminal, or nowhere.

A few times a second at most, and only where something has changed. Must not know how a map runs. Read `screen_of`.
"""

from __future__ import annotations

import secrets
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

from nbagent.view.mapprogress import MapProgress, bundle, progress_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

EVERY = 0.5
"""Seconds between two pictures at least."""


class Screen(Protocol):
    """Shows how far a map is."""

    def show(self, progress: MapProgress) -> None:
        """Take how far it is; the last one has `ended`."""
        ...


def screen_of(shell: Any, *, shown: bool) -> Screen:
    """Return the screen of this place: a cell's output in a kernel, else the terminal; nothing if not `shown`."""
    if not shown:
        return _Dark()
    return _Cell() if getattr(shell, "kernel", None) is not None else _Terminal()


class _Dark:
    def show(self, progress: MapProgress) -> None:
        """Show nothing."""


class _Cell:
    """One output: HTML without widgets, so that it works in every front end, and stays as the record when all is done."""

    def __init__(self) -> None:
        self._id = f"nbagent-map-{secrets.token_hex(8)}"
        self._shown: dict[str, str] = {}
        self._at = float("-inf")

    def show(self, progress: MapProgress) -> None:
        """Put a new picture in the place of the last one."""
        from IPython.display import display, update_display

        now = time.monotonic()
        if not progress.ended and now - self._at < EVERY:
            return
        made = bundle(progress)
        if made == self._shown:
            return
        if self._shown:
            update_display(made, display_id=self._id, raw=True)
        else:
            display(made, display_id=self._id, raw=True)
        self._shown, self._at = made, now


class _Terminal:
    """A bar on a terminal; where the output is no terminal, the sentence at the end only."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def show(self, progress: MapProgress) -> None:
        """Move the bar, and take it away at the end."""
        if progress.ended:
            if self._bar is not None:
                self._bar.stop()
            print(progress_text(progress), file=sys.stderr)  # noqa: T201  (this is the screen)
            return
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (BarColumn(), TextColumn("{task.description}", markup=False))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=progress.totals.rows)
            self._bar.start()
        assert self._task is not None
        self._bar.update(self._task, completed=progress.finished, description=progress.sentence)
