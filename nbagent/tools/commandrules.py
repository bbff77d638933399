"""Rules for the shell: an allow rule must hold for every part of a command line, a deny or ask rule for any part of it.

A part is what really runs, wrappers taken away. What only a shell knows when it runs (substitutions, loops, variables),
files that are written, and arguments that do more than the command's name says are never covered by a pattern, only by
the exact text. Rules for paths count for redirections and for what commands read. Read `CommandRules.says`.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.messages import Json
from nbagent.core.rules import Action, Plain, Rule, Spoken, fits_argument, fits_text
from nbagent.core.tools import Tool
from nbagent.tools.commandline import Line, Part, Redirect, read_line
from nbagent.tools.commandplaces import WRITERS, paths_in
from nbagent.tools.commandpowers import power_of
from nbagent.tools.commandwords import Word
from nbagent.tools.commandwraps import layers, texts_of_shells, unwrapped
from nbagent.tools.pathrules import Spot, fits_path
from nbagent.tools.readonly import Looks

_DEEPEST = 3
MOST_INNER = 200
"""Parts of a line, with those of texts in it that a shell would read; what has more can't be seen through."""
_SPEAKERS = frozenset({"echo", "printf"})
_PIECES = re.compile(r"[;&|\n()`{}]+|\$\(")
_EDIT, _READ = "edit_file", "read_file"


@dataclass(frozen=True, slots=True)
class Judged:
    """One part of a line: the rules that allow it (() where it needs none), or why nothing does."""

    text: str
    rules: tuple[Rule, ...] = ()
    why: str = ""


