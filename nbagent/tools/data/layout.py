"""How a text of records is laid out: what separates the fields, where the header is, what stands before and after the data.

Pure functions of text. Types and the call that reads it are `delimited.py`'s. Read `layout_of`.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbagent.tools.data.spelling import reading_of

_SEPARATORS = (",", ";", "\t", "|")
_TESTED = 200  # records by which a separator is judged
_JUDGED = 1_000
"""Columns from which it is judged how a file with more of them is laid out."""
_BEFORE = 40  # records before the header, at most
_TYPED = frozenset({"integer", "number", "date", "datetime", "time", "boolean"})
_TOTAL = re.compile(r"\s*(?:grand total|total|sum|summe|gesamt|source|quelle|note|notes|©|\(c\))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its fields, and the number of the line that it begins in, from 0."""

    fields: list[str]
    line: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How records are laid out. `sep` is "" for a single column, a blank where runs of blanks separate.

    `skip`: lines before the header; `extra`: lines below it that are none of the data (units); `footer`: lines at the end.
    `more` means that data have one field more than the header; `long` are records with more fields than there are columns.
    """

    sep: str
    quote: str
    escape: str
    columns: int
    header: list[str] | None
    skip: int
    extra: tuple[int, ...]
    records: list[Record]
    before: tuple[str, ...]
    more: bool
    long: tuple[Record, ...]
    fewer: int
    comment: str = ""


def records_of(text: str, sep: str, quote: str = '"', escape: str = "") -> Iterator[Record]:
    """Yield the records of a text, blank ones left out; ends where the text can't be read on."""
    if sep == " ":
        for number, line in enumerate(io.StringIO(text, newline=None)):
            if line.strip():
                yield Record(line.split(), number)
        return
    if not sep:
        for number, line in enumerate(io.StringIO(text, newline=None)):
            if line.strip():
                yield Record([line.rstrip("\n")], number)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sep, quotechar=quote, escapechar=escape or None)
    while True:
        line = reader.line_num
        try:
            fields = next(reader)
        except (StopIteration, csv.Error):
            return
        if fields and any(field.strip() for field in fields):
            yield Record(fields, line)


def layout_of(text: str, *, whole: bool) -> Layout | None:
    """Return the layout of a text, None where nothing in it looks like a table; without `whole` the text ends anywhere."""
    if not whole:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    quote, escape = _quoting(text)
    scored = [(*_score(text, sep, quote, escape), sep) for sep in _SEPARATORS]
    best = max(scored, key=lambda item: (round(item[0], 2), item[1]))
    if best[0] < 0.6:
        blank = _score(text, " ", quote, escape)
        best = (*blank, " ") if blank[0] >= 0.9 else best
    share, columns, sep = best
    if share < 0.5:
        sep, columns = "", 1
    records = list(records_of(text, sep, quote, escape))
    if not records:
        return None
    return _laid_out(records, sep, columns, quote, escape)


def _quoting(text: str) -> tuple[str, str]:
    sample = text[:65_536]
    single = len(re.findall(r"(?:^|[,;\t|])'[^'\n]*'(?=[,;\t|\r\n]|$)", sample, re.MULTILINE))
    double = len(re.findall(r'(?:^|[,;\t|])"', sample, re.MULTILINE))
    escape = "\\" if re.search(r'[^\\]\\"[^,;\t|\r\n]', sample) and '""' not in sample else ""
    return ("'", "") if single > double else ('"', escape)


def _score(text: str, sep: str, quote: str, escape: str) -> tuple[float, int]:
    """Return how far a separator gives records of one length, and that length."""
    records = list(itertools.islice(records_of(text[:262_144], sep, quote, escape), _TESTED))
    lengths = Counter(len(record.fields) for record in records)
    several = {length: count for length, count in lengths.items() if length > 1}
    if not several:
        return 0.0, 1
    columns, count = max(several.items(), key=lambda item: (item[1], item[0]))
    start = next(place for place, record in enumerate(records) if len(record.fields) == columns)
    inside = len(records) - min(start, _BEFORE)
    share = count / max(1, inside) * (1 - 0.5 * start / len(records))  # little before it: what stands there is no table
    header = records[start].fields
    named = all(field.strip() and not _is_number(field) for field in header[:_JUDGED]) and len(set(header)) == len(
        header
    )
    before = records[start - 1].fields if start else []
    kept = 0.1 if named else -0.1 if len(before) == 1 and start == 1 else 0.0
    return share + kept, columns


