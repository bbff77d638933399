"""Takes note of the figures that this kernel shows, whoever shows them, as they are turned into what a page gets.

That is the one moment at which a figure and its picture are known together: the inline backend closes figures right
after it. Nothing of what is shown changes. Must not know of agents. Read `FigureWatch.install`.
"""

from __future__ import annotations

from typing import Any

from nbagent.tools.data.pictures import Shown
from nbagent.tools.describe import safely


class FigureWatch:
    """Listens to what one shell formats; `shown` is what it knows."""

    def __init__(self, shell: Any) -> None:
        self.shown = Shown()
        self._formatter: Any = getattr(shell, "display_formatter", None)
        self._wrapper: Any = None

    def install(self) -> None:
        """Begin to listen; a second call does nothing."""
        if self._formatter is None or self._wrapper is not None:
            return
        original = self._formatter.format

        def format_and_note(obj: Any, *args: Any, **given: Any) -> Any:
            made = original(obj, *args, **given)
            if self._wrapper is not None:
                safely(lambda: self._note(obj, made))
            return made

        self._wrapper = format_and_note
        self._formatter.format = format_and_note

    def remove(self) -> None:
        """Stop listening; where somebody wrapped it again, it stays and does nothing any more."""
        if self._wrapper is not None and vars(self._formatter).get("format") is self._wrapper:
            del self._formatter.format
        self._wrapper = None

    def _note(self, value: Any, made: Any) -> str:
        data = made[0] if type(made) is tuple and made and type(made[0]) is dict else None
        if data:
            self.shown.took(value, data)
        return ""
