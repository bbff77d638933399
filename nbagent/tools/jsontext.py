"""Changes JSON text in place: one member of an object is put in or taken out, and no other byte is touched.

The text is known to be JSON. `Style` is how it is written, so that what is put in looks like what is there. It must not
know what the JSON means. Read `put`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # the scanner of the standard library, with positions
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_scan = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Style:
    """How a file writes JSON: indent (None: all on one line), what separates, line ends, escapes, order of keys."""

    indent: str | None
    comma: str
    colon: str
    newline: str
    ascii: bool
    sorted: bool
    lines: bool

    def dump(self, value: Any, margin: str) -> str:
        """Return `value` as JSON that stands on a line with the indent `margin`."""
        separators = (",", self.colon) if self.indent is not None else (self.comma, self.colon)
        text = json.dumps(
            value, indent=self.indent, separators=separators, ensure_ascii=self.ascii, sort_keys=self.sorted
        )
        return text.replace("\n", self.newline + margin)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its key, where that begins, and where its value begins and ends."""

    key: str
    at: int
    start: int
    end: int


def put(text: str, key: str, value: Any, style: Style, margin: str) -> str:
    """Return the text of a JSON object with one member set, all others as they are."""
    members, end = members_of(text, 0)
    for member in reversed(members):
        if member.key == key:
            own = margin_of(text, member.at) if "\n" in text[: member.at] else margin
            return text[: member.start] + style.dump(value, own) + text[member.end :]
    made = f"{style.dump(key, '')}{style.colon}"
    if not members:
        return _only(made, value, style, margin)
    apart = "\n" in text[: members[0].at]  # each member on a line of its own
    own = margin_of(text, members[0].at) if apart else margin
    gap = f",{style.newline}{own}" if apart else style.comma if style.indent is None else ", "
    if len(members) > 1:
        gap = text[members[0].end : members[1].at]
    made += style.dump(value, own)
    keys = [member.key for member in members]
    after = next((m for m in members if m.key > key), None) if keys == sorted(keys) else None
    if after is not None:
        return text[: after.at] + made + gap + text[after.at :]
    return text[: members[-1].end] + gap + made + text[members[-1].end : end]


def _only(made: str, value: Any, style: Style, margin: str) -> str:
    """Return an object with one member; `margin` is the indent of that."""
    if style.indent is None:
        return f"{{{made}{style.dump(value, margin)}}}"
    line = style.newline + margin
    return f"{{{line}{made}{style.dump(value, margin)}{line.removesuffix(style.indent)}}}"


def without(text: str, key: str) -> str:
    """Return the text of a JSON object without one of its members."""
    members, _ = members_of(text, 0)
    place = next((n for n, member in enumerate(members) if member.key == key), None)
    if place is None:
        return text
    if len(members) == 1:
        return "{}"
    if place + 1 < len(members):
        return text[: members[place].at] + text[members[place + 1].at :]
    return text[: members[place - 1].end] + text[members[place].end :]


def members_of(text: str, start: int) -> tuple[list[Member], int]:
    """Return the members of the JSON object at `start`, which is known to be one, and where it ends."""
    found: list[Member] = []
    place = skip(text, start + 1)
    while text[place] != "}":
        key, after = scanstring(text, place + 1, True)
        value = skip(text, skip(text, after) + 1)
        _, end = _scan(text, value)
        found.append(Member(key, place, value, end))
        place = skip(text, end)
        if text[place] == ",":
            place = skip(text, place + 1)
    return found, place + 1


def items_of(text: str, start: int) -> list[tuple[int, int]]:
    """Return where the items of the JSON list at `start` begin and end."""
    found: list[tuple[int, int]] = []
    place = skip(text, start + 1)
    while text[place] != "]":
        _, end = _scan(text, place)
        found.append((place, end))
        place = skip(text, end)
        if text[place] == ",":
            place = skip(text, place + 1)
    return found


def skip(text: str, place: int) -> int:
    """Return the next place that holds no space."""
    found = _SPACE.match(text, place)
    return found.end() if found else place


def margin_of(text: str, place: int) -> str:
    """Return the indent of the line on which `place` stands, if nothing but spaces is before it."""
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return before if not before.strip() else before[: len(before) - len(before.lstrip())]
