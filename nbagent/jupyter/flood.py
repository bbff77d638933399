"""Keeps the whole of a flood of output in a file, so that what is left out of the cell can still be looked up.

The file is made when the flood begins; a place that can't be written costs only the file. Read `Flood.begin`.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from pathlib import Path
from typing import IO

from nbagent.core.files import private_folder
from nbagent.core.messages import clean

LIMIT = 200_000_000
"""Characters of one flood that are kept."""

KEPT = 10
"""Floods that are kept; older ones are deleted when a new one begins."""


class Flood:
    """The file of one flood in `folder` (None: nothing is kept). `path` is "" as long as there is none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: IO[str] | None = None
        self._left = LIMIT
        self.waits = folder is not None
        """Whether it has not begun yet, and can."""
        self.path = ""

    def begin(self, so_far: str) -> None:
        """Begin, once, with what was written before it was clear that this is a flood."""
        if self._folder is None:
            return
        self.waits = False
        with contextlib.suppress(OSError):
            private_folder(self._folder)
            for old in sorted(self._folder.glob("*.txt"))[: -KEPT + 1]:
                old.unlink()
            path = self._folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}.txt"
            self._file = path.open("x", encoding="utf-8", errors="replace")
            path.chmod(0o600)
            self.path = str(path)
        self.write(so_far)

    def write(self, text: str) -> None:
        """Take the next piece; what is over the limit is dropped, and a full disk ends it."""
        if self._file is None or not text:
            return
        try:
            self._file.write(clean(text[: self._left]))
            self._left -= min(len(text), self._left)
        except OSError:
            self.end()

    def end(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
