"""Finds @-mentions in what a person wrote: `@df`, `@df.column`, `@cell:7`, `@sales.csv`, `@"my file.csv"`, `@last_error`, `@plot`.

Pure text: what a mention means is looked up elsewhere, and one that means nothing stays text. An `@` counts where a word could
begin, and not in an address, a decorator, code between backticks, pandas' `query("x > @limit")`, or after a backslash. The
text itself is never changed. Read `mentions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "cell", "path", "last_error", "plot"]

SPECIAL: tuple[Literal["last_error"], Literal["plot"]] = ("last_error", "plot")
MOST = 20
"""Mentions of one text that are looked up."""

_BEFORE = r"(?:(?<=[\s(\[{\"'“‘«‹,;:—–…>*])|(?<![\s\S]))"
_AT = re.compile(
    _BEFORE + r"@(?:\"(?P<double>[^\"\n]{1,300})\"|'(?P<single>[^'\n]{1,300})'"
    r"|(?P<token>(?:~|\.{0,2}/|\.?[^\W_]|_)[^\s@\"'`<>|;,(){}\[\]!?”’»›]*)(?:\[(?:\"(?P<column>[^\"\n]+)\"|'(?P<column2>[^'\n]+)')\])?)"
)
_SERVER = re.compile(r"[^\s:@]+:[A-Za-z][\w+.-]*:\S")
_CELL = re.compile(r"cell:(?P<cell>[\w-]+)")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")
_PATH = re.compile(r"[./~\\]")
_COMPARED = re.compile(r"(?:[<=!|^~]|(?<=\S)[ \t]*>)[ \t]*\Z")

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]+?(?<!`)\1(?!`)")
_DECORATED = re.compile(r"^(?:[ \t]*@[\w.]+(?:\(.*\))?[ \t]*\n)+(?=[ \t]*(?:async[ \t]+def|def|class)\b)", re.MULTILINE)
_PANDAS = re.compile(r"\.(?:query|eval)\([^\n]*?(?:\)|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention: where it stands in the text, what it names and how that was written.

    `name` is a variable (with dots), a cell's number or id, or a path; `column` what stands in `["…"]` behind a variable.
    """

    start: int
    end: int
    kind: Kind
    name: str
    column: str = ""
    quoted: bool = False

    @property
    def shown(self) -> str:
        """The mention as a person would write it."""
        if self.kind == "cell":
            return f"@cell:{self.name}"
        name = f'"{self.name}"' if self.quoted else self.name
        return f"@{name}[{self.column!r}]" if self.column else f"@{name}"


def mentions(text: str) -> list[Mention]:
    """Return the mentions in `text`, each thing once, in their order, the first `MOST`."""
    if "@" not in text:
        return []
    code = [found.span() for shape in (_FENCE, _CODE, _DECORATED, _PANDAS) for found in shape.finditer(text)]
    found: dict[tuple[str, str, str], Mention] = {}
    for one in _all(text, code):
        found.setdefault((one.kind, one.name, one.column), one)
    return list(found.values())[:MOST]


def _all(text: str, code: Sequence[tuple[int, int]]) -> Iterator[Mention]:
    for found in _AT.finditer(text):
        start = found.start()
        if any(begin <= start < end for begin, end in code) or _COMPARED.search(
            text[text.rfind("\n", 0, start) + 1 : start]
        ):
            continue
        quoted = found["double"] or found["single"]
        if quoted:
            if quoted.strip():
                yield Mention(start, found.end(), "path", quoted, quoted=True)
        elif (one := _plain(found, start)) is not None:
            yield one


def _plain(found: re.Match[str], start: int) -> Mention | None:
    column = found["column"] or found["column2"] or ""
    token = found["token"]
    name = token if column else token.rstrip(".:…*")
    end = found.end() if column else start + 1 + len(name)
    if not name or _SERVER.match(token):
        return None
    if (cell := _CELL.fullmatch(name)) is not None and not column:
        return Mention(start, end, "cell", cell["cell"])
    for special in SPECIAL:
        if name == special and not column:
            return Mention(start, end, special, name)
    if _DOTTED.match(name):
        return Mention(start, end, "name", name, column)
    if column or not _PATH.search(name):
        return None
    return Mention(start, end, "path", name)


_TYPED = re.compile(_BEFORE + r"@(?P<part>\"[^\"\n]*|[^\s@\"'`<>|;,(){}\[\]!?”’»›]*)\Z")


def typed(text: str) -> str | None:
    """Return what of a mention stands right before the end of `text`, without its @; None where none is being written."""
    found = _TYPED.search(text)
    if found is None or _COMPARED.search(text[text.rfind("\n", 0, found.start()) + 1 : found.start()]):
        return None
    return found["part"]