class CommandRules(Plain):
    """The grammar of the shell tool, at home in the folder `root`.

    `bash` says that commands are run by a POSIX shell; elsewhere only an exact text allows.
    """

    def __init__(self, root: Path, *, bash: bool = os.name != "nt") -> None:
        self._root, self._bash = root, bash

    def says(self, action: Action, rules: Sequence[Rule], tool: Tool, given: Json) -> Spoken | None:
        """Return what rules of this action say of the command, None where they say nothing."""
        command = tool.subject(given)
        about = [rule for rule in rules if rule.action == action]
        mine = [rule for rule in about if rule.speaks_of(tool.name)]
        for rule in mine:
            if _is_all(rule) or rule.is_exact(command) or rule.is_exact(command.strip()):
                return Spoken((rule,))
            if action != "allow" and fits_argument(rule.pattern or "", given):
                return Spoken((rule,))
        if action == "allow":
            return self._allowed(about, mine, command)
        return self._forbidden(about, mine, command) or self._unseen(action, rules, tool, command)

    def notes(self, rules: Sequence[Rule], tool: Tool, given: Json) -> tuple[str, ...]:
        """Return a line for each part of the command: what allows it, or why nothing does."""
        line = read_line(tool.subject(given))
        about = [rule for rule in rules if rule.action == "allow"]
        mine = [rule for rule in about if rule.speaks_of(tool.name)]
        said = [f"the whole line: {why}, so only its exact text can be allowed" for why in _asks(line)]
        for one in self._judged(line, about, mine):
            allowed = f"allowed by {' and '.join(r.told for r in one.rules)}" if one.rules else "only looks"
            said.append(f"{one.text}: {one.why or allowed}")
        return tuple(said)

    # ── what allows ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _allowed(self, about: Sequence[Rule], mine: Sequence[Rule], command: str) -> Spoken | None:
        if not self._bash or not about:
            return None
        line = read_line(command)
        if _asks(line):
            return None
        judged = self._judged(line, about, mine)
        rules = tuple(dict.fromkeys(rule for one in judged for rule in one.rules))
        return Spoken(rules) if rules and not any(one.why for one in judged) else None

    def _judged(self, line: Line, about: Sequence[Rule], mine: Sequence[Rule]) -> list[Judged]:
        looks = Looks(line, self._root)
        judged = [self._redirected(one, about, looks) for one in line.redirects]
        for part in line.parts:
            judged.append(self._part(part, mine, looks))
            judged += [self._redirected(one, about, looks) for one in part.redirects]
        return [one for one in judged if one.text]

    def _part(self, part: Part, mine: Sequence[Rule], looks: Looks) -> Judged:
        text = _plain_text(part.words) or part.raw
        if looks.part(Part(part.raw, part.words, part.assignments, (), part.piped)):
            fits = next((rule for rule in mine if _fits_words(rule.pattern or "", unwrapped(part).words)), None)
            return Judged(text, () if fits is None else (fits,))
        bare = unwrapped(part)
        if bare.asks:
            return Judged(text, why=f"{bare.asks}, so only an exact text allows it")
        if not bare.words:
            return Judged(text)
        if any(word.dynamic for word in part.words):
            return Judged(text, why="a part of it is only known when it runs")
        if not part.assignments and (exact := _exact(part, mine)):
            return Judged(text, (exact,))
        rule = next((rule for rule in mine if _fits_words(rule.pattern or "", bare.words)), None)
        if rule is None:
            return Judged(text, why="no rule allows it")
        if why := power_of(bare.words, open_ended=bare.open_ended):
            return Judged(text, why=f"{rule} does not cover it: {why}")
        return Judged(text, (rule,))

    def _redirected(self, one: Redirect, about: Sequence[Rule], looks: Looks) -> Judged:
        """Judge a redirection: a rule that allows editing (or reading) the file covers it."""
        if one.harmless:
            return Judged("")
        said = f"{one.operator} {one.target.raw if one.target else ''}".strip()
        if one.target is None or not one.target.literal:
            return Judged(said, why="what it writes or reads is only known when it runs")
        if not one.writes and looks.inside(one.target.text):
            return Judged("")
        name = _EDIT if one.writes else _READ
        spots = [Spot.of(self._root, str(Path(folder, one.target.text))) for folder in looks.folders]
        for rule in about:
            if rule.speaks_of(name) and all(fits_path(rule, spot, self._root) for spot in spots):
                return Judged(said, (rule,))
        return Judged(said, why=f"no rule allows {'writing' if one.writes else 'reading'} this file")

    # ── what denies or asks ──────────────────────────────────────────────────────────────────────────────────────────

    def _forbidden(self, about: Sequence[Rule], mine: Sequence[Rule], command: str) -> Spoken | None:
        if not about:
            return None
        patterns = [rule for rule in mine if rule.pattern is not None and not rule.pattern.startswith("sha256:")]
        for text, shown in self._texts(command) if patterns else ():
            for rule in patterns:
                if fits_text((rule.pattern or "").strip(), text):
                    return Spoken((rule,), shown if shown != command.strip() else "")
        return self._forbidden_path(about, command)

    def _texts(self, command: str) -> Iterator[tuple[str, str]]:
        """Yield every text that a rule could mean by a part of the command, and the part as it is shown."""
        yield command.strip(), command.strip()
        for piece in _PIECES.split(command) if read_line(command).unreadable else ():
            yield piece.strip(), piece.strip()
            for words in layers(_guessed(piece)):
                yield from ((text, piece.strip()) for text in _spellings(words))
        for part in all_parts(command):
            for words in (part.words, *layers(part.words)):
                for text in _spellings(words):
                    yield text, _plain_text(part.words)[:80]

    def _forbidden_path(self, about: Sequence[Rule], command: str) -> Spoken | None:
        """Say which rule forbids reading or writing a file that the command names."""
        reading = [rule for rule in about if rule.pattern is not None and rule.speaks_of(_READ)]
        writing = [rule for rule in about if rule.pattern is not None and rule.speaks_of(_EDIT)]
        if not reading and not writing:
            return None
        folders = Looks(read_line(command), self._root).folders
        for path, writes in self._paths(command):
            for folder in folders:
                spot = Spot.of(self._root, path if path.startswith("~") else str(Path(folder, path)), folder=True)
                for rule in (*reading, *writing) if writes else reading:
                    if fits_path(rule, spot, self._root):
                        return Spoken((rule,), path)
        return None

    def _paths(self, command: str) -> Iterator[tuple[str, bool]]:
        """Yield the paths that a command names, and whether it would write there."""
        for one in read_line(command).redirects:
            if one.target is not None and not one.harmless:
                yield one.target.text, one.writes
        for part in all_parts(command):
            for one in part.redirects:
                if one.target is not None and not one.harmless:
                    yield one.target.text, one.writes
            if part.name in _SPEAKERS:
                continue
            writes = any(words[0].text.rpartition("/")[2] in WRITERS for words in layers(part.words) if words)
            for path in paths_in(part):
                if path and "\0" not in path and len(path) < 4096:  # no system has longer paths
                    yield path, writes

    def _unseen(self, action: Action, rules: Sequence[Rule], tool: Tool, command: str) -> Spoken | None:
        """Ask where a rule that denies or asks may speak of what can't be seen before it runs."""
        if action != "ask":
            return None
        hidden = self._hidden(command)
        about = [r for r in rules if r.action != "allow" and r.speaks_of(tool.name) and not _is_all(r)]
        if not hidden or not about:
            return None
        return Spoken((), f"{hidden}, so it can't be seen whether {about[0].action} {about[0].told} speaks of it")

    def _hidden(self, command: str) -> str:
        line = read_line(command)
        if line.unreadable:
            return line.unreadable
        parts = all_parts(command)
        if len(parts) >= MOST_INNER:
            return "it has too many parts"
        for part in parts:
            if part.words and part.words[0].dynamic:
                return f"{part.words[0].raw[:40]} is a command whose name is only known when it runs"
            if any(text is None for text in texts_of_shells(part.words)):
                return f"{part.name} runs what is only known when it runs"
        return ""


