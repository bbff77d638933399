"""How a branch differs from the notebook's own settings: its tools, its model, words of its own in the system prompt.

Kept in the branch's first record, so that it goes on in the same way. Narrows and chooses, never widens what is allowed.
Must not know of runs. Read `Ways`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json

if TYPE_CHECKING:
    from nbagent.app.runtools import MakeTools
    from nbagent.core.ports import Kernel
    from nbagent.core.tools import Tool
    from nbagent.tools.ledger import Ledger
    from nbagent.tools.results import ResultStore
    from nbagent.tools.seen import Seen


@dataclass(frozen=True, slots=True)
class Ways:
    """Only `tools` (names, `*` may stand in them; () for all), another `model`, more words in the system prompt."""

    tools: tuple[str, ...] = ()
    model: str = ""
    system_append: str = ""

    def to_json(self) -> Json:
        """Return what is not as in the notebook."""
        found: Json = {"tools": list(self.tools), "model": self.model, "system_append": self.system_append}
        return {name: value for name, value in found.items() if value}

    @classmethod
    def of(cls, about: Json) -> Ways:
        """Read them from a session's first record; what is no such thing is left out."""
        found: Any = about.get("ways")
        if not isinstance(found, dict):
            return NO_WAYS
        tools = found.get("tools")
        names = tuple(t for t in tools if isinstance(t, str)) if isinstance(tools, list) else ()
        model, words = found.get("model"), found.get("system_append")
        return cls(names, model if isinstance(model, str) else "", words if isinstance(words, str) else "")

    def over(self, other: Ways) -> Ways:
        """Return these, with `other` where nothing is said here."""
        return Ways(self.tools or other.tools, self.model or other.model, self.system_append or other.system_append)

    def applied(self, settings: Settings, given: Json) -> Settings:
        """Return the settings of a run; a model that its cell gives counts before the branch's own."""
        if self.model and not given.get("model"):
            settings = replace(settings, model=self.model)
        if self.system_append:
            words = "\n\n".join(filter(None, (settings.system_append, self.system_append)))
            settings = replace(settings, system_append=words)
        return settings


NO_WAYS = Ways()


def tools_named(text: str) -> tuple[str, ...]:
    """Return the names in `a,b, c`."""
    return tuple(dict.fromkeys(name for name in text.replace(",", " ").split() if name))


def narrowed(make: MakeTools, names: Sequence[str]) -> MakeTools:
    """Return what makes only the tools of these names; it raises `ConfigError` for one that is not there."""
    if not names:
        return make

    def named(tools: list[Tool], below: bool) -> list[Tool]:
        known = [tool.name for tool in tools]
        for name in names:
            if not below and not any(fnmatchcase(one, name) for one in known):
                near = difflib.get_close_matches(name, known, 1, 0.5)
                hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
                raise ConfigError(f"There is no tool {name!r} to choose. {hint}")
        return [tool for tool in tools if any(fnmatchcase(tool.name, name) for name in names)]

    return sifted(make, named)


def sifted(make: MakeTools, sift: Callable[[list[Tool], bool], list[Tool]]) -> MakeTools:
    """Return what makes the tools that `sift` leaves of those of `make`; it is told whether they are for a subagent."""

    def made(
        results: ResultStore,
        seen: Seen | None = None,
        ledger: Ledger | None = None,
        on: Kernel | None = None,
        *,
        below: bool = False,
    ) -> list[Tool]:
        return sift(make(results, seen, ledger, on, below=below), below)

    return made
