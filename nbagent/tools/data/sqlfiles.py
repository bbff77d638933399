"""Which files a query may read: those below the folder, by the rules by which `read_file` reads them without asking.

A pattern is resolved here and not by DuckDB: what it would not be given by name (keys, hidden files, places behind a link,
what a rule denies) it does not get by a pattern either. Must not know of SQL. Read `DataFiles.found`.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.tools.paths import locate

_PATTERN = re.compile(r"[*?\[{]")
_MOST = 5_000
_READERS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab"), "read_csv"),
    **dict.fromkeys((".parquet", ".parq", ".pq"), "read_parquet"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "read_json"),
}
_PACKED = frozenset({".gz", ".zst", ".bz2"})


class DataFiles:
    """The files below `root`, and below the folders `also` that settings add; `denied` tells what a rule forbids to read."""

    def __init__(self, root: Path, also: Sequence[Path] = (), denied: Callable[[str], bool] = lambda _: False) -> None:
        self._root, self._denied = root, denied
        self._also = tuple(Path(os.path.realpath(folder)) for folder in also)

    def found(self, spelled: str) -> list[str]:
        """Return the real paths of the files that a name or a pattern means, sorted; raises `ToolError` where it means none."""
        if not _PATTERN.search(spelled) or os.path.exists(os.path.join(self._root, spelled)):  # noqa: PTH110, PTH118
            return self.one(spelled)
        if ".." in Path(spelled).parts or Path(spelled).is_absolute() or "://" in spelled:
            raise ToolError(f"{spelled!r}: a pattern must be relative to the working folder, without ..")
        matches = itertools.islice(glob.iglob(spelled, root_dir=self._root, recursive=True), _MOST + 1)  # noqa: PTH207
        kept: list[str] = []
        for name in matches:
            if any(part.startswith(".") for part in Path(name).parts):
                continue
            try:
                kept.append(self._one(name))
            except ToolError:  # not one of those that this may read
                continue
        if len(kept) > _MOST:
            raise ToolError(f"{spelled!r} fits more than {_MOST:,} files: name fewer")
        if not kept:
            raise ToolError(f"no file that query may read fits {spelled!r}")
        return sorted(set(kept))

    def one(self, spelled: str) -> list[str]:
        """Return the real path of one file, whatever signs its name has; raises `ToolError` where it may not be read."""
        return [self._one(spelled)]

    def _one(self, spelled: str) -> str:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", spelled):
            raise ToolError(f"{spelled!r}: query reads files below the working folder, nothing from the network")
        place = locate(self._root, spelled)
        inside = place.inside or any(folder in (place.path, *place.path.parents) for folder in self._also)
        if not inside:
            raise ToolError(f"{spelled!r} is outside of the working folder: query does not read it. Load it in a cell")
        if place.secret:
            raise ToolError(f"{place.shown} holds keys or passwords by its name: query does not read it")
        if self._denied(place.shown):
            raise ToolError(f"{place.shown}: a rule denies to read it")
        if not place.path.is_file():
            raise ToolError(f"there is no file {spelled!r}{_near(place.path)}")
        return str(place.path)


def _near(path: Path) -> str:
    import difflib  # noqa: PLC0415  (only for a name that is wrong)

    try:
        names = [one.name for one in itertools.islice(path.parent.iterdir(), 2_000) if not one.name.startswith(".")]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, 3)
    return f". Near: {', '.join(map(repr, near))}" if near else ""


def looks_like_file(name: str) -> bool:
    """Whether a table's name in SQL means a file: FROM 'sales.csv', FROM 'data/*.parquet'."""
    return "/" in name or "\\" in name or re.search(r"\.\w{1,8}\Z", name) is not None


def reader_of(name: str) -> str | None:
    """Return the function of DuckDB's that reads a file of this name, None for a kind that it does not read."""
    path = Path(name.lower())
    suffix = Path(path.stem).suffix if path.suffix in _PACKED else path.suffix
    return _READERS.get(suffix)
