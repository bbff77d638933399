"""Reads small text files of a project and of the person, whatever is in them: what is wrong is one sentence, never a raise.

Knows nothing of what the files mean. Read `read_text`, then `tree_digest`.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.keys import holds_keys
from nbagent.core.messages import clean

LIMIT = 4 * 1024 * 1024
"""Bytes of one text file."""
TREE_FILES = 500
"""Files of a folder that are hashed together; a folder with more can't be vouched for."""
TREE_BYTES = 32 * 1024 * 1024
"""Bytes of a folder that are hashed together."""
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file as it was read: its text with plain line ends, the hash of its bytes, and what is wrong with it ("" nothing).

    A problem with a text means that the text can be used; one without, that nothing can.
    """

    path: Path
    text: str
    digest: str
    problem: str = ""


def sha256(data: bytes) -> str:
    """Return the hash that stands for a content (64 hex digits)."""
    return hashlib.sha256(data).hexdigest()


def read_text(path: Path, limit: int = LIMIT) -> TextFile | None:
    """Return the text file at `path`, None where there is nothing; links are followed, pipes and devices are not read.

    Neither are files of keys: what is read here is told to a model, and a link may lead to them.
    """
    if os.path.lexists(path) and _holds_keys(path):
        return TextFile(path, "", "", f"{path} is, or leads to, a file that may hold keys; it is not read.")
    try:
        data = read_bytes(path, limit)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return TextFile(path, "", "", f"{path} can't be read: {_reason(error)}.")
    text, problem = _decoded(data)
    if problem:
        problem = f"{path} {problem}."
    return TextFile(path, clean(text.replace("\r\n", "\n").replace("\r", "\n")), sha256(data), problem)


def _holds_keys(path: Path) -> bool:
    parts = [part.lower() for part in Path(os.path.realpath(path)).parts[-2:]]
    return holds_keys(parts) or ".git" in parts


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes; raise OSError, or ValueError that says why not."""
    handle = os.open(path, _OPEN)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        if found.st_size > limit:
            raise ValueError(f"it has {found.st_size:,} bytes, and the limit is {limit:,}")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(handle)
    if len(data) > limit:
        raise ValueError(f"it has more than {limit:,} bytes, and that is the limit")
    return data


def is_inside(path: Path, root: Path) -> bool:
    """Whether `path`, with all links followed, lies in `root` or is it; False for a loop of links."""
    try:
        real, base = Path(os.path.realpath(path)), Path(os.path.realpath(root))
        return not real.is_symlink() and (real == base or base in real.parents)
    except (OSError, ValueError):
        return False


def files_below(folder: Path, suffix: str, *, depth: int = 6, most: int = 1000) -> Iterator[Path]:
    """Yield the files below `folder` whose names end in `suffix`, sorted, each folder once however links lead around."""
    seen: set[str] = set()
    left = most

    def walk(place: Path, level: int) -> Iterator[Path]:
        nonlocal left
        real = os.path.realpath(place)
        if real in seen or level > depth:
            return
        seen.add(real)
        try:
            entries = sorted(place.iterdir(), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if left <= 0:
                return
            left -= 1
            if entry.is_dir():
                yield from walk(entry, level + 1)
            elif entry.name.lower().endswith(suffix):
                yield entry

    yield from walk(folder, 0)


def tree_digest(folder: Path, suffixes: Sequence[str] = ("",)) -> str | None:
    """Return the hash of the files below `folder`, names and contents; None where they can't be vouched for.

    That is: too many, too large, or a linked folder that leads out. A link to a file counts with what is there; what
    can't be read counts as such. `suffixes`: only the files whose names end so.
    """
    parts: list[str] = []
    total = 0
    for name, path in _tree(folder):
        if path.is_symlink() and path.is_dir() and not is_inside(path, folder):
            return None
        if not name.endswith(tuple(suffixes)):
            continue
        try:
            data = read_bytes(path, TREE_BYTES)
        except ValueError:
            if path.is_file():
                return None  # too large
            data = b"(no regular file)"
        except OSError as error:
            data = f"(unreadable: {error.errno})".encode()
        total += len(data)
        if total > TREE_BYTES or len(parts) >= TREE_FILES:
            return None
        parts.append(f"{name}\0{sha256(data)}")
    return sha256("\n".join(parts).encode("utf-8", "surrogateescape"))


def _tree(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of each file, in a fixed order; a linked folder is one entry and is not entered."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in sorted([*names, *links]):
            path = here / name
            yield path.relative_to(folder).as_posix(), path


def _decoded(data: bytes) -> tuple[str, str]:
    """Return the text of `data`, and what is wrong with it as the end of a sentence."""
    if data.startswith(_UTF16):  # PowerShell's `>` writes this
        try:
            return data.decode("utf-16"), ""
        except UnicodeDecodeError:
            return "", "is cut in the middle of a UTF-16 character"
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        return "", "is not a text file"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = data.decode("utf-8", "replace")
        return text, f"is not UTF-8 text (line {line}); what could not be read is shown as \N{REPLACEMENT CHARACTER}"


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return "its links lead in a circle" if error.errno == errno.ELOOP else (error.strerror or "unknown").lower()
    return str(error)
