"""The head of a Markdown file: YAML between two lines of `---`, as skills, commands, agents and rules have it.

People write this YAML by hand, and Claude Code is forgiving: a value with a colon or a star in it is taken as text.
Nothing here raises for what is in a file; what is wrong becomes a sentence. Values keep to JSON's kinds: no dates, no
anchors, no tags. Must not know what a field means. Read `parse`, then `Fields`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbagent.core.messages import Json

_HEAD_LIMIT = 64 * 1024
_LINE = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+(\S.*)$")
_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0", ""})


@dataclass(frozen=True, slots=True)
class Front:
    """A file's fields and the text below them; `problem` is a sentence where the head can't be read."""

    fields: Mapping[str, Any]
    body: str
    problem: str = ""


def parse(text: str) -> Front:
    """Split `text` (plain line ends) into its head and its body; a text without a head is all body."""
    head, body = _split(text)
    if head is None:
        cut = text.lstrip("\ufeff").startswith("---\n") and _LINE.match(text.split("\n", 2)[1]) is not None
        return Front({}, text, "its head begins with --- and has no second ---, so it is read as text" if cut else "")
    if len(head) > _HEAD_LIMIT:
        return Front({}, body, f"its head has {len(head):,} characters, more than {_HEAD_LIMIT:,}: it is not read")
    values, problem = _loaded(head)
    if problem and (repaired := _quoted(head)) != head:
        again, still = _loaded(repaired)
        values, problem = (again, "") if not still else (values, problem)
    if problem:
        return Front({}, body, problem)
    if not isinstance(values, dict):
        kind = "" if values is None else "its head is not a table of fields like `name: value`"
        return Front({}, body, kind)
    return Front({str(key): value for key, value in _whole(values).items()}, body)


def _whole(value: Any) -> Any:
    """Return a value with the halves of characters, as JSON writes them, put together, or replaced where one is alone."""
    if isinstance(value, str):
        if value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def _split(text: str) -> tuple[str | None, str]:
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in {"---", "..."}:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    return None, text


def _loaded(head: str) -> tuple[Any, str]:
    import yaml  # noqa: PLC0415  (only where there is a head to read)

    class Loader(yaml.SafeLoader):
        """YAML 1.2's plain kinds only: `on` is text, 2026-01-01 is text, and a name never stands for another part."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (filled below)

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("* refers to another part, which is not possible here: put the value in quotes")
            return super().compose_node(parent, index)

    for tag, pattern, first in _KINDS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", pattern, list(first))
    try:
        return yaml.load(head, Loader), ""  # noqa: S506  (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 2}: " if mark else ""
        return None, f"its head is not YAML: {where}{error.problem or error.context or 'unreadable'}"
    except yaml.YAMLError as error:
        return None, f"its head is not YAML: {str(error).splitlines()[0]}"
    except (RecursionError, ValueError, OverflowError, TypeError):  # TypeError: a key that is a list
        return None, "its head is not YAML: it is nested too deeply, or a value in it can't be read"


_KINDS = (
    ("bool", re.compile(r"\A(?:true|True|TRUE|false|False|FALSE)\Z"), "tTfF"),
    ("null", re.compile(r"\A(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]),
    ("int", re.compile(r"\A[-+]?(?:0|[1-9][0-9]{0,17})\Z"), "-+0123456789"),
    (
        "float",
        re.compile(r"\A[-+]?(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]{1,3})\Z"),
        "-+.0123456789",
    ),
)


def _quoted(head: str) -> str:
    """Return `head` with the values of simple lines in quotes, where they are not: `description: Use it: now`."""
    lines = head.split("\n")
    for number, line in enumerate(lines):
        found = _LINE.match(line)
        if not found or found[2][0] in "\"'|>":
            continue
        value = found[2].rstrip()
        if _is_flow(value):
            continue
        lines[number] = f"{found[1]}: {json.dumps(value, ensure_ascii=False)}"
    return "\n".join(lines)


def _is_flow(value: str) -> bool:
    """Whether a value is one list or table in brackets that YAML reads by itself."""
    return value[0] + value[-1] in {"[]", "{}"} and not _loaded(f"x: {value}")[1]


@dataclass(slots=True)
class Fields:
    """Reads the fields of a head by kind; what does not fit is left out and named in `problems`."""

    values: Mapping[str, Any]
    known: Sequence[str]
    problems: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        for name in self.values:
            if name not in self.known and (near := difflib.get_close_matches(name, self.known, 1, 0.85)):
                self.problems.append(f"it has no field {name!r}; {near[0]!r} is meant?")

    def text(self, name: str) -> str:
        """Return a text in one piece, "" where there is none."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
            return f"[{', '.join(map(str, value))}]"  # argument-hint: [file]
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return str(value).strip()
        return self._wrong(name, value, "a text", "")

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return yes or no, as people write them."""
        value = self.values.get(name)
        if value is None:
            return default
        word = str(value).strip().lower()
        if word in _YES or word in _NO:
            return word in _YES
        return self._wrong(name, value, "true or false", default)

    def number(self, name: str) -> int | None:
        """Return a whole number above 0, None where there is none."""
        value = self.values.get(name)
        if value is None:
            return None
        digits = str(value).strip()
        if digits.isascii() and digits.isdigit() and int(digits[:9]) > 0 and len(digits) < 9:
            return int(digits)
        return self._wrong(name, value, "a whole number above 0", None)

    def choice(self, name: str, choices: Sequence[str], default: str = "") -> str:
        """Return one of `choices`."""
        value = self.text(name)
        if not value or value in choices:
            return value or default
        return self._wrong(name, value, f"one of {', '.join(choices)}", default)

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return a list, or a text whose parts are split by commas and spaces outside of brackets; None: not there."""
        return self._several(name, ", \t\n")

    def patterns(self, name: str) -> tuple[str, ...]:
        """Return a list, or a text whose parts are split by commas outside of brackets."""
        return self._several(name, ",\n") or ()

    def table(self, name: str) -> Json:
        """Return a table, {} where there is none."""
        value = self.values.get(name)
        if value is None:
            return {}
        if isinstance(value, dict):
            return {str(key): item for key, item in value.items()}
        return self._wrong(name, value, "a table", dict[str, Any]())

    def _several(self, name: str, separators: str) -> tuple[str, ...] | None:
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, list):
            if all(isinstance(part, str | int | float) for part in value):
                return tuple(str(part).strip() for part in value if str(part).strip())
            return self._wrong(name, value, "a list of texts", ())
        if isinstance(value, str | int | float):
            return tuple(pieces(str(value), separators))
        return self._wrong(name, value, "a list of texts", ())

    def _wrong(self, name: str, value: Any, expected: str, instead: Any) -> Any:
        self.problems.append(f"{name} = {_short(value)} is not {expected}; it is left out")
        return instead


def pieces(text: str, separators: str) -> list[str]:
    """Split `text` at `separators` that stand outside of brackets: `Bash(git add *), Read` has two pieces."""
    found, depth, current = [""], 0, 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char in separators and depth <= 0:
            found.append("")
            current += 1
            depth = 0
        else:
            found[current] += char
    return [piece.strip() for piece in found if piece.strip()]


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}…"
