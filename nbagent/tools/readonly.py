"""Which shell commands can do nothing but look: a short list of exact shapes, and everything else is not on it.

A command counts only if it is one plain command without any character that a shell gives a meaning to, with known
options, on paths inside the workspace that hold no keys. It may say no to a harmless command, never yes to another.
Read `only_looks`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.tools.paths import locate

_MEANING = set(";&|<>()$`\\*?[]{}~!#^%\n\r\t=")
_COUNT = r"-?\d+"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Options that a command may carry, those that take a count, and how many paths it needs at least."""

    options: str
    counted: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int = 100
    paths: bool = True


_COMMANDS = {
    "ls": _Shape(r"-[1aAdFhlrRStTsi]+"),
    "cat": _Shape(r"-[nbAsE]+", at_least=1),
    "head": _Shape(r"-\d+|-[qv]", counted=("-n", "-c"), at_least=1),
    "tail": _Shape(r"-\d+|-[qv]", counted=("-n", "-c"), at_least=1),
    "wc": _Shape(r"-[lwcmL]+", at_least=1),
    "pwd": _Shape(r"-[LP]", at_most=0),
    "file": _Shape(r"-[bi]+", at_least=1),
    "du": _Shape(r"-[ahskmc]+", counted=("-d",)),
    "df": _Shape(r"-[hTikm]+"),
    "stat": _Shape(r"(?!)", at_least=1),
}
_GIT = {
    "status": _Shape(r"-[sbv]+|--short|--branch|--porcelain", at_most=0),
    "log": _Shape(r"-\d+|--oneline|--stat|--graph|--all|--decorate|--name-only|--name-status|--no-merges", ("-n",)),
    "diff": _Shape(r"--stat|--cached|--staged|--name-only|--name-status"),
    "show": _Shape(r"--stat|--oneline|--name-only|--name-status"),
    "branch": _Shape(r"-[avr]+|-vv|--list|--show-current", at_most=0),
}
_REVISION = re.compile(r"\A[\w@./][\w@./-]*\Z", re.ASCII)


def only_looks(command: str, root: Path) -> bool:
    """Whether `command` is one of the exact shapes that only read, inside `root`."""
    if os.name == "nt" or not command.isprintable() or _MEANING & set(command):
        return False
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote
        return False
    if not words:
        return False
    name, *rest = words
    if name == "git":
        shape = _GIT.get(rest[0]) if rest else None
        return shape is not None and _fits(shape, rest[1:], root, revisions=True)
    shape = _COMMANDS.get(name)
    return shape is not None and _fits(shape, rest, root, revisions=False)


def _fits(shape: _Shape, words: Sequence[str], root: Path, *, revisions: bool) -> bool:
    named: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in shape.counted:
            if not re.fullmatch(_COUNT, next(rest, "")):
                return False
        elif word.startswith("-"):
            if not re.fullmatch(shape.options, word):
                return False
        else:
            named.append(word)
    if not shape.at_least <= len(named) <= shape.at_most:
        return False
    return all(_harmless(word, root, revision=revisions) for word in named)


def _harmless(word: str, root: Path, *, revision: bool) -> bool:
    """Whether a word leads to a place inside the root without keys, and for git looks like a plain name."""
    if revision and not _REVISION.match(word):
        return False
    try:
        place = locate(root, word)
    except ToolError:
        return False
    return place.inside and not place.secret
