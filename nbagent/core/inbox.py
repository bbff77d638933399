"""What a run's model is to hear of beside the results of its calls: that an agent in the background has ended.

Must not know where it comes from. Read `Inbox`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Inbox(Protocol):
    """What waits for one conversation. It is taken when a message to the model is made, and told once that is kept."""

    def take(self) -> Sequence[str]:
        """Return what is not told yet: the same again until it is."""
        ...

    def told(self) -> None:
        """Say that what was taken last is in the transcript: it is never told again."""
        ...


class Empty:
    """An inbox to which nothing comes."""

    def take(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def told(self) -> None:
        """Do nothing."""
