"""Where a shell command would reach: files with keys, what makes something run, whole folders that it would remove.

What can be seen in its words only, so it raises questions and answers none. Read `endangers`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.tools.commandline import Line, Part
from nbagent.tools.commandwords import Word
from nbagent.tools.commandwraps import layers
from nbagent.tools.paths import Place, locate
from nbagent.tools.readonly import Looks

WRITERS = frozenset(
    {
        *(
            "rm",
            "rmdir",
            "mv",
            "cp",
            "ln",
            "tee",
            "touch",
            "mkdir",
            "chmod",
            "chown",
            "chgrp",
            "dd",
            "truncate",
            "install",
        ),
        *("rsync", "scp", "unlink", "shred", "sed", "patch", "unzip", "tar", "split", "wget", "curl", "sort", "mktemp"),
    }
)
"""Commands that write, move or remove the files that they are given."""
_REMOVERS = frozenset({"rm", "rmdir", "mv", "chmod", "chown", "chgrp", "find", "shred", "rsync"})
_SPEAKERS = frozenset({"echo", "printf"})
_EVERYTHING = frozenset({"*", "./*", ".", "./", "..", "../", "~", "~/", "~/*", "/", "/*", ".*"})


def endangers(line: Line, root: Path) -> bool:
    """Whether a line touches what is protected: keys, files that make something run, or a folder that holds all others."""
    folders = Looks(line, root).folders
    redirects = [*line.redirects, *(one for part in line.parts for one in part.redirects)]
    for one in redirects:
        if one.target is None or one.harmless:
            continue
        for place in _places(one.target.text, folders, root):
            if place.secret or (one.writes and place.guarded):
                return True
    return any(_part_endangers(part, folders, root) for part in line.parts)


def paths_in(part: Part) -> Iterator[str]:
    """Yield the words of a part that may be paths: what stands alone, and what stands behind `=` or an option's letter."""
    for word in part.words[1:]:
        yield from _paths(word)


def _paths(word: Word) -> Iterator[str]:
    text = word.text
    if not text.startswith("-"):
        yield text
    if "=" in text:
        yield text.partition("=")[2]
    if re.match(r"\A-[A-Za-z][./~]", text):
        yield text[2:]
    if text.startswith("@"):
        yield text[1:]


def _part_endangers(part: Part, folders: list[Path], root: Path) -> bool:
    names = {words[0].text.rpartition("/")[2] for words in layers(part.words) if words}
    if part.name in _SPEAKERS:
        return False
    writes = not names.isdisjoint(WRITERS)
    deletes = any(word.text == "-delete" for word in part.words)
    removes = not (names & _REMOVERS).isdisjoint(_REMOVERS if deletes else _REMOVERS - {"find"})
    for word in part.words[1:]:
        if removes and (word.raw in _EVERYTHING or (word.literal and _holds_all(word.text, folders, root))):
            return True
        for text in _paths(word):
            if _is_key(text, folders, root) or (writes and _is_guarded(text, folders, root)):
                return True
    return False


def _is_key(text: str, folders: list[Path], root: Path) -> bool:
    """Whether a word leads to keys; a plain word like `credentials` only where there is such a file."""
    looks_like_one = "/" in text or text.startswith((".", "~")) or "." in text
    return any(
        place.secret and (looks_like_one or os.path.lexists(place.path)) for place in _places(text, folders, root)
    )


def _is_guarded(text: str, folders: list[Path], root: Path) -> bool:
    return any(place.guarded for place in _places(text, folders, root))


def _holds_all(text: str, folders: list[Path], root: Path) -> bool:
    """Whether a path is the workspace, the home folder, or holds one of them."""
    kept = [Path(os.path.realpath(place)) for place in (root, Path.home())]
    return any(place.path == one or place.path in one.parents for place in _places(text, folders, root) for one in kept)


def _places(text: str, folders: list[Path], root: Path) -> Iterator[Place]:
    if not text or len(text) > 4096:  # no system has longer paths
        return
    written = os.path.expanduser(text) if text.startswith("~") else text  # noqa: PTH111  (~nobody stays as it is)
    for folder in folders:
        try:
            yield locate(root, os.path.join(folder, written))  # noqa: PTH118
        except ToolError:
            continue
