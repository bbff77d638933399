"""Where a path that the model spelled really leads, and writing there without being led elsewhere.

Every file tool and the shell's read-only look go through `locate`: it resolves every link on both sides before anything
is decided. It must not know of tools or of policy. Read `locate` first, then `replace_file`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
import unicodedata
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nbagent.core.errors import ToolError
from nbagent.core.files import content_hash
from nbagent.core.keys import holds_keys

_GUARDED_FOLDERS = frozenset(
    {
        ".git",
        ".github",
        ".nbagent",
        ".claude",
        ".vscode",
        ".idea",
        ".husky",
        ".ipython",
        ".jupyter",
        ".config",
        ".local",
        ".devcontainer",
        ".cargo",
        ".yarn",
        ".mvn",
    }
)
_GUARDED_NAMES = frozenset(
    {
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile"),
        *(".zlogin", ".cshrc", ".tcshrc", ".kshrc", ".inputrc", ".envrc", ".mcp.json", ".gitconfig", ".gitmodules"),
        *(".gitattributes", ".pre-commit-config.yaml", "config.fish", "crontab", "pyproject.toml", "ipython_config.py"),
        *("sitecustomize.py", "usercustomize.py", ".pdbrc", ".gdbinit", ".vimrc", ".exrc", ".huskyrc", ".ripgreprc"),
        *(".yarnrc", ".yarnrc.yml", ".condarc", ".curlrc", ".wgetrc", "pip.conf", "bunfig.toml", ".bunfig.toml"),
    }
)
_GUARDED_NAME = re.compile(r"\A(?:jupyter_.*config.*\.(?:py|json)|ipython_.*config.*\.(?:py|json)|.*\.pth)\Z")
_URL = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: `path` absolute and free of links, `shown` relative to the root if it is inside.

    `guarded` says that writing there can make something run or change what is allowed; `secret` that keys live there.
    """

    path: Path
    shown: str
    inside: bool
    guarded: bool
    secret: bool


def locate(root: Path, spelled: str) -> Place:
    """Resolve `spelled` against `root`, links of both followed to their ends.

    Raises `ToolError` for what is no path here: empty, with a NUL, ~ or a URL, not encodable, a loop of links.
    """
    if not spelled.strip():
        raise ToolError("the path is empty: give a path relative to the working folder")
    if "\0" in spelled:
        raise ToolError("the path contains a NUL character: no file has such a name")
    if spelled.startswith("~"):
        raise ToolError(
            f"{spelled!r}: ~ is not expanded. Give a path relative to the working folder, or an absolute one"
        )
    if _URL.match(spelled):
        raise ToolError(f"{spelled!r} is a URL: give a plain path")
    try:
        base = Path(os.path.realpath(root))
        path = Path(os.path.realpath(base / spelled))
        if any(part.is_symlink() for part in (path, *path.parents)):  # realpath leaves a loop as it is
            raise ToolError(f"{spelled!r}: the links on this path lead in a circle")
    except (OSError, ValueError) as error:  # ValueError: a name that the file system can't encode
        reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
        raise ToolError(f"{spelled[:200]!r}: {reason}") from None
    inside = path == base or base in path.parents
    shown = path.relative_to(base).as_posix() if inside else str(path)
    parts = [_plain(part) for part in (path.relative_to(base) if inside else path).parts]
    name = parts[-1] if parts else ""
    secret = holds_keys(parts)
    named = name in _GUARDED_NAMES or name == "git~1" or bool(_GUARDED_NAME.match(name))
    guarded = secret or named or not _GUARDED_FOLDERS.isdisjoint(parts) or _behind_a_link(base, path, spelled)
    return Place(path, shown, inside, guarded, secret)


def _behind_a_link(base: Path, path: Path, spelled: str) -> bool:
    """Whether a path was spelled through a guarded folder of the root that is a link, or lies where such a link leads."""
    written = Path(os.path.normpath(base / spelled))
    if written.is_relative_to(base) and not _GUARDED_FOLDERS.isdisjoint(map(_plain, written.relative_to(base).parts)):
        return True
    links = (base / name for name in _GUARDED_FOLDERS)
    return any(link.is_symlink() and path.is_relative_to(os.path.realpath(link)) for link in links)


