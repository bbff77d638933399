"""A shared list of tasks, small enough for a lesson: read it with its version, swap it if the version is still the same.

The product's is `nbagent.core.board.Board`, kept behind a git ref by the same compare-and-swap (`nbagent/extend/boards`).
Must not know who works.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Seen(NamedTuple):
    """What was read: the version, and who owns each task ("" where nobody does)."""

    version: int
    owners: dict[str, str]


class SharedList:
    """Tasks and their owners. Another worker may come in between any two of your steps."""

    def __init__(self, *tasks: str) -> None:
        self._version = 1
        self._owners = dict.fromkeys(tasks, "")
        self.refused = 0
        """Swaps that came too late."""

    def read(self) -> Seen:
        """Return the list as it is now; the owners are a copy."""
        return Seen(self._version, dict(self._owners))

    def swap(self, version: int, owners: Mapping[str, str]) -> bool:
        """Replace the owners if the list still has this version; return whether it had."""
        if version != self._version:
            self.refused += 1
            return False
        self._version += 1
        self._owners = dict(owners)
        return True
