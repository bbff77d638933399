"""Which shell commands can do nothing but look: known commands with known options, on paths inside that hold no keys.

A line counts only if every part of it counts and nothing in it is known only when it runs. It may say no to a harmless
command, never yes to another. The same list says which parts of a longer line need no rule. Read `only_looks`, then `Looks`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.tools.commandline import Line, Part, read_line
from nbagent.tools.commandwords import Word
from nbagent.tools.commandwraps import is_safe_variable
from nbagent.tools.paths import locate

_COUNT = r"[-+]?\d+"
_ANY = r".*"
_MOST_FOLDERS = 4


@dataclass(frozen=True, slots=True)
class _Shape:
    """Options that a command may carry, those that take a value, how many words it needs, and what they are.

    The first `texts` words are no paths (a pattern to look for); `paths` False: none of them is. `fed`: it may also work on
    what is written to it.
    """

    options: str = r"(?!)"
    valued: tuple[tuple[str, str], ...] = ()
    at_least: int = 0
    at_most: int = 100
    texts: int = 0
    paths: bool = True
    fed: bool = False
    names: bool = False


_LINES = (("-n", r"[-+]?\d+"), ("-c", r"[-+]?\d+"))
_COMMANDS = {
    "ls": _Shape(r"-[1aAdFhlrRStTsi]+|--all|--almost-all|--human-readable|--reverse|--recursive|--directory"),
    "cat": _Shape(r"-[nbAsE]+", at_least=1, fed=True),
    "head": _Shape(r"-\d+|-[qv]|-[nc]\d+", _LINES, at_least=1, fed=True),
    "tail": _Shape(r"-\d+|-[qv]|-[nc][-+]?\d+", _LINES, at_least=1, fed=True),
    "wc": _Shape(r"-[lwcmL]+", at_least=1, fed=True),
    "pwd": _Shape(r"-[LP]", at_most=0),
    "file": _Shape(r"-[bi]+", at_least=1),
    "du": _Shape(r"-[ahskmc]+|-d\d+|--max-depth=\d+", (("-d", _COUNT),)),
    "df": _Shape(r"-[hTikm]+"),
    "stat": _Shape(at_least=1),
    "grep": _Shape(
        r"-[inclvwxEFGPohHqsza]+|-[ABCm]\d+|--(?:ignore-case|line-number|count|only-matching|color(?:=never)?)",
        (("-A", _COUNT), ("-B", _COUNT), ("-C", _COUNT), ("-m", _COUNT)), at_least=1, texts=1, fed=True,
    ),
    "diff": _Shape(r"-[uqwbBiy]+|-U\d+|--(?:unified|brief|ignore-all-space|side-by-side)", at_least=2, at_most=2),
    "which": _Shape(r"-a", at_least=1, paths=False),
    "echo": _Shape(r"-[neE]+", paths=False),
    "true": _Shape(at_most=0),
    "cd": _Shape(at_least=1, at_most=1),
    "sort": _Shape(r"-[nrufhVbdM]+|-k\d+(?:,\d+)?", (("-k", r"\d+(?:,\d+)?"), ("-t", r".")), at_least=1, fed=True),
    "uniq": _Shape(r"-[cdui]+", at_most=1, fed=True),
    "cut": _Shape(r"-[dfc].+", (("-d", r"."), ("-f", r"[\d,-]+"), ("-c", r"[\d,-]+")), at_least=1, fed=True),
    "tr": _Shape(r"-[cdst]+", at_least=1, at_most=2, paths=False),
}  # fmt: skip
_GIT = {
    "status": _Shape(r"-[sbv]+|--short|--branch|--porcelain", at_most=0),
    "log": _Shape(
        r"-\d+|-n\d+|--oneline|--stat|--graph|--all|--decorate|--name-only|--name-status|--no-merges", (("-n", _COUNT),)
    ),
    "diff": _Shape(r"--stat|--cached|--staged|--name-only|--name-status"),
    "show": _Shape(r"--stat|--oneline|--name-only|--name-status"),
    "branch": _Shape(r"-[avr]+|-vv|--list|--show-current", at_most=0),
    "rev-parse": _Shape(r"--show-toplevel|--abbrev-ref|--short|--is-inside-work-tree|--verify"),
    "ls-files": _Shape(r"-[comdst]+|--others|--cached|--modified|--deleted|--exclude-standard"),
    "remote": _Shape(r"-v", at_most=0),
    "blame": _Shape(r"-[wsef]+", at_least=1),
}
_FIND_TAKES = {
    "-name": _ANY, "-iname": _ANY, "-path": _ANY, "-ipath": _ANY, "-regex": _ANY, "-type": r"[fdlbcps,]+",
    "-size": r"[-+]?\d+[bcwkMG]?", "-mtime": _COUNT, "-mmin": _COUNT, "-ctime": _COUNT, "-atime": _COUNT,
    "-maxdepth": r"\d+", "-mindepth": r"\d+",
}  # fmt: skip
_FIND_ALONE = frozenset({"-empty", "-print", "-print0", "-not", "!", "-o", "-or", "-a", "-and", "-prune", "(", ")"})
_REVISION = re.compile(r"\A[\w@./][\w@./^~-]*\Z", re.ASCII)


def only_looks(command: str, root: Path) -> bool:
    """Whether `command` only reads, inside `root`."""
    return os.name != "nt" and Looks(read_line(command), root).all_of_it


class Looks:
    """Judges the parts of one line: `cd` moves those behind it, so a path must be inside from every folder it may be in."""

    def __init__(self, line: Line, root: Path) -> None:
        self._line, self._root = line, root
        self.folders = [root]
        self.moves = False
        for part in line.parts:
            if part.name in {"cd", "pushd", "popd", "chdir"}:
                self._move(part)

    @property
    def all_of_it(self) -> bool:
        """Whether the whole line only reads."""
        line = self._line
        if line.unreadable or line.asks or line.comment or not line.parts:
            return False
        return all(one.harmless for one in line.redirects) and all(map(self.part, line.parts))

    def part(self, part: Part) -> bool:
        """Whether one part only reads."""
        if not all(one.harmless for one in part.redirects):
            return False
        if not all(is_safe_variable(name) and value.literal for name, value in part.assignments):
            return False
        words = part.words
        if not words or not all(word.literal for word in words):
            return False
        name, rest = words[0].text, words[1:]
        if name == "git":
            shape = _GIT.get(rest[0].text) if rest and not self.moves else None
            return shape is not None and self._fits(shape, rest[1:], fed=False, revisions=True)
        if name == "find":
            return self._find(rest)
        shape = _COMMANDS.get(name)
        return shape is not None and self._fits(shape, rest, fed=part.piped, revisions=False)

    def inside(self, text: str) -> bool:
        """Whether a path is in the root, and no place of keys, from wherever the line may be."""
        try:
            places = [locate(self._root, os.path.join(folder, text)) for folder in self.folders]  # noqa: PTH118
        except ToolError:
            return False
        return not text.startswith("~") and all(place.inside and not place.secret for place in places)

    def _move(self, part: Part) -> None:
        """Take in a `cd`: the line may be in any of the folders so far, or in one of these."""
        self.moves = True
        words = part.words
        if len(words) != 2 or not words[1].literal or words[1].text == "-" or len(self.folders) > _MOST_FOLDERS:
            self.folders = list(dict.fromkeys([*self.folders, Path(os.sep, "nowhere")]))
            return
        there = [Path(os.path.join(folder, words[1].text)) for folder in self.folders]  # noqa: PTH118
        self.folders = list(dict.fromkeys([*self.folders, *there]))

    def _fits(self, shape: _Shape, words: Sequence[Word], *, fed: bool, revisions: bool) -> bool:
        named: list[str] = []
        rest = iter(words)
        valued = dict(shape.valued)
        for word in rest:
            text = word.text
            if text in valued:
                if not re.fullmatch(valued[text], next(rest, Word("\n", "")).text):
                    return False
            elif text.startswith("-") and len(text) > 1:
                if not re.fullmatch(shape.options, text):
                    return False
            else:
                named.append(text)
        at_least = shape.texts if fed and shape.fed else shape.at_least + shape.texts
        if not at_least <= len(named) <= shape.at_most:
            return False
        return not shape.paths or all(self._harmless(text, revision=revisions) for text in named[shape.texts :])

    def _harmless(self, text: str, *, revision: bool) -> bool:
        """Whether a word leads to a place inside the root without keys, and for git looks like a plain name."""
        if revision and not _REVISION.match(text):
            return False
        return self.inside(text)

    def _find(self, words: Sequence[Word]) -> bool:
        at = 0
        while at < len(words) and not words[at].text.startswith(("-", "(", "!")):
            if not self.inside(words[at].text):
                return False
            at += 1
        rest = iter(words[at:])
        for word in rest:
            if word.text in _FIND_TAKES:
                if not re.fullmatch(_FIND_TAKES[word.text], next(rest, Word("\n", "")).text):
                    return False
            elif word.text not in _FIND_ALONE:
                return False
        return True