def _plain(part: str) -> str:
    """Return a name as a careless disk compares it: no case, no stream suffix, no trailing dots, spaces, unseen letters."""
    seen = part if part.isascii() else "".join(c for c in part if unicodedata.category(c) != "Cf")
    return seen.casefold().split(":")[0].rstrip(". ")


def read_file(path: Path, limit: int) -> bytes:
    """Return the bytes of the regular file at a resolved `path`, following no link; raise `ToolError` over `limit`."""
    with _folder(path, make=False) as folder:
        return _read(path.name if folder is not None else str(path), folder, limit)


@contextlib.contextmanager
def opened(path: Path) -> Generator[BinaryIO]:
    """Hold the regular file at a resolved `path` open to be read in parts, following no link; `ToolError` for any other kind."""
    with _folder(path, make=False) as folder, _open(path.name if folder is not None else str(path), folder) as file:
        yield file


def replace_file(path: Path, data: bytes, *, was: str | None = None, mode: int = 0o666) -> None:
    """Replace (or create, with its folders) the file at a resolved `path`; it holds the old bytes or the new, never less.

    No link is followed on the way: one that was put there since the path was resolved raises `ToolError`. The mode and the
    owner stay; `mode` is for a new file. With `was` (a `content_hash`) a file that holds something else by now is not
    touched: `ToolError`.
    """
    with _folder(path, make=True) as folder:
        name = path.name if folder is not None else str(path)
        found = _status(name, folder)
        fresh = f"{name}.{secrets.token_hex(4)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        handle = os.open(fresh, flags, mode if found is None else stat.S_IMODE(found.st_mode), dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                if found is not None and hasattr(os, "fchmod"):
                    _like(file.fileno(), found)
            if was is not None:
                _check_same(name, folder, was)
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(fresh, dir_fd=folder)
            raise
        _keep_folder(folder, path)


def _like(handle: int, found: os.stat_result) -> None:
    """Give a new file the owner and mode of the one that it replaces; only root may change the owner."""
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.fchown(handle, found.st_uid, found.st_gid)
    os.fchmod(handle, stat.S_IMODE(found.st_mode))


def _check_same(name: str, folder: int | None, was: str) -> None:
    try:
        now = _read(name, folder, sys.maxsize)
    except FileNotFoundError:
        now = None
    if content_hash(now) != was:
        raise ToolError(f"{Path(name).name} changed on disk since it was read: nothing was written. Read it again")


def _keep_folder(folder: int | None, path: Path) -> None:
    """Make the new name of a file outlive a loss of power, where the system can do that."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):  # some file systems have no way to
        handle = os.open("." if folder is not None else path.parent, os.O_RDONLY, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _status(name: str, folder: int | None) -> os.stat_result | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{Path(name).name} is not a regular file: it is not written")
    if not found.st_mode & 0o222:  # to put another file in its place would work, and is not meant
        raise ToolError(f"{Path(name).name} is read-only: it is not written")
    return found


def _read(name: str, folder: int | None, limit: int) -> bytes:
    with _open(name, folder) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ToolError(f"{Path(name).name} has {size} bytes, more than the limit of {limit}")
        return file.read()


def _open(name: str, folder: int | None) -> BinaryIO:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(name, flags, dir_fd=folder), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ToolError(f"{Path(name).name} is not a regular file")
    return file


@contextlib.contextmanager
def _folder(path: Path, *, make: bool) -> Generator[int | None]:
    """Hold the folder of `path` open, reached from the top without following a link; None where a system can't."""
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.realpath(path) != str(path):
            raise ToolError(f"{path.name}: a link was put on the path: nothing was done")
        yield None
        return
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
    here = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
            below = os.open(part, flags, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)
