"""Hears what is typed into getpass(), so that it is known for a secret wherever it stands later.

Only in a kernel, where ipykernel asks the page. Nothing is kept but the texts, in memory, until they are taken. Read
`Passwords`.
"""

from __future__ import annotations

from typing import Any

_SHORTEST = 4


class Passwords:
    """What was typed into getpass() in one shell."""

    def __init__(self, shell: Any) -> None:
        self._kernel: Any = getattr(shell, "kernel", None)
        self._typed: list[str] = []
        self._installed: Any = None

    def install(self) -> None:
        """Begin to hear; a kernel without getpass() is left as it is."""
        asking = getattr(self._kernel, "getpass", None)
        if asking is None:
            return

        def getpass(*args: Any, **kwargs: Any) -> Any:
            typed = asking(*args, **kwargs)
            if isinstance(typed, str) and len(typed) >= _SHORTEST:
                self._typed.append(typed)
            return typed

        self._installed = self._kernel.getpass = getpass

    def remove(self) -> None:
        """Leave the kernel as it was."""
        if self._installed is not None and vars(self._kernel).get("getpass") is self._installed:
            del self._kernel.getpass
        self._installed = None

    def take(self) -> list[str]:
        """Return what was typed since it was asked last, and forget it."""
        typed, self._typed = self._typed, []
        return typed
