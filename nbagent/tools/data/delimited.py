"""What a text of records is (CSV and its kin, fixed width), and the pandas call that reads it right.

The layout is `layout.py`'s; here are types, signs, words for missing, and the call. Read `told`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from nbagent.tools.data.encodings import Encoding, decoded
from nbagent.tools.data.layout import Layout, footer_of, layout_of
from nbagent.tools.data.opening import Piece, inferred, size_text
from nbagent.tools.data.spelling import READ_AS_MISSING, Reading, is_nothing, reading_of
from nbagent.tools.data.telling import ColumnSaid, call_text, columns_text, rows_text

_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "|", " ": "runs of blanks", "": "nothing (one column)"}
_TYPES = 1_000  # records by which types are told
_SMALL = 20_000_000  # bytes up to which Python's slower parser may be asked to leave out a footer
_LINE = 200_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for: the path as the call spells it, how many rows, the file's size on disk."""

    path: str
    rows: int
    size: int


def told(piece: Piece, encoding: Encoding, asked: Asked) -> list[str] | None:
    """Return what a text of records is, line by line; None where it is no table at all."""
    text = decoded(piece, encoding).removeprefix("\ufeff")
    if len(text) > _LINE and "\n" not in text[:_LINE] and "\r" not in text[:_LINE]:
        return None
    fixed = _fixed(text, whole=piece.whole)
    layout = layout_of(text, whole=piece.whole)
    if fixed is not None and (layout is None or layout.sep in {"", " "}) and _better_fixed(fixed, layout):
        return _told_fixed(fixed, piece, encoding, asked)
    if layout is None:
        return None
    return _Told(layout, text, piece, encoding, asked).lines()


