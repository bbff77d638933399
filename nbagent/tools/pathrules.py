"""Rules for paths: patterns as .gitignore has them, from where they were written, seen through links.

`//x` is absolute, `~/x` counts from the home folder, `/x` from the folder of the settings, `x` and `./x` from the working
folder. What allows must fit the path as it was spelled and the place where it leads; what denies or asks need only fit
one of them, at any depth, in any case. Read `fits_path`, then `PathRules`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json
from nbagent.core.ports import text_hash
from nbagent.core.rules import Plain, Rule, fits_argument
from nbagent.core.tools import Tool
from nbagent.tools.paths import locate

_ESCAPED = re.compile(r"([*?\[\]\\]|\s\Z|\A[!#])")
_GLOB = re.compile(r"(?<!\\)[*?\[]")
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Spot:
    """One path of a call: as it was spelled and where it leads, both absolute, with slashes.

    `folder`: the call is about all that is in it.
    """

    spelled: str
    real: str
    folder: bool = False

    @classmethod
    def of(cls, root: Path, spelled: str, *, folder: bool = False) -> Spot:
        """Find where `spelled` leads from `root`; what is no path stays as it is."""
        base = os.path.realpath(root)
        written = os.path.expanduser(spelled) if spelled.startswith("~") else spelled  # noqa: PTH111  (~nobody stays)
        lexical = os.path.normpath(os.path.join(base, written))  # noqa: PTH118
        if lexical == (given := os.path.normpath(os.path.abspath(root))) or lexical.startswith(given + os.sep):  # noqa: PTH100
            lexical = base + lexical[len(given) :]
        try:
            real = os.path.realpath(os.path.join(base, written))  # noqa: PTH118
        except (OSError, ValueError):
            real = lexical
        return cls(slashed(lexical), slashed(real), folder)


def slashed(path: str) -> str:
    """Return an absolute path as patterns have it: with slashes, a drive as its letter."""
    plain = path.replace(os.sep, "/")
    return f"/{plain[0].lower()}{plain[2:]}" if re.match(r"[A-Za-z]:/", plain) else plain


def fits_path(rule: Rule, spot: Spot, root: Path) -> bool:
    """Whether the pattern of a rule fits a path; a rule without one fits all."""
    if rule.pattern is None:
        return True
    if rule.pattern.startswith("sha256:"):
        return False
    wide = rule.action != "allow"
    base, line = _anchored(rule.pattern, rule.source.base, slashed(os.path.realpath(root)), wide=wide)
    if wide:
        base, line = base.casefold(), line.casefold()
    found = [_below(line, base, path.casefold() if wide else path, spot) for path in (spot.spelled, spot.real)]
    return any(found) if wide else all(found)


def _anchored(pattern: str, source: str, root: str, *, wide: bool) -> tuple[str, str]:
    """Return the folder that a pattern counts from and the rest of it, as a line of .gitignore in that folder.

    What counts from the working folder allows there only; what denies or asks does so at any depth, anywhere.
    """
    if pattern.startswith("//"):
        return "/", f"/{pattern[2:]}"
    if pattern.startswith("~/"):
        return slashed(os.path.realpath(Path.home())), f"/{pattern[2:]}"
    if pattern.startswith("/"):
        return (slashed(os.path.realpath(source)) if source else root), f"/{pattern[1:]}"
    here = pattern.removeprefix("./")
    if wide:
        return "/", f"**/{here}"
    if here != pattern:
        return root, f"/{here}"
    return root, f"\\{here}" if here[:1] in {"!", "#"} else here


def _below(line: str, base: str, path: str, spot: Spot) -> bool:
    """Whether a line of .gitignore in the folder `base` fits a path; of a folder, also where it fits all that is in it."""
    inside = base.rstrip("/") + "/"
    if not f"{path}/".startswith(inside):
        return False
    relative = path[len(inside) :]
    matcher = _matcher(line)
    if relative and matcher.match_file(relative):
        return True
    return spot.folder and matcher.match_file(f"{relative}/.nbagent-any".lstrip("/"))


@functools.lru_cache(maxsize=512)
def _matcher(line: str) -> Any:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  (only when a rule for paths is there)

    try:
        return GitIgnoreSpec.from_lines([line])
    except ValueError:  # a pattern that git would not read either: it fits nothing
        return GitIgnoreSpec.from_lines([])


def literal(path: str) -> str:
    """Return a pattern that fits this one relative path, or what is below it."""
    return _ESCAPED.sub(r"\\\1", path)


def reads_denied(rules: Iterable[Rule], root: Path) -> Callable[[str], bool]:
    """Return what tells whether a path may not be read whatever the call: what searches must leave it out."""
    denying = [rule for rule in rules if rule.action == "deny" and rule.pattern and rule.speaks_of("read_file")]

    def denied(path: str) -> bool:
        return bool(denying) and any(fits_path(rule, Spot.of(root, path), root) for rule in denying)

    return denied


class PathRules(Plain):
    """The grammar of tools with a path: `argument` holds it, a file's or (`folder`) that of all that is in it."""

    def __init__(self, root: Path, argument: str = "path", *, writes: bool = False, folder: bool = False) -> None:
        self._root, self._argument = root, argument
        self._writes, self._folder = writes, folder

    def fits(self, rule: Rule, tool: Tool, given: Json) -> bool:
        """Whether the path fits, as it was spelled and where it leads."""
        if rule.pattern is None:
            return True
        if rule.pattern.startswith("sha256:"):
            return rule.pattern[7:] == text_hash(tool.subject(given))
        if rule.action != "allow" and fits_argument(rule.pattern, given):
            return True
        return fits_path(rule, self._spot(given), self._root)

    def opens(self, rule: Rule, tool: Tool, given: Json) -> bool:
        """Whether the rule is about this one file; for what is only outside of the workspace: about a place outside."""
        pattern = rule.pattern or ""
        if rule.is_exact(tool.subject(given)):
            return True
        try:
            place = locate(self._root, str(given[self._argument]))
        except ToolError:
            return False
        if not (place.secret or (self._writes and place.guarded)):
            return pattern.startswith(("//", "~/"))
        if not pattern or _GLOB.search(pattern):
            return False
        base, line = _anchored(pattern, rule.source.base, slashed(os.path.realpath(self._root)), wide=False)
        plain = re.sub(r"\\(.)", r"\1", line.lstrip("/"))
        named = f"{base.rstrip('/')}/{plain}"
        return named in {(spot := self._spot(given)).spelled, spot.real}

    def offers(self, tool: Tool, given: Json) -> tuple[str, ...]:
        """Return a rule for this one path and one for the tool."""
        subject = tool.subject(given)
        if len(subject) > _LONGEST or not subject.isprintable():
            return (f"{tool.name}(sha256:{text_hash(subject)})", tool.name)
        outside = Path(subject).is_absolute()
        pattern = f"/{literal(slashed(subject))}" if outside else f"./{literal(subject)}"
        if self._folder:
            pattern = f"{pattern.removesuffix('/.')}/**"
        return (f"{tool.name}({pattern})", tool.name)

    def _spot(self, given: Json) -> Spot:
        return Spot.of(self._root, str(given.get(self._argument, "")), folder=self._folder)
