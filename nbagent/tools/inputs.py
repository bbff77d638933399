"""What one run read of the person's: variables and files, each with the fingerprint that it had before its first use.

From this a later run can be told whether the answer would still stand. Names come from the code that ran and from the
variable tools, files from what Python opened meanwhile, from texts in the code that name a file, and from the file
tools. What the run made itself is not among them. What can't be compared later is named (`unseen.py`). Knows nothing of
stores or notebooks. Read `Inputs.code`; `noting.py` calls it, `lookup.py` compares.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import importlib.util
import itertools
import os
import re
import shlex
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.tools.fingerprints import SAMPLED, WHOLE, Fingerprint, fingerprint, surface
from nbagent.tools.reads import reads
from nbagent.tools.sqlcells import tables_of
from nbagent.tools.unseen import ELSEWHERE, FROM_DATABASES, FROM_NETWORK, FROM_PROGRAMS, unseen_by, unseen_in

_FILES = 500
_NAMES = 1_000
MATCHES = 2_000
"""Files of one listing that are compared."""

_TEXT = 1_000
_END = 1 << 20
_NOT_DATA = frozenset({"site-packages", "node_modules"})
_MORE_FILES = f"files beyond the first {_FILES:,}"
_BEYOND = {"network": FROM_NETWORK, "database": FROM_DATABASES, "program": FROM_PROGRAMS}
_OF_THE_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr", "/lib", "/run", "/System", "/Library", "C:\\Windows")
_OF_A_PROGRAM = frozenset({".py", ".pyc", ".so", ".pyd", ".dll", ".dylib"})
_FUNCTIONS = (types.FunctionType, types.MethodType, type)
_PATHS = ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")


class Inputs:
    """Takes down what a run reads. `root` is the person's folder, `own` the notebook's own file in it (may be "").

    `namespace` gives the variables, `plain` makes Python of a cell's source (magics are none). After `budget` bytes of
    files that were hashed whole, further files are compared by a sample.
    """

    def __init__(
        self,
        namespace: Callable[[], Mapping[str, Any]],
        root: Path,
        *,
        own: str = "",
        plain: Callable[[str], str] = str,
        budget: int = 1 << 30,
    ) -> None:
        self.names: dict[str, Fingerprint] = {}
        self.listed: dict[str, Fingerprint] = {}
        self.files: dict[str, Fingerprint] = {}
        self.listings: dict[tuple[str, str], list[str]] = {}
        self.unseen: set[str] = set()
        self.tools: set[str] = set()  # the person's, that were called
        self._namespace, self._plain = namespace, plain
        self._root = Path(os.path.realpath(root))
        self._own = Path(own).name
        self._bound: set[str] = set()
        self._written: set[str] = set()
        self._made: set[str] = set()  # the same, outside the root
        self._texts: list[str] = []  # that may name files, and were not looked at yet
        self._budget = budget

    # ── what is read ────────────────────────────────────────────────────────────────────────────────────────────────

    def code(self, source: str) -> Callable[[bool], None]:
        """Take down what code reads; call `look` before it runs, and what is returned when it ran and its names stay bound.

        That is told whether the code came to its end. A name is the run's own only if it was certain to be bound then, or
        holds another object: code may fail before it binds a name, or go another way.
        """
        found = reads(self._plain(source))
        space = self._namespace()
        self.unseen |= unseen_by(source, space)
        for name in sorted(found.names):
            self._name(name, space)
        self._texts += found.texts
        missing = object()
        before = {name: space.get(name, missing) for name in found.bound}

        def ran(ended: bool) -> None:
            now = self._namespace()
            self._bound |= {name for name, old in before.items() if now.get(name, missing) is not old}
            self._bound |= found.certain if ended else frozenset()

        return ran

    def look(self) -> None:
        """Take down the files that texts name: in the code, in variables, in commands. It reads them, on any thread."""
        while self._texts:
            self._said(self._texts.pop())

    def name(self, name: str) -> None:
        """Take down a variable that the run looks at."""
        self._name(name, self._namespace())

    def _name(self, name: str, space: Mapping[str, Any]) -> None:
        if name in self.names or name in self._bound or name not in space:
            return
        if len(self.names) >= _NAMES:
            self.unseen.add(f"variables beyond the first {_NAMES:,}")
            return
        value = space[name]
        self.unseen |= {unseen_in(value)} - {""}
        self.names[name] = fingerprint(name, value, self._root)
        if type(value) is str or (
            type(value).__module__.partition(".")[0] == "pathlib" and type(value).__name__ in _PATHS
        ):
            self._texts.append(str(value))
        elif isinstance(value, _FUNCTIONS):
            for used in _globals_of(value):
                self._name(used, space)

    def listing(self, pattern: str = "*", limit: int = 200) -> None:
        """Take down what a listing of the variables tells: their types, sizes and small values."""
        space = self._namespace()
        names = [name for name in space if fnmatch.fnmatchcase(name, pattern)][-max(1, limit) :]
        for name in names:
            if name not in self.listed and name not in self._bound:
                self.listed[name] = surface(name, space[name])

    def file(self, path: str, *, asked: bool = False) -> None:
        """Take down a file that the run reads; `asked`: by its name, so that a notebook counts too."""
        if _relative(self._root, path) is None and path not in self._made and _is_data(path, asked=asked):
            self.unseen.add(ELSEWHERE)
        if (name := self._inside(path, asked=asked)) is None or name in self.files or name in self._written:
            return
        if not os.path.isfile(self._root / name):  # noqa: PTH113  (which raises nothing, whatever the text is)
            return
        if len(self.files) >= _FILES:
            self.unseen.add(_MORE_FILES)
            return
        self.files[name] = of_file(self._root / name, most=WHOLE if self._budget > 0 else 0)
        self._budget -= 0 if self.files[name].weak else self.files[name].facets["bytes"]

    def matches(self, folder: str, pattern: str) -> None:
        """Take down which files a folder holds whose names match."""
        start, rest = _split(folder, pattern)
        name = self._folder(start)
        if name is None or (name, rest) in self.listings:
            return
        found = matching(self._root, name, rest) if len(self.listings) < _FILES else None
        if found is not None:
            self.listings[name, rest] = found[:MATCHES]
        if found is None or len(found) > MATCHES:
            self.unseen.add(_MORE_FILES)

    def written(self, path: str) -> None:
        """Take down that the run makes a file itself."""
        if _relative(self._root, path) is None:
            self._made.add(path)
        if (name := self._inside(path, asked=True)) is not None and name not in self.files:
            self._written.add(name)

    def heard(self, what: str, path: str, pattern: str) -> None:
        """Take what Python does with a file (see `opens.heard`); whatever is wrong with the path, its own `open` says it."""
        with contextlib.suppress(OSError, ValueError):
            self._heard(what, path, pattern)

    def _heard(self, what: str, path: str, pattern: str) -> None:
        if what == "write":
            self.written(path)
        elif what == "glob":
            self.matches(path, pattern)
        elif what == "read":
            self.file(path)
        else:
            self.unseen.add(_BEYOND[what])

    def _said(self, text: str) -> None:
        """A text may name a file, or a folder of files that a library reads in its own way."""
        if not 0 < len(text) <= _TEXT or "\n" in text or "\0" in text:
            return
        if any(sign in text for sign in "*?["):
            self.matches(".", text)
            return
        self.file(text, asked=True)
        if ("/" in text or os.sep in text) and (name := self._folder(text)) not in {None, "."}:
            self.matches(str(self._root / str(name)), "**/*")
            for found in self.listings.get((str(name), "**/*"), ()):
                self.file(str(self._root / found))

    def query(self, sql: str, connection: str) -> None:
        """Take down the variables and files that SQL names; what a `connection` holds can't be compared."""
        space = self._namespace()
        for name in sorted({*tables_of(sql)} & set(space)):
            self._name(name, space)
        self._texts += re.findall(r"'([^']+)'", sql)
        if connection:
            self.unseen.add(FROM_DATABASES)

    def words(self, command: str) -> None:
        """Take down the files that a shell command names."""
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            words = command.split()
        self._texts += [word.lstrip("<>") for word in words]

    def _inside(self, path: str, *, asked: bool) -> str | None:
        """Return the file's path relative to the root, None where it is none of the person's data."""
        name = _relative(self._root, path)
        if name is None or name == ".":
            return None
        place = Path(name)
        if "__pycache__" in place.parts:
            try:
                place = Path(importlib.util.source_from_cache(name))
            except ValueError:
                return None
        if any(part.startswith(".") or part in _NOT_DATA for part in place.parts):
            return None
        if place.suffix == ".ipynb" and (not asked or place.name == self._own):
            return None
        return place.as_posix()

    def _folder(self, path: str) -> str | None:
        name = _relative(self._root, path)
        if name is None or not os.path.isdir(self._root / name):  # noqa: PTH112  (as above)
            return None
        return None if any(part.startswith(".") and part != "." for part in Path(name).parts) else name

    # ── what is kept ────────────────────────────────────────────────────────────────────────────────────────────────

    def to_json(self) -> Json:
        """Return what was read as a JSON object; call it when the run is over: files that came up meanwhile are its own."""
        self.look()
        for (folder, pattern), names in self.listings.items():
            self._written.update(set(matching(self._root, folder, pattern)) - set(names))
        return {
            **self.seen(),
            "listed": {name: found.to_json() for name, found in self.listed.items() if name not in self.names},
            "listings": [[folder, pattern, names] for (folder, pattern), names in self.listings.items()],
            "written": sorted(self._written)[:MATCHES],
        }

    def seen(self) -> Json:
        """Return the part of `to_json` that says what was read until now, and what of it can't be compared."""
        return {
            "names": {name: found.to_json() for name, found in self.names.items()},
            "files": {name: found.to_json() for name, found in self.files.items()},
            "unseen": sorted(self.unseen),
            "tools": sorted(self.tools),
        }


