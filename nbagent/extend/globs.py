"""Patterns for paths, as `paths:` in frontmatter has them: `*`, `?`, `[…]`, `**` for folders, `{a,b}` for choices.

A pattern comes from a project's file: matching takes bounded time whatever it is. Read `matches`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

_CHOICES = 64  # a pattern that stands for more is taken as it is written
_LONGEST = 512


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether `path` (relative, with slashes) fits one of `patterns`, each anchored where the path begins."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    return any(_fits(parts, one) for pattern in patterns for one in expanded(pattern))


def expanded(pattern: str) -> list[str]:
    """Return the patterns that `{a,b}` in `pattern` stands for."""
    if len(pattern) > _LONGEST:
        return []
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > _CHOICES:
            return [pattern]
        one = waiting.pop()
        choice = _innermost(one)
        if choice is None:
            done.append(one)
        else:
            start, end = choice
            waiting += [one[:start] + part + one[end + 1 :] for part in one[start + 1 : end].split(",")]
    return done


def _innermost(text: str) -> tuple[int, int] | None:
    """Return where the first `{…,…}` without another one in it begins and ends."""
    start = -1
    for place, char in enumerate(text):
        if char == "{":
            start = place
        elif char == "}" and start >= 0:
            if "," in text[start:place]:
                return start, place
            start = -1
    return None


def _fits(parts: Sequence[str], pattern: str) -> bool:
    """Match part by part; `reached` are the places of the path up to which the pattern so far fits."""
    wanted = [part for part in pattern.removeprefix("./").lstrip("/").split("/") if part]
    if not wanted:
        return False
    reached = {0}
    for part in wanted:
        if part == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatch.fnmatchcase(parts[at], part)}
        if not reached:
            return False
    return len(parts) in reached or (pattern.endswith("/") and max(reached) > 0)
