"""One word of a shell command: which text it means once quotes are gone, and whether that can be known at all.

Works letter by letter and knows nothing of the grammar around it, so that it checks what the grammar found. Read `word`.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_BREAKS = frozenset(";&|<>() \t\n")
_IN_DOUBLE = frozenset('$`"\\\n')
_BRACES = re.compile(r"\{[^}]*(?:,|\.\.)[^}]*\}")


@dataclass(frozen=True, slots=True)
class Word:
    """A word: `text` what it means, `raw` as it was written.

    `dynamic`: what it means is only known when it runs (`text` is then as written); `glob`: it may stand for names of
    files; `home`: it begins with the home folder (`~`).
    """

    text: str
    raw: str
    dynamic: bool = False
    glob: bool = False
    home: bool = False

    @property
    def literal(self) -> bool:
        """Whether it is this one text whatever is there."""
        return not (self.dynamic or self.glob or self.home)

    @property
    def quoted(self) -> str:
        """The word as one that means the same wherever it stands: quotes only where they are needed."""
        return shlex.quote(self.text) if self.literal else self.raw


def word(raw: str) -> Word | None:
    """Read a word as it was written; None where it is not one: an operator in it, a quote left open."""
    text: list[str] = []
    glob = False
    plain: list[str] = []  # the letters outside of quotes, for braces
    at = 0
    if raw.startswith("#") or not raw:
        return None
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            if at + 1 >= len(raw):
                return None
            text.append("" if raw[at + 1] == "\n" else raw[at + 1])
            plain.append("\0")
            at += 2
        elif char == "'":
            end = raw.find("'", at + 1)
            if end < 0:
                return None
            text.append(raw[at + 1 : end])
            plain.append("\0")
            at = end + 1
        elif char == '"':
            inside = _double(raw, at + 1)
            if inside is None:
                return None
            if inside[0] is None:
                return Word(raw, raw, dynamic=True)
            text.append(inside[0])
            plain.append("\0")
            at = inside[1]
        elif char in "$`" or raw.startswith(("<(", ">("), at):
            return Word(raw, raw, dynamic=True)
        elif char in _BREAKS:
            return None
        else:
            glob = glob or char in "*?["
            text.append(char)
            plain.append(char)
            at += 1
    if _BRACES.search("".join(plain)):
        return Word(raw, raw, dynamic=True)
    return Word("".join(text), raw, glob=glob, home=raw.startswith("~"))


def _double(raw: str, at: int) -> tuple[str | None, int] | None:
    """Read up to the closing double quote: the text (None: only known when it runs) and where it goes on; None: left open."""
    text: list[str] = []
    while at < len(raw):
        char = raw[at]
        if char == '"':
            return "".join(text), at + 1
        if char in "$`":
            return None, at
        if char == "\\" and at + 1 < len(raw):
            following = raw[at + 1]
            text.append("" if following == "\n" else following if following in _IN_DOUBLE else char + following)
            at += 2
            continue
        text.append(char)
        at += 1
    return None