def of_file(path: Path, *, most: int = WHOLE) -> Fingerprint:
    """Return the fingerprint of a file: its content; of one with more than `most` bytes size, time, head and tail."""
    made = hashlib.blake2b(digest_size=16)
    size, partly = 0, ""
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            size = stat.st_size
            if size <= max(most, 2 * _END):
                while data := file.read(_END):
                    made.update(data)
            else:
                partly = SAMPLED
                made.update(f"{size} {stat.st_mtime_ns}".encode())
                made.update(file.read(_END))
                file.seek(-_END, os.SEEK_END)
                made.update(file.read(_END))
    except OSError as error:
        made.update(f"{error.errno}".encode())
    return Fingerprint("file", made.hexdigest(), {"bytes": size}, weak=partly)


def _relative(root: Path, path: str) -> str | None:
    """Return a path relative to the root, None where it is outside: links in the folder count as what they are called."""
    whole = os.path.abspath(path)  # noqa: PTH100  (without following links)
    for base in (root, Path(os.path.realpath(root))):
        if Path(whole).is_relative_to(base):
            return Path(whole).relative_to(base).as_posix()
    real = Path(os.path.realpath(whole))
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else None


def _is_data(path: str, *, asked: bool) -> bool:
    """Whether a file outside the root is data; of one that was opened (not `asked` for by name), none that programs use."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100
    if not asked:
        own = (*_OF_THE_SYSTEM, sys.prefix, sys.base_prefix, tempfile.gettempdir())
        if any(whole.is_relative_to(place) for place in own) or whole.suffix in _OF_A_PROGRAM or _hidden(whole.parts):
            return False
    return os.path.isfile(whole)  # noqa: PTH113  (as above)


def _split(folder: str, pattern: str) -> tuple[str, str]:
    """Return the folder that a pattern begins in, and the part of it that has wildcards."""
    parts = Path(folder, pattern).parts
    first = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts) - 1)
    return os.path.join(*parts[:first]) if first > 0 else ".", "/".join(parts[first:])  # noqa: PTH118  (parts of any form)


def matching(root: Path, folder: str, pattern: str) -> list[str]:
    """Return what matches, relative to the root, in order; hidden ones and notebooks left out: those are not the data.

    If there are more than `MATCHES`, one more than that is returned.
    """
    found = _glob(root / folder, tuple(part for part in pattern.split("/") if part))
    names = dict.fromkeys(path.relative_to(root).as_posix() for path in found if path.suffix != ".ipynb")
    return sorted(itertools.islice(names, MATCHES + 1))


def _glob(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield what matches, never going into hidden folders: an environment in one would be all that there is."""
    if not parts:
        return
    head, rest = parts[0], parts[1:]
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    if head == "**":
        yield from _glob(folder, rest)
    for entry in entries:
        if _hidden((entry.name,)):
            continue
        if head == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _glob(folder / entry.name, parts)
        elif fnmatch.fnmatch(entry.name, head):
            if rest:
                yield from _glob(folder / entry.name, rest)
            else:
                yield folder / entry.name


def _hidden(parts: Iterable[str]) -> bool:
    return any(part.startswith(".") or part == "__pycache__" or part in _NOT_DATA for part in parts)


def _globals_of(value: Any) -> Iterator[str]:
    """Names of variables that a function or class of the person's uses when it is called."""
    if type(value) is types.MethodType:
        value = value.__func__
    if type(value) is types.FunctionType:
        if value.__module__ == "__main__":
            yield from _names_in(value.__code__)
    elif isinstance(value, type) and type.__getattribute__(value, "__module__") == "__main__":
        for inside in type.__getattribute__(value, "__dict__").values():
            if type(inside) is types.FunctionType:
                yield from _names_in(inside.__code__)


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            yield from _names_in(constant)
