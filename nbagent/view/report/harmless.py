"""Markdown of others made harmless for a file that any program may draw: no raw HTML, nothing that loads, nothing hidden.

What may hold code is found by the parser that the page uses, so that `<b>` in code stays as it is and nowhere else. Must
not know what a report is. Read `harmless`, then `from_html`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from nbagent.core.shown import visible_plain
from nbagent.view.report.prose import without_looks
from nbagent.view.text import plain_output

if TYPE_CHECKING:
    from markdown_it.token import Token

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_TICKS = re.compile(r"`+")
_PASSES = 6
_WIDEST = 200
"""Columns and rows that one cell of a table may span."""
_ADDRESS = re.compile(r"(?:https?://|mailto:|#)|[^\s:&\\<>`]*\Z", re.IGNORECASE)
_LIVE = re.compile(
    r"(?P<picture>!\[[^\]\[]*\]\((?:data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]+|[^\s:&\\<>()`/][^\s:&\\<>()`]*)\))"
    r"|(?P<image>!\[)|\](?P<leads>[(:])(?=\s*(?P<address>[^\s)]{0,2000}))|<(?!(?:https?://|mailto:)[^\s<>`]*>)",
    re.IGNORECASE,
)
"""What acts or loads in Markdown outside of code: pictures, links to elsewhere, tags."""
_SPECIAL = re.compile(r"[\\`*\[\]|$~]|(?<!\w)_|_(?!\w)")


def harmless(text: str, *, pictures: bool = False) -> str:
    """Return Markdown that says the same and does nothing: tags as text, pictures as links, hidden characters as codes.

    `pictures`: those that are in the text as data, or lie beside the file, stay.
    """
    text = plain_output(text.replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(_PASSES):  # what is left after a tag is gone may begin a block
        before, text = text, _once(text, pictures=pictures)
        if text == before:
            return text
    return fenced(text)


def _once(text: str, *, pictures: bool) -> str:
    lines = text.split("\n")
    made: list[str] = []
    for token, start, end in _regions(text, len(lines)):
        part = "\n".join(lines[start:end])
        if token is None or token.type == "inline":
            made.append(_inline(part, pictures=pictures))
        elif token.type == "table_open":
            made += [_row(line, pictures=pictures) for line in lines[start:end]]
        elif token.level == 0:
            made.append(fenced(token.content.removesuffix("\n"), re.sub(r"[^\w+-]", "", token.info.split(" ")[0])[:30]))
        else:  # in a list or a quotation, which other programs may end elsewhere
            made.append(_TAG.sub("< ", part))
    return "\n".join(made)


def _regions(text: str, length: int) -> Iterator[tuple[Token | None, int, int]]:
    """Yield the lines of a text piece by piece, with what they are: code, a table, words, or nothing special."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    at = 0
    for token in parser.parse(text):
        if token.type not in {"fence", "code_block", "inline", "table_open"} or token.map is None or token.map[0] < at:
            continue
        start, end = token.map
        if start > at:
            yield None, at, start
        yield token, start, end
        at = end
    if at < length:
        yield None, at, length


def _row(line: str, *, pictures: bool) -> str:
    """Make a row of a table harmless: no code goes on from one cell to the next."""
    return "|".join(_inline(cell, pictures=pictures).replace("\n", " ") for cell in line.split("|"))


def _inline(text: str, *, pictures: bool) -> str:
    """Make a paragraph harmless; what stands in backticks stays."""
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(text)]
    starts: dict[int, list[int]] = {}
    for start, end in runs:
        starts.setdefault(end - start, []).append(start)
    made, at = list[str](), 0
    for start, end in runs:
        if start < at:
            continue
        escaped = len(text[at:start]) - len(text[at:start].rstrip("\\"))
        size = end - start - escaped % 2
        same = starts.get(size, [])
        place = bisect_left(same, end)
        if size and place < len(same):
            opens, closes = end - size, same[place] + size
            code = text[opens:closes]
            made += [_words(text[at:opens], pictures=pictures), code if _whole(code, text) else _TAG.sub("< ", code)]
            at = closes
    return "".join([*made, _words(text[at:], pictures=pictures)])


def _whole(code: str, text: str) -> bool:
    """Whether each program reads `code` as such: a formula, a cell of a table or a line that begins with a tag might end it."""
    return "$" not in text and "|" not in code and "\n" not in code


def _words(text: str, *, pictures: bool) -> str:
    def still(found: re.Match[str]) -> str:
        if found["picture"]:
            return found[0] if pictures else f"[image: {found[0][2:]}" if "data:" not in found[0] else "[image]"
        if found["image"]:
            return "[image: "
        if found["leads"]:
            return found[0] if _ADDRESS.match(found["address"]) else f"&#93;{found['leads']}"
        return "&lt;"

    return _LIVE.sub(still, without_looks(text))


