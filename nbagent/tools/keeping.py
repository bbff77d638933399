"""Writes a notebook file so that nothing is lost: valid before, unchanged since it was read, a backup kept, in one step.

Everything that writes an .ipynb goes through here: the file host and the file tools. It must not know of cells' meaning.
Read `Keeper.write`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from nbagent.core.errors import NotebookError, ToolError
from nbagent.core.files import content_hash, private_folder
from nbagent.core.messages import Json
from nbagent.tools import ipynb, paths, servers
from nbagent.tools.ipynb import NotebookText
from nbagent.tools.servers import Holder

_MOST = 256 * 1024 * 1024
_KEPT = 20
_KEPT_BYTES = 512 * 1024 * 1024
_DEFINED = {"code": "code_cell", "markdown": "markdown_cell", "raw": "raw_cell"}


class Keeper:
    """One notebook file. `path` is where it really is (links followed); `shown` is how people know it.

    `who_has_open` returns the server that has, or may have, a file open; it is asked before each write.
    """

    def __init__(self, path: Path, shown: str, who_has_open: Callable[[Path], Holder | None] | None = None) -> None:
        self.path = path
        self.shown = shown
        self._who_has_open = who_has_open or _asked
        self._ours: set[str] = set()

    def content(self) -> bytes | None:
        """Return the content of the file now, None if there is none; raises `NotebookError` where it can't be read."""
        try:
            return paths.read_file(self.path, _MOST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotebookError(f"{self.shown}: {(error.strerror or 'it can not be read').lower()}") from None
        except ToolError as error:
            raise NotebookError(str(error)) from None

    def write(self, text: str, old: NotebookText | None, changed: Iterable[Json] | None = None) -> NotebookText:
        """Replace the content `old` (None: no file) by `text` and return it as read back from the disk.

        `changed` are the cells that are new in it (None: all). Raises `NotebookError` with one sentence, and nothing is
        written, if the text is no valid notebook or can't be encoded, if the file is open in a Jupyter server or holds
        something else than `old` by now, or if no backup could be kept.
        """
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            raise NotebookError(
                "the text holds half of a surrogate pair, which no file can hold: nothing was written"
            ) from None
        new = ipynb.read(data, self.shown)
        if problem := invalid(old, new, changed):
            raise NotebookError(f"{self.shown} would be no valid notebook ({problem}): nothing was written")
        if holder := self._who_has_open(self.path):
            raise NotebookError(
                f"{self.shown} is {holder}, and would be written over from there: nothing was written. {holder.way_out}"
            )
        before = None if old is None else old.text.encode("utf-8")
        was = content_hash(before)
        try:
            if before is not None and was not in self._ours:
                self._back_up(before)
            paths.replace_file(self.path, data, was=was)
        except OSError as error:
            raise NotebookError(
                f"{self.shown}: {(error.strerror or 'it does not work').lower()}: nothing was written"
            ) from None
        except ToolError as error:
            raise NotebookError(str(error)) from None
        self._ours.add(content_hash(data))
        if self.content() != data:
            raise NotebookError(f"{self.shown} holds something else than what was just written: read it again")
        return new

    def _back_up(self, data: bytes) -> None:
        """Keep what was there before the first write, and what others wrote since; the oldest backups go."""
        folder = self.path.parent / ".nbagent" / "backups"
        private_folder(folder)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        name = f"{self.path.stem}.{stamp}.{content_hash(data)[:8]}.ipynb"
        paths.replace_file(folder / name, data, mode=0o600)
        kept = sorted(folder.glob(f"{_literal(self.path.stem)}.????????-??????.????????.ipynb"), reverse=True)
        size = 0
        for place, backup in enumerate(kept):
            size += backup.stat().st_size
            if place and (place >= _KEPT or size > _KEPT_BYTES):
                backup.unlink(missing_ok=True)


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _asked(path: Path) -> Holder | None:
    return servers.who_has_open(path, servers.running_servers())


def invalid(old: NotebookText | None, new: NotebookText, changed: Iterable[Json] | None = None) -> str | None:
    """Return what makes a notebook invalid, or None; what was wrong with it before is not held against the new text.

    `changed` are its cells that are new (None: all).
    """
    problem = _first(new.raw, new.minor)
    if problem is None or old is None or _first(old.raw, old.minor) is None:
        return problem
    for cell in new.raw["cells"] if changed is None else changed:
        name = _DEFINED.get(str(cell.get("cell_type")))
        if name is not None and (wrong := _first(cell, new.minor, name)) is not None:
            return wrong
    return None


def _first(value: Json, minor: int, definition: str | None = None) -> str | None:
    from nbformat.validator import iter_validate  # noqa: PLC0415  (only for notebooks)

    error = next(iter(iter_validate(value, ref=definition, version=4, version_minor=minor)), None)
    return None if error is None else str(getattr(error, "message", error)).splitlines()[0][:200]
