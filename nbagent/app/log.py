"""Where internal errors are written down: a file beside the sessions, never the person's cell."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbagent.core.files import private_folder


class LogFile(logging.FileHandler):
    """Appends to a log file that is made, with its folder, at the first record; where it can't be, records are lost."""

    def __init__(self, path: Path, clean: Callable[[str], str] = str) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self._clean = clean
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, its traceback included, as `clean` leaves it."""
        return self._clean(super().format(record))

    def _open(self) -> Any:
        path = Path(self.baseFilename)
        try:
            private_folder(path.parent)
            if path.is_symlink():
                return io.StringIO()
            return super()._open()
        except OSError:
            return io.StringIO()
