"""Finds sessions of this folder: by id, by the beginning of one, by name; the last one of a notebook.

Reads files only. Read `find`, then `last_of`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from nbagent.core.errors import ConfigError
from nbagent.extend.sessions import FOLDER, Outline, outline

NO_SESSIONS = "No session is kept in this folder yet. A %%agent cell begins one."
_FILES = 2_000
_ID = re.compile(r"\w[\w-]{0,79}", re.ASCII)


def newest_first(folder: Path) -> list[Path]:
    """Return the files of a folder's sessions, the one written last first.

    Only those that are named as an id: `...jsonl` would be the folder above, and a folder may be somebody else's.
    """
    try:
        named = [path for path in (folder / FOLDER).glob("*.jsonl") if _ID.fullmatch(path.stem)]
        found = [(path.lstat().st_mtime, path.name, path) for path in named]
    except OSError:
        return []
    return [path for _, _, path in sorted(found, reverse=True)[:_FILES]]


def outlines(folder: Path) -> Iterator[Outline]:
    """Yield what is known of each session of a folder, the one written last first."""
    for path in newest_first(folder):
        if (found := outline(path)) is not None:
            yield found


def same_notebook(one: str, other: str) -> bool:
    """Whether two paths mean one notebook; the same folder may be the root of one server and lie in that of another."""
    if not one or not other:
        return False
    short, long = sorted((PurePosixPath(p.replace("\\", "/")).parts for p in (one, other)), key=len)
    return long[len(long) - len(short) :] == short


def last_of(folder: Path, notebook: str) -> Outline | None:
    """Return the session of a notebook that was written last, branches and errands left out; None where there is none."""
    mine = (one for one in outlines(folder) if same_notebook(one.notebook, notebook))
    return next((one for one in mine if one.messages and not one.beside), None)


def split_point(ref: str) -> tuple[str, int | None]:
    """Return a reference `ID[@N]` as the id and N, the number of prompts to keep; raises `ConfigError` for another N."""
    name, at, number = ref.rpartition("@") if "@" in ref else (ref, "", "")
    if at and (not number.isascii() or not number.isdecimal() or int(number) < 1):
        raise ConfigError(f"{ref!r}: after @ comes the number of prompts to keep, from 1 on.")
    return name, int(number) if at else None


def find(folder: Path, ref: str) -> Outline:
    """Return the session with this id or name, or whose id alone begins so; raises `ConfigError` that tells the nearest."""
    wanted = ref.strip()
    exact = folder / FOLDER / f"{wanted}.jsonl"
    if _ID.fullmatch(wanted) and (found := outline(exact)) is not None:
        return found
    known = list(outlines(folder))
    if not known:
        raise ConfigError(NO_SESSIONS)
    named = next((one for one in known if one.title and one.title == wanted), None)
    named = named or next((one for one in known if one.title.casefold() == wanted.casefold() != ""), None)
    if named is not None:
        return named
    begin = [one for one in known if wanted and one.id.startswith(wanted)]
    begin = begin or [one for one in known if len(wanted) >= 4 and one.id.endswith(f"-{wanted}")]
    if len(begin) == 1:
        return begin[0]
    if begin:
        some = ", ".join(one.id for one in begin[:4]) + (" …" if len(begin) > 4 else "")
        raise ConfigError(f"{len(begin)} sessions begin with {wanted!r}: {some}. Write a little more of it.")
    names = [one.title for one in known if one.title] + [one.id for one in known]
    near = difflib.get_close_matches(wanted, names, 1, 0.5)
    hint = f"Did you mean {near[0]}?" if near else "%agent sessions lists them."
    raise ConfigError(f"There is no session {wanted!r} in this folder. {hint}")
