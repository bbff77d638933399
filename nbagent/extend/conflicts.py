"""What two sides changed in the same place of a file, with both sides; and the merge of one text file.

Must not know of branches. Read `Conflict`, then `merge_texts`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nbagent.core.messages import clean
from nbagent.extend.git import Git

_SHOWN = 5
_SIZE = 47  # characters of a mark: longer than any that a file has for other reasons
_BEGIN, _BASE, _MIDDLE, _END = ((mark * _SIZE).encode() for mark in "<|=>")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place that both sides changed: where ("line 12", "cell 3"), what it was, and what each side made of it."""

    where: str
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that both sides changed in the same place: its whole texts (None: not there) and the places.

    `binary`: it is no text, so there are none.
    """

    path: str
    base: str | None
    ours: str | None
    theirs: str | None
    binary: bool = False
    hunks: tuple[Hunk, ...] = ()

    @property
    def sentence(self) -> str:
        """The file and where it is in conflict, in a few words."""
        path = clean(self.path)
        if self.binary:
            return f"{path} (no text)"
        if self.ours is None or self.theirs is None:
            return f"{path} (deleted on one side, changed on the other)"
        return f"{path} ({names([hunk.where for hunk in self.hunks])})" if self.hunks else path


def names(words: Sequence[str]) -> str:
    """Return a list of names for a sentence, the first few and how many more."""
    shown = ", ".join(clean(word) for word in words[:_SHOWN])
    return shown if len(words) <= _SHOWN else f"{shown} and {len(words) - _SHOWN} more"


def counted(number: int, thing: str) -> str:
    """Return "1 file", "2 files"."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def binary(*versions: bytes | None) -> bool:
    """Whether one of the versions is no text."""
    return any(data is not None and b"\0" in data for data in versions)


def of_whole(path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> Conflict:
    """Return the conflict of a file that can't be merged in parts."""
    no_text = binary(base, ours, theirs)
    texts = [None if data is None or no_text else data.decode("utf-8", "replace") for data in (base, ours, theirs)]
    return Conflict(path, texts[0], texts[1], texts[2], binary=no_text)


async def merge_texts(
    git: Git, path: str, base: bytes, ours: bytes, theirs: bytes, side: Literal["ours", "theirs"] | None
) -> bytes | Conflict:
    """Merge three versions of a text; `side` is what counts where both changed the same lines, else that is a conflict."""
    with tempfile.TemporaryDirectory(prefix="nbagent-merge-") as folder:
        paths = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for file, data in zip(paths, (ours, base, theirs), strict=True):
            await asyncio.to_thread(file.write_bytes, data)
        how = (f"--{side}",) if side else ("--diff3", f"--marker-size={_SIZE}")
        ran = await git.run("merge-file", "-p", "-q", *how, *map(str, paths), ok=range(128))
    if ran.code == 0:
        return ran.out
    texts = [data.decode("utf-8", "replace") for data in (base, ours, theirs)]
    return Conflict(path, texts[0], texts[1], texts[2], hunks=tuple(_hunks(ran.out)))


def _hunks(merged: bytes) -> Iterator[Hunk]:
    """Yield the places between the marks of a merged text; lines are counted in our side."""
    parts: dict[str, list[str]] = {}
    at, line = "", 1
    for text in merged.splitlines(keepends=True):
        if text.startswith(_BEGIN):
            at, parts = "ours", {"ours": [], "base": [], "theirs": []}
        elif at and text.startswith(_BASE):
            at = "base"
        elif at and text.startswith(_MIDDLE):
            at = "theirs"
        elif at and text.startswith(_END):
            yield Hunk(f"line {line}", *("".join(parts[name]) for name in ("base", "ours", "theirs")))
            line += len(parts["ours"])
            at = ""
        elif at:
            parts[at].append(text.decode("utf-8", "replace"))
        else:
            line += 1
