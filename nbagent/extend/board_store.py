"""Where the text of a team's board is kept: the port, and what every keeper of it promises.

A store holds one text and replaces it by compare-and-swap. What the text means is for `boards`. Read `Store`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nbagent.core.errors import NbagentError


class StoreError(NbagentError):
    """The board can't be read or written at all (no disk space, git is missing, the server is away); says so in a sentence."""


class Unsure(StoreError):
    """A swap was cut off: the text may have been replaced or not."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A text as it was read, and what it is compared by; both "" where nothing has been written yet."""

    text: str = ""
    mark: str = ""


class Store(Protocol):
    """Keeps one text for many processes. All raise `StoreError`.

    `longest_pause`: how many seconds who waits for a change lets go by between two looks, at most.
    """

    longest_pause: float

    async def read(self) -> Seen:
        """Return the text as it is now."""
        ...

    async def swap(self, old: Seen, text: str) -> Seen | None:
        """Put `text` in the place of `old`; None, and nothing is changed, where another text is there by now.

        A process that is killed here leaves the old text or the new one, whole, and hinders nobody for long. Raises
        `Unsure` where it can't be told which.
        """
        ...

    async def mark(self) -> str:
        """Return the mark of the text as it is now, as cheaply as possible."""
        ...
