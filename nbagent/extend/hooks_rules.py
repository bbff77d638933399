"""The `if` of a hook: one permission rule that a call must fit, in Claude Code's syntax, e.g. `Bash(git *)`, `Edit(*.ts)`.

A filter, not a gate: where it is not sure, the hook runs. Must not know how a hook runs. Read `fits`.
"""

from __future__ import annotations

import fnmatch
import os
import re

from nbagent.core.messages import Json
from nbagent.core.rules_names import CELL_EDITS, speaks_of
from nbagent.extend.globs import matches
from nbagent.extend.hooks_names import Place, names

_RULE = re.compile(r"\s*([A-Za-z0-9_*-]+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_ASSIGNMENT = re.compile(r"\s*[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|[^\s'\"])*\s+")
_UNSURE = re.compile(r"\$\(|`|\$\{?\w")
_EDITS = frozenset({"edit_file", "write_file", *CELL_EDITS})
_READS = frozenset({"read_file", "read_data_head", "grep", "glob"})


def fits(rule: str, tool: str, given: Json, place: Place) -> bool:
    """Whether a call of our `tool` with input `given` fits `rule`; a text that is no rule fits everything."""
    found = _RULE.match(rule)
    if found is None:
        return True
    name, pattern = found[1], found[2]
    if not _names_it(name, tool):
        return False
    if pattern in {None, "", "*"}:
        return True
    if tool == "shell":
        return _fits_command(pattern, str(given.get("command", "")))
    path = given.get("path", given.get("folder"))
    if tool in _EDITS | _READS:
        spelled = place.notebook if path is None else str(path)
        return _fits_path(pattern, spelled, place)
    subject = next((str(value) for value in given.values() if isinstance(value, str)), "")
    return fnmatch.fnmatchcase(subject, pattern)


def _names_it(name: str, tool: str) -> bool:
    return speaks_of(name, tool) or any(fnmatch.fnmatchcase(known, name) for known in names(tool)[1])


def _fits_path(pattern: str, spelled: str, place: Place) -> bool:
    path = str(place.absolute(spelled)).replace(os.sep, "/")
    if pattern.startswith("//"):
        return matches(path, [pattern[1:]])
    if pattern.startswith("~/"):
        return matches(path, [os.path.expanduser(pattern)])  # noqa: PTH111  (a pattern, not a path)
    relative = os.path.relpath(path, place.folder or ".").replace(os.sep, "/")
    if "/" not in pattern.rstrip("/"):
        return matches(relative.rpartition("/")[2], [pattern])
    return matches(relative, [pattern])


def _fits_command(pattern: str, command: str) -> bool:
    if _beyond_the_name(pattern) and _UNSURE.search(command):
        return True
    parts = subcommands(command)
    return parts is None or any(_fits_part(pattern, part) for part in parts)


def _beyond_the_name(pattern: str) -> bool:
    """Whether a pattern says more than a command's name: `git push *`, not `git *`."""
    return len(_starred(pattern).removesuffix("*").split()) > 1


def _starred(pattern: str) -> str:
    return f"{pattern[:-2]} *" if pattern.endswith(":*") else pattern


def _fits_part(pattern: str, part: str) -> bool:
    pattern = _starred(pattern)
    text = part.strip()
    while found := _ASSIGNMENT.match(text):
        text = text[found.end() :]
    return fnmatch.fnmatchcase(text, pattern) or (pattern.endswith(" *") and text == pattern[:-2])


def subcommands(command: str) -> list[str] | None:
    """Return the parts of a shell command, those in `$(…)` and backticks too; None where a quote or bracket stays open."""
    parts: list[str] = [""]
    inner: list[str] = []
    quote = ""
    at = 0
    while at < len(command):
        step = 1
        char = command[at]
        if char == "\\" and quote != "'":
            step = 2
        elif quote != "'" and (char == "`" or command.startswith("$(", at)):
            end = _closing(command, at)
            if end is None:
                return None
            inner.append(command[at + (1 if char == "`" else 2) : end])
            step = end + 1 - at
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in ";&|\n()":
            parts.append("")
            at += 1
            continue
        parts[-1] += command[at : at + step]
        at += step
    if quote:
        return None
    return _with_inner([part.strip() for part in parts if part.strip()], inner)


def _with_inner(found: list[str], inner: list[str]) -> list[str] | None:
    for text in inner:
        if (more := subcommands(text)) is None:
            return None
        found = [*found, *more]
    return found


def _closing(command: str, begin: int) -> int | None:
    """Return where what begins at `begin` with a backtick or `$(` ends, None where it does not."""
    if command[begin] == "`":
        end = command.find("`", begin + 1)
        return None if end < 0 else end
    depth, quote = 0, ""
    for at in range(begin + 1, len(command)):
        char = command[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return at
    return None