class _Told:
    """One delimited text: its columns are read once, then everything is said of them."""

    def __init__(self, layout: Layout, text: str, piece: Piece, encoding: Encoding, asked: Asked) -> None:
        self.layout, self.text, self.piece, self.encoding, self.asked = layout, text, piece, encoding, asked
        tail = (
            piece.tail.decode(encoding.name, "replace") if piece.tail and not encoding.name.startswith("utf-16") else ""
        )
        self.footer = footer_of(tail, layout)
        records = layout.records[:_TYPES]
        if self.footer and piece.whole:
            last = text.count("\n") + (not text.endswith("\n")) - self.footer
            records = [record for record in records if record.line < last]
        self.rows = [record.fields for record in records]
        self.labels = self._labels()
        columns = [[row[place] for row in self.rows if place < len(row)] for place in range(len(self.labels))]
        comma = layout.sep in {";", "\t", "|"}
        self.texts = columns
        self.read = [reading_of(column, comma_is_decimal=comma) for column in columns]

    def _labels(self) -> list[str]:
        width = self.layout.columns
        if self.layout.header is None:
            return [str(place) for place in range(width)]
        header = [*self.layout.header, *[""] * (width - len(self.layout.header))]
        if self.layout.more and any(row[width - 1].strip() for row in self.rows if len(row) >= width):
            return ["(row names)", *header[: width - 1]]
        return header

    def lines(self) -> list[str]:
        """Return all that is said."""
        layout = self.layout
        numbered = sum(1 for _ in self.rows)
        names = [repr(label) if label else "(no name)" for label in self.labels]
        return [
            f"text, {_NAMES[layout.sep]} between fields, {self.encoding.said}"
            + (f", packed by {self.piece.packed}" if self.piece.packed else ""),
            f"{size_text(self.asked.size)} on disk; {self._count(numbered)}",
            *self._header_said(),
            *self._odd(),
            *columns_text([ColumnSaid(label, *self._type(place)) for place, label in enumerate(self.labels)]),
            *rows_text(names, self.rows, self.asked.rows),
            "",
            "To read it:",
            *self._call(),
        ]

    def _count(self, looked: int) -> str:
        if self.piece.whole:
            last = len(self.layout.records) - (0 if not self.footer else min(self.footer, len(self.layout.records)))
            return f"{max(last, 0):,} rows" if not self.footer else f"about {max(last, 0):,} rows"
        used = max(1, len(self.text.encode(self.encoding.name, "replace")))
        about = len(self.layout.records) * self.piece.size / used
        digits = max(0, len(str(int(about))) - 3)
        return f"about {round(about, -digits):,.0f} rows (an estimate from the first {size_text(used)}; types from the first {looked:,} rows)"

    def _header_said(self) -> list[str]:
        layout = self.layout
        lines = []
        if layout.skip:
            before = ": " + " / ".join(repr(text.strip()) for text in layout.before) if layout.before else ""
            lines.append(f"{layout.skip} {'line' if layout.skip == 1 else 'lines'} before the header{before}")
        lines.append("no header line" if layout.header is None else f"header in line {layout.skip + 1}")
        if layout.extra:
            lines.append(f"line {layout.extra[0] + 1} is no data (units?)")
        if self.footer:
            lines.append(
                f"the last {self.footer} {'line is' if self.footer == 1 else 'lines are'} no data (a total, a note)"
            )
        return lines

    def _odd(self) -> list[str]:
        layout, found = self.layout, []
        if layout.long:
            named = ", ".join(str(record.line + 1) for record in layout.long)
            found.append(
                f"! lines with more than {layout.columns} fields: {named}; the call below leaves them out: look at them first"
            )
        if layout.fewer and not self.footer:
            found.append(
                f"! {layout.fewer:,} lines with fewer than {layout.columns} fields: what they lack is read as missing"
            )
        twice = [label for label, n in Counter(self.labels).items() if n > 1 and label]
        if twice:
            found.append(f"! column names that occur twice: {', '.join(map(repr, twice[:5]))} (pandas numbers them)")
        unsure = [label for label, read in zip(self.labels, self.read, strict=True) if read.unsure]
        if unsure:
            found.append(
                f"! can be read in two ways (day or month first? decimals or thousands?): {', '.join(map(repr, unsure[:5]))}"
            )
        if self.encoding.guess:
            found.append("! the encoding is a guess: look at letters that are not English")
        return found

    def _type(self, place: int) -> tuple[str, str, tuple[str, ...]]:
        read, texts = self.read[place], self.texts[place]
        lost = sum(not text.strip() or is_nothing(text) for text in texts)
        kind = "codes (leading zeros)" if read.codes else read.kind
        said = [f"{lost:,} of {len(texts):,} missing"] if lost else []
        if read.decimal == "," or read.thousands:
            said.append(f"decimal {read.decimal!r}" + (f", thousands {read.thousands!r}" if read.thousands else ""))
        said += (
            [f"as {read.form}"] if read.form else ["in more than one form"] if read.kind in {"date", "datetime"} else []
        )
        said += ["with signs of currency or percent, which pandas leaves as text"] if read.money else []
        said += [f"but {', '.join(map(repr, read.strays[:3]))}"] if read.strays else []
        examples = list(dict.fromkeys(text.strip() for text in texts if text.strip()))[:3]
        return kind, ", ".join(said), tuple(examples)

    # ── the call ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self) -> list[str]:
        options = self._options()
        if self.piece.member:
            return [
                "import zipfile",
                f"with zipfile.ZipFile({self.asked.path!r}) as z, z.open({self.piece.member!r}) as f:",
                "    df = " + call_text("pd.read_csv", "§", options).replace('"§"', "f"),
            ]
        return ["df = " + call_text("pd.read_csv", self.asked.path, options)]

    def _options(self) -> list[tuple[str, Any]]:
        layout, found = self.layout, list[tuple[str, Any]]()
        if layout.sep == " ":
            found.append(("sep", r"\s+"))
        elif layout.sep not in {",", ""}:
            found.append(("sep", layout.sep))
        elif not layout.sep and any("," in row[0] for row in self.rows):
            found.append(("sep", "\x07"))
        found += [("encoding", self.encoding.name)] if self.encoding.name != "utf-8" else []
        found += [("quotechar", layout.quote)] if layout.quote != '"' else []
        found += [("escapechar", layout.escape)] if layout.escape else []
        found += self._lines() + self._signs() + self._columns()
        if self.footer and self.piece.size <= _SMALL:
            found += [("skipfooter", self.footer), ("engine", "python")]
        if layout.long:
            found.append(("on_bad_lines", "skip"))
        if not inferred(self.piece.packed, self.asked.path) and not self.piece.member:
            found.append(("compression", self.piece.packed))
        return found

    def _lines(self) -> list[tuple[str, Any]]:
        layout, found = self.layout, list[tuple[str, Any]]()
        if layout.extra:
            found.append(("skiprows", [*range(layout.skip), *layout.extra]))
        elif layout.skip:
            found.append(("skiprows", layout.skip))
        if layout.header is None:
            found.append(("header", None))
        if layout.more and self.labels[0] != "(row names)":
            found.append(("index_col", False))
        elif layout.header is not None and not self.labels[0].strip() and self.read[0].kind == "integer":
            found.append(("index_col", 0))
        return found

    def _signs(self) -> list[tuple[str, Any]]:
        numbers = [read for read in self.read if read.kind in {"integer", "number"} and not read.money]
        decimals = Counter(read.decimal for read in numbers if read.kind == "number")
        comma = decimals[","] > decimals["."] and self.layout.sep != ","
        thousands = Counter(read.thousands for read in numbers if read.thousands and (read.decimal == ",") == comma)
        found: list[tuple[str, Any]] = [("decimal", ",")] if comma else []
        return [*found, ("thousands", thousands.most_common(1)[0][0])] if thousands else found

    def _columns(self) -> list[tuple[str, Any]]:
        names: list[Any] = list(self.labels) if self.layout.header is not None else list(range(len(self.labels)))
        unique = {name for name, n in Counter(names).items() if n == 1 and name != ""}
        pairs = [(name, read) for name, read in zip(names, self.read, strict=True) if name in unique]
        codes = {name: str for name, read in pairs if read.codes}
        found: list[tuple[str, Any]] = [("dtype", codes)] if codes else []
        words = self._words()
        found += [("na_values", words)] if words else []
        dates = [(name, read) for name, read in pairs if _parsed(read)]
        if dates:
            found.append(("parse_dates", [name for name, _ in dates]))
            forms = {name: read.form for name, read in dates if not read.form.startswith("%Y-%m-%d")}
            same = set(forms.values())
            if forms:
                one = len(same) == 1 and len(forms) == len(dates)
                found.append(("date_format", next(iter(same)) if one else forms))
        return found

    def _words(self) -> list[str]:
        """Return the words that stand for missing in columns of numbers and dates, and that pandas does not know."""
        typed = [texts for texts, read in zip(self.texts, self.read, strict=True) if read.kind not in {"text", "empty"}]
        words = Counter(
            text
            for texts in typed
            for text in texts
            if text.strip() and is_nothing(text) and text not in READ_AS_MISSING
        )
        return [word for word, _ in words.most_common(8)]