@functools.lru_cache(maxsize=64)
def all_parts(command: str) -> tuple[Part, ...]:
    """Return the parts of a line and of all that it gives to a shell as text, at most `MOST_INNER`."""
    found: list[Part] = []
    waiting = [(command, 0)]
    while waiting and len(found) < MOST_INNER:
        text, depth = waiting.pop(0)
        for part in read_line(text).parts:
            found.append(part)
            if depth < _DEEPEST:
                waiting += [(inner, depth + 1) for inner in _inner_texts(part)][:MOST_INNER]
    return tuple(found)


def _inner_texts(part: Part) -> Iterator[str]:
    yield from dict.fromkeys(text for text in texts_of_shells(part.words) if text)
    for one in part.redirects:
        if one.operator == "<<":
            yield one.text.partition("\n")[2]
        elif one.operator == "<<<":
            yield one.text[3:].strip(" '\"")


def _guessed(piece: str) -> tuple[Word, ...]:
    """Return the words of a piece of a line that can't be read, as well as they can be told."""
    try:
        return tuple(Word(text, text) for text in shlex.split(piece))
    except ValueError:  # a quote left open
        return tuple(Word(text, text) for text in piece.split())


def _asks(line: Line) -> tuple[str, ...]:
    """Say what in a line no pattern can vouch for."""
    found = (line.unreadable, *(f"there is {what} in it" for what in line.asks))
    return tuple(text for text in found if text)


def _is_all(rule: Rule) -> bool:
    return rule.pattern is None or rule.pattern.strip() in {"*", ":*"}


def _plain_text(words: Sequence[Word]) -> str:
    return " ".join(word.quoted for word in words)


def _exact(part: Part, mine: Sequence[Rule]) -> Rule | None:
    """Return the rule without a `*` in it that is this very part."""
    texts = {_plain_text(part.words)} | (set() if part.redirects else {part.raw.strip()})
    for rule in mine:
        pattern = (rule.pattern or "*").strip()
        if "*" not in pattern and not texts.isdisjoint({pattern, _requoted(pattern)}):
            return rule
    return None


def _fits_words(pattern: str, words: Sequence[Word]) -> bool:
    """Whether a pattern fits a command, both with their quotes as they are needed."""
    pattern = pattern.strip()
    return fits_text(pattern, _plain_text(words)) or fits_text(_requoted(pattern), _plain_text(words))


def _requoted(pattern: str) -> str:
    """Return a pattern with its quotes as they are needed: `-m "x y"` and `-m 'x y'` are the same."""
    if not re.search(r"['\"\\]", pattern):
        return pattern
    line = read_line(pattern)
    if len(line.parts) != 1 or line.asks or line.unreadable or line.parts[0].redirects or line.parts[0].assignments:
        return pattern
    return _plain_text(line.parts[0].words)


def _spellings(words: Sequence[Word]) -> Iterator[str]:
    """Yield a command in all the ways that a rule may have it: with and without quotes, its folder, capitals."""
    if not words:
        return
    first, rest = words[0].text, words[1:]
    names = dict.fromkeys((first, first.rpartition("/")[2], first.rpartition("/")[2].casefold()))
    for name in names:
        yield " ".join((name, *(word.text for word in rest)))
        yield " ".join((name, *(word.quoted for word in rest)))
    yield " ".join(word.raw for word in words)