def fenced(text: str, language: str = "text") -> str:
    """Return text as a block of code, in a fence that nothing in it ends."""
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


def literal(text: str) -> str:
    """Return a line of text as Markdown that shows just it."""
    flat = " ".join(visible_plain(text, spaces=False).split())
    return _SPECIAL.sub(r"\\\g<0>", flat.replace("&", "&amp;").replace("<", "&lt;"))


# ── HTML of outputs ──────────────────────────────────────────────────────────────────────────────────────────────────


def from_html(html: str) -> str:
    """Return what HTML says as Markdown: its tables as tables, one line of words as words, all else as a block of text."""
    read = _Read()
    read.feed(html)
    read.close()
    read.end_words()
    return "\n\n".join(part.markdown() if isinstance(part, _Rows) else _said(part) for part in read.parts)


def _said(text: str) -> str:
    return fenced(visible_plain(text, spaces=False)) if "\n" in text else literal(text)


class _Rows:
    """The rows of one table as they are read; the first `head` of them are headings."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.head = 0
        self._plain = set[int]()  # rows that have a cell which is no heading
        self._below: dict[int, int] = {}  # how many more rows a cell above reaches down, by column

    def row(self) -> None:
        self.rows.append([])

    def cell(self, text: str, across: int, down: int, *, heads: bool) -> None:
        if not self.rows:
            self.row()
        row = self.rows[-1]
        if not heads:
            self._plain.add(len(self.rows) - 1)
        while self._below.get(len(row), 0) > 0:
            self._below[len(row)] -= 1
            row.append("")
        for place in range(across):
            self._below[len(row)] = down - 1
            row.append(text if heads or not place else "")

    def heads(self) -> None:
        self.head = len(self.rows)

    def markdown(self) -> str:
        head = self.head or (1 if self.rows and self.rows[0] and 0 not in self._plain else 0)
        width = max(map(len, self.rows), default=0)
        filled = [[*row, *[""] * (width - len(row))] for row in self.rows]
        columns = zip(*filled[:head], strict=True) if head else [()] * width
        names = [literal(" / ".join(dict.fromkeys(filter(None, column)))) for column in columns]
        rows = [list(map(literal, row)) for row, read in zip(filled[head:], self.rows[head:], strict=True) if read]
        return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * width, *rows)) if width else ""


class _Read(HTMLParser):
    """Reads HTML into tables and the words between them. A table in a table is read as words of its cell."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str | _Rows] = []
        self._words: list[str] = []
        self._deep = 0
        self._in_head = False
        self._cell: tuple[int, int, bool] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell."""
        self._deep += tag == "table"
        if self._deep != 1:
            self._break(tag)
        elif tag == "table":
            self.end_words()
            self.parts.append(_Rows())
        elif tag == "thead":
            self._in_head = True
        elif tag == "tr":
            self._end_cell()
            self._rows().row()
        elif tag in {"td", "th"}:
            self._end_cell()
            spans = {name: int(value) for name, value in attrs if value and value.isascii() and value.isdigit()}
            across, down = (min(max(spans.get(name, 1), 1), _WIDEST) for name in ("colspan", "rowspan"))
            self._cell = (across, down, self._in_head or tag == "th")
        else:
            self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        """End a table, its head or a cell."""
        if self._deep == 1 and tag in {"td", "th", "tr", "table", "thead", "caption"}:
            if tag == "caption":
                self._caption()
            self._end_cell()
            if tag == "thead":
                self._in_head = False
                self._rows().heads()
        else:
            self._break(tag)
        self._deep = max(0, self._deep - (tag == "table"))

    def handle_data(self, data: str) -> None:
        """Take words."""
        self._words.append(data)

    def end_words(self) -> None:
        """Put by the words since the last table."""
        if self._deep == 1:
            self._end_cell()
        lines = [line.rstrip() for line in "".join(self._words).split("\n")]
        self._words.clear()
        if text := "\n".join(line for line in lines if line.strip()):
            self.parts.append(text.strip() if "\n" not in text else text)

    def _rows(self) -> _Rows:
        last = self.parts[-1]
        assert isinstance(last, _Rows)
        return last

    def _caption(self) -> None:
        if text := " ".join("".join(self._words).split()):
            self.parts.insert(-1, text)
        self._words.clear()

    def _end_cell(self) -> None:
        text = " ".join("".join(self._words).split())
        self._words.clear()
        if self._cell is not None:
            across, down, heads = self._cell
            self._rows().cell(text, across, down, heads=heads)
            self._cell = None

    def _break(self, tag: str) -> None:
        if tag in {"br", "p", "div", "li", "tr", "pre", "dt", "dd", "h3", "h4", "h5", "h6", "table"}:
            self._words.append("\n")
