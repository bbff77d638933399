"""What changed in a checkout since its last commit, what of it may be committed by us, and in whose name.

Never committed: our own folder, files of keys, repositories inside of it, files that need a filter which the repository
brings along, and what is too big for a history. Each of those is told with its reason. Read `pending`, then `stage`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.keys import holds_keys
from nbagent.extend.git import Git

MEGABYTE = 1024 * 1024
COMMITTED = 20 * MEGABYTE
"""Bytes of the largest file that is committed for a teammate."""
COPIED = 5 * MEGABYTE
"""Bytes of the largest file without a history that copies of the checkout get."""
COPIED_FILES = 500
"""How many files of one folder copies of the checkout get, where they have no history."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not committed, and why: the end of a sentence that begins with its name."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Pending:
    """The paths (from the top of the checkout) that changed and may be committed, and those that may not."""

    take: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


async def pending(git: Git, *, largest: int = COMMITTED, most: int | None = None) -> Pending:
    """Return what changed in the checkout at `git`, which must be its top.

    `largest` are the bytes of one file, `most` the number of files without a history in one folder; a folder with more is
    left out as one, with a slash after its name. Raises GitError.
    """
    status = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
    changed, new = _parsed((await git.run(*status)).fields)
    crowds = _crowds(new, most)
    left = [LeftOut(folder, f"has {count:,} files that were never committed") for folder, count in crowds.items()]
    paths = [*changed, *(path for path in new if not path.startswith(tuple(crowds)))]
    filters = await _filtered(git, paths)
    take: list[str] = []
    for path in paths:
        if why := _why_not(git.folder / path, path, filters, largest):
            left.append(LeftOut(path, why))
        else:
            take.append(path)
    return Pending(tuple(take), tuple(left))


async def stage(git: Git, what: Pending, env: Mapping[str, str] | None = None) -> None:
    """Put what may be committed into the index, and take out of it what may not. Raises GitError."""
    paths = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if any(not one.path.endswith("/") for one in what.left_out):
        left = "\0".join(one.path for one in what.left_out if not one.path.endswith("/"))
        await git.run("reset", "-q", *paths, "HEAD", data=os.fsencode(left), env=env)
    if what.take:
        words = (
            "update-index",
            "--add",
            "--remove",
            "--replace",
            "-z",
            "--stdin",
        )  # unlike `add`, for what is gone too
        await git.run(*words, data=os.fsencode("\0".join(what.take)), env=env)


async def identity(git: Git, name: str) -> dict[str, str]:
    """Return what to add to the environment of a commit: nothing where the person has a name for git, else ours."""
    env: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        if not await git.find("var", f"GIT_{who}_IDENT"):
            env |= {f"GIT_{who}_NAME": f"nbagent {name}".strip(), f"GIT_{who}_EMAIL": "nbagent@localhost"}
    return env


def _parsed(entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the tracked paths that changed, and the untracked ones, out of what `git status --porcelain=v2 -z` said."""
    changed: dict[str, None] = {}
    new: dict[str, None] = {}
    for entry in entries:
        if entry[:2] in {"1 ", "u "}:
            parts = entry.split(" ", 8 if entry[0] == "1" else 10)
            changed[parts[-1]] = None
        elif entry.startswith("? "):
            new[entry[2:]] = None
    return list(changed), [path for path in new if path not in changed]


def _why_not(file: Path, path: str, filters: Mapping[str, str], largest: int) -> str:
    parts = [part.lower() for part in path.split("/")]
    if ".nbagent" in parts:
        return "belongs to nbagent itself"
    if path.endswith("/"):
        return "is a repository of its own"
    if holds_keys(parts):
        return "may hold keys or passwords"
    if path in filters:
        return f"needs the filter {filters[path]} of this repository's own settings, which nbagent does not run"
    try:
        size = file.lstat().st_size
    except OSError:  # it was deleted
        return ""
    if not file.is_symlink() and not os.access(file, os.R_OK):
        return "can't be read"
    return f"has {size / MEGABYTE:,.0f} MB" if size > largest else ""


async def _filtered(git: Git, paths: Sequence[str]) -> dict[str, str]:
    """Return the paths that go through a filter which only the repository's own settings define, with its name."""
    filters = (await git.programs()).filters
    return await filtered(git, paths, filters) if filters and paths else {}


async def filtered(git: Git, paths: Sequence[str], filters: Iterable[str]) -> dict[str, str]:
    """Return those of the paths that have one of these filters in `.gitattributes`, with its name."""
    ran = await git.run("check-attr", "-z", "--stdin", "filter", data=os.fsencode("\0".join(paths)))
    wanted, fields = set(filters), ran.fields
    return {path: name for path, name in zip(fields[::3], fields[2::3], strict=False) if name in wanted}


def _crowds(new: Sequence[str], most: int | None) -> dict[str, int]:
    """Return the topmost folders, with their slash, that hold more new files than `most`, each with how many."""
    if most is None:
        return {}
    parts = [path.split("/")[:-1] for path in new]
    counts = Counter("/".join(folders[:depth]) + "/" for folders in parts for depth in range(1, len(folders) + 1))
    full = {folder for folder, count in counts.items() if count > most}
    return {
        folder: counts[folder] for folder in sorted(full) if not any(folder[:at] in full for at in _slashes(folder))
    }


def _slashes(folder: str) -> list[int]:
    """Return where the folders around a folder end."""
    return [at + 1 for at, character in enumerate(folder[:-1]) if character == "/"]
