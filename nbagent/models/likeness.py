"""Whether a request is the recorded one: by what counts, not by what is drawn or measured anew in each run.

Ids of cells, calls and sessions, the seconds that something took and the state of the project around it (git, files, packages) differ from
run to run; each has a pattern (`VOLATILE`).
An id may stand for another one, always the same. All else must be equal, and `departure` says where it is not. Must not
know of files. Read `Likeness.departure`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.models.streamed import changed

VOLATILE: dict[str, str] = {
    "project": r"(?<=The state of the project when this session began)[^\n]*(?:\n- [^\n]*)*",
    "session": r"(?<![0-9A-Za-z])\d{8}-\d{6}-[0-9a-f]{4}(?![0-9A-Za-z])",
    "call": r"toolu_[0-9A-Za-z_]+",
    "cell": r"(?<![0-9A-Za-z])(?=\d*[a-f])[0-9a-f]{8}(?![0-9A-Za-z])"
    r"|(?<=[Cc]ell )\d{8}(?![0-9A-Za-z])|(?<=after )\d{8}(?![0-9A-Za-z])|(?<=before )\d{8}(?![0-9A-Za-z])"
    r"|(?<=cell=\")\d{8}(?=\")",
    "secret": r"⟦secret:[^⟧]{1,80}⟧",
    "seconds": r"(?<=in )\d+(?:\.\d+)? (?:ms|s)\b",
}
"""Name of what differs from run to run → its pattern. A recording's header has them; one may be added there by hand."""

MEASURED = frozenset({"seconds", "project"})
"""Those that may have any value at all; the others are ids, each of which stands for one other."""

_SHOWN = 60
_AROUND = 20
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Departure:
    """Where a request is not the recorded one: `path` as in `messages[4].content[0].text`, and both values, shortened."""

    path: str
    recorded: str
    now: str

    def __str__(self) -> str:
        return f"{self.path}: recorded {self.recorded}, now {self.now}"


def pattern_of(volatile: Mapping[str, str]) -> re.Pattern[str]:
    """Return the one pattern of all names in `volatile`, each as a group; raises `ConfigError` for one that is none."""
    for name, text in volatile.items():
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(
                f"The recording's header: volatile.{name} is not a regular expression: {error}."
            ) from None
        if not name.isidentifier():
            raise ConfigError(
                f"The recording's header: {name!r} can't be the name of something volatile: letters only."
            )
    return re.compile("|".join(f"(?P<{name}>{text})" for name, text in volatile.items()) or r"(?!)")


def canonical(value: Any) -> str:
    """Return a JSON value as text that is the same for the same value: sorted keys, ASCII, no spaces."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def key_of(asked: Json, pattern: re.Pattern[str]) -> str:
    """Return the key of a request (16 hex digits): the hash of its canonical text without what is volatile."""
    plain = changed(asked, lambda text: pattern.sub(lambda found: f"<{found.lastgroup}>", text))
    return hashlib.sha256(canonical(plain).encode("ascii")).hexdigest()[:16]


@dataclass(slots=True)
class Likeness:
    """What stands for what, by now: `ids` from the recording's to those of this run. One for each replay."""

    pattern: re.Pattern[str]
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def departure(self, recorded: Any, now: Any) -> Departure | None:
        """Return the first place where `now` is not what was `recorded`, None where there is none: then ids are learned."""
        learned = dict(self.ids)
        found = next(self._differences("", recorded, now, learned), None)
        if found is None:
            self.ids = learned
        return found

    def now(self, text: str) -> str:
        """Return a recorded text with the ids of this run."""
        if not any(old in text for old, new in self.ids.items() if old != new):
            return text
        return self.pattern.sub(lambda found: self.ids.get(found[0], found[0]), text)

    def _differences(self, path: str, recorded: Any, now: Any, ids: dict[str, str]) -> Iterator[Departure]:
        if isinstance(recorded, dict) and isinstance(now, dict):
            for name in [*recorded, *(name for name in now if name not in recorded)]:
                inner = f"{path}.{name}" if path else str(name)
                yield from self._differences(inner, recorded.get(name, _MISSING), now.get(name, _MISSING), ids)
        elif isinstance(recorded, list) and isinstance(now, list):
            for index, (one, other) in enumerate(zip_longest(recorded, now, fillvalue=_MISSING)):
                yield from self._differences(f"{path}[{index}]", one, other, ids)
        elif isinstance(recorded, str) and isinstance(now, str):
            if not self._same_text(recorded, now, ids):
                yield Departure(path, *_cut(recorded, now))
        elif type(recorded) is not type(now) or recorded != now:
            yield Departure(path, _short(recorded), _short(now))

    def _same_text(self, recorded: str, now: str, ids: dict[str, str]) -> bool:
        if recorded == now and not ids:
            return True
        ours, theirs = list(self.pattern.finditer(recorded)), list(self.pattern.finditer(now))
        if _between(recorded, ours) != _between(now, theirs):
            return False
        for one, other in zip(ours, theirs, strict=True):
            if one.lastgroup != other.lastgroup:
                return False
            if one.lastgroup in MEASURED:
                continue
            if one[0] not in ids and other[0] in ids.values():
                return False
            if ids.setdefault(one[0], other[0]) != other[0]:
                return False
        return True


def _between(text: str, found: list[re.Match[str]]) -> list[str]:
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def _cut(recorded: str, now: str) -> tuple[str, str]:
    """Return both texts from shortly before the place where they part."""
    same = next((n for n, (one, other) in enumerate(zip(recorded, now, strict=False)) if one != other), None)
    at = min(len(recorded), len(now)) if same is None else same
    start = max(0, at - _AROUND)
    mark = "…" if start else ""
    return _short(mark + recorded[start:]), _short(mark + now[start:])


def _short(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = value if isinstance(value, str) else canonical(value)
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f"'{text}'".replace("\n", "⏎") if isinstance(value, str) else text
