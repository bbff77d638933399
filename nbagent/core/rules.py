"""Rules: `tool` or `tool(pattern)`, in our words or Claude Code's, and how a tool without a grammar of its own reads them.

What a pattern means depends on the tool: a path, a command, a name. A tool brings its `Grammar` along; `Plain` is that of
all others. This module must not know of modes or of who is asked. Read `Rule`, then `Grammar`, then `Plain`.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.core.ports import text_hash
from nbagent.core.rules_names import argument, speaks_of

if TYPE_CHECKING:
    from nbagent.core.tools import Tool

Action = Literal["allow", "ask", "deny"]
ACTIONS: tuple[Action, ...] = ("deny", "ask", "allow")

_RULE = re.compile(r"^\s*([A-Za-z0-9_*-]+)\s*(?:\((.*)\))?\s*$", re.DOTALL)
_NAMED = frozenset({"skill", "agent", "task"})
"""Tools whose calls begin with a name: `Skill(deploy *)`."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a rule was written.

    `scope` is session, option, user, project, local or managed; `file` its file as a person would write it; `base` the
    folder that a pattern like `/src/**` counts from ("" is the working folder).
    """

    scope: str = "session"
    file: str = ""
    base: str = ""

    def __str__(self) -> str:
        return self.file


SESSION = Source()


@dataclass(frozen=True, slots=True)
class Rule:
    """`tool` or `tool(pattern)`: the calls that it speaks of. Two rules are the same wherever they were written."""

    action: Action
    tool: str
    pattern: str | None = None
    source: Source = field(default=SESSION, compare=False)

    @classmethod
    def parse(cls, action: Action, text: str, source: Source = SESSION) -> Rule:
        """Read `tool` or `tool(pattern)`; raise `ConfigError` where it is neither."""
        found = _RULE.match(text)
        if not found or found[2] == "":
            raise ConfigError(
                f"{text!r} is not a rule. Write a tool's name, or name(pattern), e.g. write_file(data/*)."
            )
        return cls(action, found[1], found[2], source)

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    @property
    def told(self) -> str:
        """The rule and the file that it is from, for people."""
        return f"{self} in {self.source}" if self.source.file else str(self)

    def speaks_of(self, name: str) -> bool:
        """Whether the rule is about the tool `name`, whatever its pattern says."""
        return speaks_of(self.tool, name)

    def is_exact(self, subject: str) -> bool:
        """Whether the pattern names this one subject, literally or by its hash."""
        return self.pattern is not None and self.pattern in {subject, f"sha256:{text_hash(subject)}"}


@dataclass(frozen=True, slots=True)
class Spoken:
    """What rules say of a call: `rules` are those that speak (() where the grammar itself asks), `about` which part of it."""

    rules: tuple[Rule, ...]
    about: str = ""

    @property
    def told(self) -> str:
        """The rules and the part, for people."""
        names = " and ".join(rule.told for rule in self.rules)
        return f"{names}{f' ({self.about})' if self.about else ''}" if names else self.about


class Grammar(Protocol):
    """How the rules for a tool are read. All methods are pure and quick; `given` is validated input."""

    def says(self, action: Action, rules: Sequence[Rule], tool: Tool, given: Json) -> Spoken | None:
        """Return what those of `rules` with this action say of the call, None where they say nothing.

        An "allow" must hold for all of the call; a "deny" or an "ask" is said where it holds for any part of it.
        """
        ...

    def opens(self, rule: Rule, tool: Tool, given: Json) -> bool:
        """Whether an allow rule names what is protected here so plainly that it was meant."""
        ...

    def offers(self, tool: Tool, given: Json) -> tuple[str, ...]:
        """Return rules that "Allow from now on" could keep, the narrowest first."""
        ...

    def notes(self, rules: Sequence[Rule], tool: Tool, given: Json) -> tuple[str, ...]:
        """Return a line for each part of the call: what allows it, or why nothing does."""
        ...


class Plain:
    """The grammar of tools without one: one exact text for tools that run code, else the subject with `*`, `?` and `[…]`."""

    def says(self, action: Action, rules: Sequence[Rule], tool: Tool, given: Json) -> Spoken | None:
        """Return the first rule of this action that fits."""
        for rule in rules:
            if rule.action == action and rule.speaks_of(tool.name) and self.fits(rule, tool, given):
                return Spoken((rule,))
        return None

    def opens(self, rule: Rule, tool: Tool, given: Json) -> bool:
        """Whether the rule names this one subject; code that is protected is never opened by a rule."""
        return not tool.exact and rule.is_exact(tool.subject(given))

    def offers(self, tool: Tool, given: Json) -> tuple[str, ...]:
        """Return a rule for this subject (by its hash where it can't be written as a pattern) and one for the tool."""
        subject = tool.subject(given)
        if not subject:
            return (tool.name,)
        fits = not tool.exact and len(subject) <= 200 and "\n" not in subject and not set(subject) & set("*?[")
        return (f"{tool.name}({subject if fits else f'sha256:{text_hash(subject)}'})", tool.name)

    def notes(self, rules: Sequence[Rule], tool: Tool, given: Json) -> tuple[str, ...]:
        """Return nothing: the call has no parts."""
        del rules, tool, given
        return ()

    def fits(self, rule: Rule, tool: Tool, given: Json) -> bool:
        """Whether the pattern of a rule for this tool fits the call."""
        pattern, subject = rule.pattern, tool.subject(given)
        if pattern is None:
            return True
        if pattern.startswith("sha256:"):
            return pattern[7:] == text_hash(subject)
        if pattern.startswith("domain:") and "url" in given:
            return fits_domain(pattern, given)
        if rule.action != "allow" and fits_argument(pattern, given):
            return True
        if tool.name in _NAMED:
            return _fits_name(pattern, subject, given, wide=rule.action != "allow")
        if tool.exact:
            return pattern == subject or (rule.action != "allow" and _stands_in(pattern, subject))
        return fnmatch.fnmatchcase(posixpath.normpath(subject), posixpath.normpath(pattern))


PLAIN = Plain()


def grammar_of(tool: Tool) -> Grammar:
    """Return how rules for `tool` are read."""
    return tool.grammar or PLAIN


def fits_argument(pattern: str, given: Json) -> bool:
    """Whether `param:value` names an argument of the call that has this value (with `*`)."""
    name, colon, wanted = pattern.partition(":")
    value = argument(given, name.strip()) if colon else None
    if value is None:
        return False
    said = str(value).lower() if isinstance(value, bool) else str(value)
    return fits_text(wanted.strip(), said)


def fits_domain(pattern: str, given: Json) -> bool:
    """Whether `domain:example.com` names the host of the call's URL; `*.example.com` names those below it."""
    wanted = pattern.strip().removeprefix("domain:").strip().casefold().rstrip(".")
    try:
        host = (urlsplit(str(given.get("url", ""))).hostname or "").casefold().rstrip(".")
    except ValueError:
        return False
    return bool(host) and (wanted in {"*", host} or (wanted[:2] == "*." and host.endswith(wanted[1:])))


def fits_text(pattern: str, text: str) -> bool:
    """Whether `pattern` fits the whole text: `*` is anything, nothing else has a meaning.

    A `*` after a space ends a word: `git *` fits `git` and `git log`, not `gitk`; `:*` at the end means the same.
    """
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2]} *"
    if pattern.endswith(" *") and text == pattern[:-2].rstrip():
        return True
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(first) or len(text) < len(first) + len(rest[-1]) or not text.endswith(rest[-1]):
        return False
    at, end = len(first), len(text) - len(rest[-1])
    for piece in rest[:-1]:
        if (found := text.find(piece, at, end)) < 0:
            return False
        at = found + len(piece)
    return True


def _fits_name(pattern: str, subject: str, given: Json, *, wide: bool) -> bool:
    """Match `name` and `name arguments`; what denies or asks reaches every call of that name."""
    named = argument(given, "subagent_type")
    texts = {subject} if named is None else {subject, str(named)}
    if wide:
        texts |= {text.split(" ", 1)[0] for text in texts}
    if pattern.strip() == "*":
        return True
    return any(fits_text(pattern.strip().removeprefix("/"), text) for text in texts)


def _stands_in(pattern: str, text: str) -> bool:
    """Whether `pattern` fits the whole text or a part of it: what asks or denies may reach further than what allows."""
    parts = [text, *re.split(r"[;&|\n()`]+", text)]
    return any(fnmatch.fnmatchcase(part.strip(), pattern) for part in parts)