def _is_number(text: str) -> bool:
    return reading_of([text]).kind in {"integer", "number"}


def _laid_out(records: list[Record], sep: str, columns: int, quote: str, escape: str) -> Layout:
    comment = "#" if records[0].fields[0].lstrip().startswith("#") else ""
    start = _start(records, columns, comment)
    more = start > 0 and len(records[start - 1].fields) == columns - 1 > 1 and _names(records[start - 1].fields)
    start -= more
    body = records[start:]
    header = _header(body, columns)
    extra = _units(body, columns) if header is not None else ()
    data = [record for record in (body[1:] if header is not None else body) if record.line not in extra]
    return Layout(
        sep, quote, escape, columns, header, body[0].line, extra, data,
        before=tuple((sep or "").join(record.fields)[:80] for record in records[:start][:3]),
        more=more, long=tuple(record for record in data if len(record.fields) > columns)[:5],
        fewer=sum(len(record.fields) < columns for record in data), comment=comment,
    )  # fmt: skip


def _names(fields: Sequence[str]) -> bool:
    return all(field.strip() and not _is_number(field) for field in fields[:_JUDGED])


def _start(records: Sequence[Record], columns: int, comment: str) -> int:
    """Return which record the table begins with: what comes before are titles, comments, padded or not."""
    for place, record in enumerate(records[:_BEFORE]):
        near = records[place : place + 6]
        if comment and record.fields[0].lstrip().startswith(comment):
            continue
        filled = sum(bool(field.strip()) for field in record.fields)
        if len(record.fields) != columns or (columns > 2 and filled <= columns // 3 and _fuller(near[1:], filled)):
            continue
        if sum(len(other.fields) == columns for other in near) >= 0.6 * len(near):
            return place
    return 0


def _fuller(records: Sequence[Record], filled: int) -> bool:
    return any(sum(bool(field.strip()) for field in record.fields) > filled for record in records)


def _header(body: Sequence[Record], columns: int) -> list[str] | None:
    """Return the first record if it names the columns: it is of another kind than what stands below it."""
    first, rest = body[0].fields, [record.fields for record in body[1:500] if len(record.fields) == columns]
    if not rest:
        return first if _names(first) else None
    votes, columns = 0, min(columns, _JUDGED)
    for place, cell in enumerate(first[:columns]):
        below = [fields[place] for fields in rest]
        kind = reading_of(below[1:] or below).kind
        if kind in _TYPED and cell.strip():
            votes += 1 if reading_of([cell]).kind not in _TYPED or _is_year(cell, below) else -1
    if votes:
        return first if votes > 0 else None
    same = any(cell in {fields[place] for fields in rest} for place, cell in enumerate(first[:columns]) if cell.strip())
    return None if same or not all(cell.strip() for cell in first[1:]) else first


def _is_year(cell: str, below: Sequence[str]) -> bool:
    def year(text: str) -> bool:
        return text.strip().isdigit() and 1900 <= int(text.strip()[:6]) <= 2100

    return year(cell) and sum(map(year, below)) < len(below) * 0.5


def _units(body: Sequence[Record], columns: int) -> tuple[int, ...]:
    """Return the line below the header if it is no data: units or descriptions above columns of numbers."""
    rows = [record for record in body[1:300] if len(record.fields) == columns]
    if len(rows) < 3:
        return ()
    numbers = [
        place for place in range(min(columns, _JUDGED))
        if reading_of([record.fields[place] for record in rows[1:]]).kind in {"integer", "number"}
    ]  # fmt: skip
    said = [rows[0].fields[place].strip() for place in numbers]
    odd = [text for text in said if text and reading_of([text]).kind == "text"]
    return (rows[0].line,) if numbers and len(odd) >= max(1, len(numbers) * 0.6) else ()


def footer_of(tail: str, layout: Layout) -> int:
    """Return how many lines at the end of a text are none of the data: totals, sources, notes."""
    if layout.columns < 2:
        return 0
    records = list(records_of(tail, layout.sep, layout.quote, layout.escape))[1:]
    count = 0
    for record in reversed(records[-6:]):
        filled = sum(bool(field.strip()) for field in record.fields)
        short = len(record.fields) < layout.columns or (layout.columns > 2 and filled <= layout.columns // 3)
        if short or _TOTAL.match(record.fields[0]):
            count += 1
        else:
            break
    lines = tail.count("\n") + (not tail.endswith("\n"))
    return lines - records[-count].line if 0 < count < len(records) else 0