def _parsed(read: Reading) -> bool:
    """Whether pandas is to read a column as dates: all of one form, which it knows."""
    return (
        read.kind in {"date", "datetime"}
        and bool(read.form)
        and not read.strays
        and len(set(re.findall("%z", read.form))) < 2
    )


# ── fixed width ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A text in columns of fixed width: where each begins and ends, the header, the rows."""

    spans: tuple[tuple[int, int], ...]
    header: list[str] | None
    rows: list[list[str]]
    count: int


def _fixed(text: str, *, whole: bool) -> _Fixed | None:
    """Return a text as columns that are aligned by blanks, None where they are not."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    lines = [line for line in (lines if whole else lines[:-1]) if line.strip()]
    if len(lines) < 3 or any("\t" in line for line in lines[:50]):
        return None
    sample = lines[:200]
    width = max(map(len, sample))
    if width > 4_000:
        return None
    used = [any(len(line) > place and line[place] != " " for line in sample) for place in range(width)]
    spans: list[tuple[int, int]] = []
    for place, filled in enumerate(used):
        if filled and (place == 0 or not used[place - 1]):
            spans.append((place, place + 1))
        elif filled:
            spans[-1] = (spans[-1][0], place + 1)
    if len(spans) < 2:
        return None
    named = [span for span in spans if sample[0][span[0] : span[1]].strip()]
    if 2 <= len(named) < len(spans) and named[0] == spans[0]:  # a part without a name belongs to the one before it
        ends = [*(start for start, _ in named[1:]), width + 1]
        spans = [
            (start, max(b for a, b in spans if start <= a < end)) for (start, _), end in zip(named, ends, strict=True)
        ]
    rows = [[line[a:b].strip() for a, b in spans] for line in lines]
    layout = layout_of("\n".join("\t".join(row) for row in rows[:200]), whole=True)
    header = rows[0] if layout is not None and layout.header is not None and not layout.skip else None
    return _Fixed(tuple(spans), header, rows[1:] if header else rows, len(lines))


def _better_fixed(fixed: _Fixed, layout: Layout | None) -> bool:
    """Whether blanks inside of values, or values that are not there, make fixed columns the better reading."""
    if layout is None or not layout.sep:
        return len(fixed.spans) >= 2
    return len(fixed.spans) >= layout.columns and any(
        " " in cell or not cell for row in fixed.rows[:200] for cell in row
    )


def _told_fixed(fixed: _Fixed, piece: Piece, encoding: Encoding, asked: Asked) -> list[str]:
    labels = fixed.header or [str(place) for place in range(len(fixed.spans))]
    read = [reading_of([row[place] for row in fixed.rows[:_TYPES]]) for place in range(len(labels))]
    columns = [
        ColumnSaid(
            label,
            "codes (leading zeros)" if read[place].codes else read[place].kind,
            "",
            tuple(dict.fromkeys(row[place] for row in fixed.rows[:3])),
        )
        for place, label in enumerate(labels)
    ]
    names: list[Any] = list(labels) if fixed.header else list(range(len(labels)))
    codes = {name: str for name, one in zip(names, read, strict=True) if one.codes}
    options: list[tuple[str, Any]] = [("colspecs", list(fixed.spans))]
    options += [("header", None)] if fixed.header is None else []
    options += [("encoding", encoding.name)] if encoding.name != "utf-8" else []
    options += [("dtype", codes)] if codes else []
    options += [] if inferred(piece.packed, asked.path) else [("compression", piece.packed)]
    about = (
        f"{len(fixed.rows):,} rows"
        if piece.whole
        else f"about {len(fixed.rows) * piece.size / max(1, len(piece.data)):,.0f} rows (an estimate)"
    )
    return [
        f"text in columns of fixed width, {encoding.said}",
        f"{size_text(asked.size)} on disk; {about}",
        "no header line" if fixed.header is None else "header in line 1",
        *columns_text(columns),
        *rows_text(labels, fixed.rows, asked.rows),
        "",
        "To read it:",
        "df = " + call_text("pd.read_fwf", asked.path, options),
    ]
