"""What sheets an Excel file has, and how one begins: titles above the header, headers of two rows, hidden sheets, footers.

openpyxl is imported when such a file is looked at; without it the names of the sheets are told. What a file claims of its
own size is checked before anything is unpacked. Read `excel`.
"""

from __future__ import annotations

import importlib.util
import re
import warnings
import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO, Self

from nbagent.core.errors import ToolError
from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.opening import member_piece, size_text
from nbagent.tools.data.records import columns_of
from nbagent.tools.data.telling import call_text, columns_text, rows_text

_READ = 2_000  # rows that are looked at
_WIDEST = 200  # columns
_TEXTS = 64_000_000  # bytes of the texts that all sheets share, which are read as a whole
_MERGED = 16_000_000  # bytes of a sheet in which merged cells are looked for
_UNPACKED = 16_000_000  # bytes of a sheet that are unpacked for its rows
_TITLES = 30  # rows above a header
_HEADERS = 3
_NAMED = 40  # sheets
_TRIED = 3  # sheets that are looked into for one that holds something
_TOTAL = re.compile(r"\s*(?:grand total|total|sum|summe|gesamt|source|quelle|notes?|anmerkung)\b", re.IGNORECASE)
_PARTS = ("xl/workbook.xml", "xl/styles.xml", "xl/sharedStrings.xml")


def excel(file: BinaryIO, archive: zipfile.ZipFile, asked: Asked, table: str | None) -> list[str]:
    """Return the sheets of the file and the beginning of one. Raises `ToolError` for a broken or a dangerous file."""
    _check(archive)
    if importlib.util.find_spec("openpyxl") is None:
        names = re.findall(
            rb'<sheet [^>]*name="([^"]*)"', member_piece(archive, archive.getinfo("xl/workbook.xml")).data
        )
        named = ", ".join(repr(name.decode("utf-8", "replace")) for name in names[:40])
        return [
            f"Excel file, sheets {named}",
            f"{size_text(asked.size)} on disk",
            "To look into it the package openpyxl must be installed",
        ]
    from openpyxl import load_workbook  # noqa: PLC0415  (only for such files)

    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that openpyxl does not know
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            try:
                return _told(book, archive, asked, table)
            finally:
                book.close()
    except (
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        SyntaxError,
        OSError,
        zipfile.BadZipFile,
        RecursionError,
    ) as error:
        raise ToolError(f"it is an Excel file, but can't be read: {type(error).__name__}: {str(error)[:200]}") from None


def _check(archive: zipfile.ZipFile) -> None:
    """Raise `ToolError` for a file that would be too much to unpack, or whose XML declares entities: Excel's never does."""
    known = {one.filename: one for one in archive.infolist()}
    for name in _PARTS:
        if name in known and known[name].file_size > _TEXTS:
            raise ToolError(
                f"{name} in it claims {size_text(known[name].file_size)}: too much to be looked into. Load it in a cell if you trust it"
            )
    for name, one in known.items():
        if name in _PARTS or name.startswith("xl/worksheets/sheet"):
            begins = member_piece(archive, one, 4096).data.replace(b"\0", b"")
            if b"<!DOCTYPE" in begins or b"<!ENTITY" in begins:
                raise ToolError(f"{name} in it declares entities, which Excel never does: it was not opened")
            if (
                name not in _PARTS and b"<dimension" not in begins and one.file_size > _TEXTS
            ):  # openpyxl would look for its size to the end
                raise ToolError(
                    f"{name} in it does not say how large it is, and claims {size_text(one.file_size)}: too much to be looked into. "
                    "Load the first rows in a cell (pd.read_excel with nrows) if you trust it"
                )


def _told(book: Any, archive: zipfile.ZipFile, asked: Asked, table: str | None) -> list[str]:
    sheets = [sheet for sheet in book.worksheets if hasattr(sheet, "iter_rows")]
    names = [sheet.title for sheet in sheets]
    if table is not None and table not in names:
        raise ToolError(f"no sheet {table!r}. There are: {', '.join(map(repr, names[:40]))}")
    if not sheets:
        return ["Excel file without a sheet of cells", f"{size_text(asked.size)} on disk"]
    shown = _shown(sheets, archive, asked, table)
    lines = [f"Excel file, {len(sheets):,} sheet{'s' * (len(sheets) != 1)}", f"{size_text(asked.size)} on disk"]
    lines += [f"  {one.title!r}{_hidden(one)}  {_size(one)}" for one in sheets[:_NAMED]]
    lines += [f"  … and {len(sheets) - _NAMED:,} more sheets"] if len(sheets) > _NAMED else []
    more = ["below is the largest; table= shows another sheet"] if len(sheets) > 1 and table is None else []
    return [*lines, *more, "", *shown.lines()]


def _shown(sheets: Sequence[Any], archive: zipfile.ZipFile, asked: Asked, table: str | None) -> _Sheet:
    """Return the sheet that was asked for, else the largest that is visible: the first is often a cover or a note."""
    visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"] or sheets
    wanted = [one for one in sheets if one.title == table] if table is not None else sorted(visible, key=_cells)
    found = [_Sheet(wanted[0], archive, asked, first=wanted[0] is sheets[0])]
    for sheet in wanted[1:_TRIED]:
        if found[-1].rows:
            break
        found.append(_Sheet(sheet, archive, asked, first=sheet is sheets[0]))
    return next((one for one in found if one.rows), found[0])


def _cells(sheet: Any) -> int:
    """Return a sheet's size for sorting, the largest first, as it says itself: what is formatted but empty counts too."""
    sizes = (sheet.max_row, sheet.max_column)
    return -sizes[0] * sizes[1] if all(type(size) is int for size in sizes) else 0


def _hidden(sheet: Any) -> str:
    return "" if sheet.sheet_state == "visible" else " (hidden)"


def _size(sheet: Any) -> str:
    if not sheet.max_row or not sheet.max_column:
        return "size not said"
    return f"{sheet.max_row:,} rows x {sheet.max_column:,} columns, as it says"


class _Sheet:
    """One sheet: its first rows, and where in them the table is."""

    def __init__(self, sheet: Any, archive: zipfile.ZipFile, asked: Asked, *, first: bool) -> None:
        self.sheet, self.asked, self.first = sheet, asked, first
        self.merged = _merged(archive, sheet)
        known = sheet.max_row if type(sheet.max_row) is int and sheet.max_row > 1 else None
        if known is None:
            sheet.reset_dimensions()
        rows, ended = _rows(sheet)
        while rows and not any(_filled(value) for value in rows[-1]):
            rows.pop()
        self.whole = ended and len(rows) < _READ
        used = [place for row in rows for place, value in enumerate(row) if _filled(value)]
        self.left, self.right = (min(used), max(used) + 1) if used else (0, 0)
        self.rows = [[*row, *[None] * (self.right - len(row))][self.left : self.right] for row in rows]
        self.skip, self.headers = _header(self.rows, self.right - self.left, self._spans)
        self.footer = _footer(self.rows[self.skip + self.headers :], self.right - self.left) if self.whole else 0

    def _spans(self, row: int) -> bool:
        """Whether cells of a row (from 0) are merged across columns."""
        return any(top <= row <= bottom and left < right for left, top, right, bottom in self.merged)

    def lines(self) -> list[str]:
        """Return what is said of the sheet."""
        if not self.rows:
            return [f"sheet {self.sheet.title!r}: nothing in it"]
        names = self._names()
        data = self.rows[self.skip + self.headers : len(self.rows) - self.footer]
        count = f"{len(data):,} rows" if self.whole else f"more than {len(data):,} rows"
        titles = [value for row in self.rows[: self.skip] for value in row if _filled(value)][:3]
        above = f"{self.skip} rows above the header" + (
            f": {' / '.join(repr(str(t)[:60]) for t in titles)}" if titles else ""
        )
        return [
            f"sheet {self.sheet.title!r}: {count} of data",
            *([above] if self.skip else []),
            *(
                [f"header of {self.headers} rows (in rows {self.skip + 1} to {self.skip + self.headers})"]
                if self.headers > 1
                else []
            ),
            *([f"header in row {self.skip + 1}"] if self.headers == 1 else []),
            *(["no header row"] if not self.headers else []),
            *([f"{len(self.merged):,} merged areas"] if self.merged else []),
            *([f"the last {self.footer} rows are no data (a total, a note)"] if self.footer else []),
            *columns_text(columns_of(names, data)),
            *rows_text(list(map(repr, names)), data, self.asked.rows),
            "",
            "To read it:",
            "df = " + call_text("pd.read_excel", self.asked.path, self._options(data)),
        ]

    def _names(self) -> list[str]:
        header = self.rows[self.skip : self.skip + self.headers]
        if not header:
            return [str(place) for place in range(self.right - self.left)]
        levels = [_filled_on(row) if place < len(header) - 1 else row for place, row in enumerate(header)]
        return [" / ".join(str(value) for value in column if _filled(value)) for column in zip(*levels, strict=True)]

    def _options(self, data: Sequence[Sequence[Any]]) -> list[tuple[str, Any]]:
        options: list[tuple[str, Any]] = [] if self.first else [("sheet_name", self.sheet.title)]
        options += [("skiprows", self.skip)] if self.skip else []
        options += [("header", list(range(self.headers)))] if self.headers > 1 else []
        options += [("header", None)] if not self.headers else []
        if self.left:
            options.append(("usecols", f"{_letters(self.left)}:{_letters(self.right - 1)}"))
        options += [("skipfooter", self.footer)] if self.footer else []
        codes = [
            name
            for place, name in enumerate(self._names())
            if self.headers == 1 and _codes([row[place] for row in data])
        ]
        return [*options, ("dtype", dict.fromkeys(codes, str))] if codes else options


class _Enough(Exception):
    """So much of a sheet was unpacked as may be."""


class _Counted:
    """A sheet's stream that ends after so many bytes: one cell may hold hundreds of millions."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, _UNPACKED

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raises `_Enough`."""
        if self._left <= 0:
            raise _Enough
        data: bytes = self._stream.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


def _rows(sheet: Any) -> tuple[list[list[Any]], bool]:
    """Return the first rows of a sheet, and whether nothing kept from reading on. Raises `ToolError` where not even one could be."""
    source, rows = sheet._get_source, list[list[Any]]()  # noqa: SLF001  (openpyxl has no other way in)
    sheet._get_source = lambda: _Counted(source())  # noqa: SLF001
    try:
        for row in sheet.iter_rows(max_row=_READ, max_col=_WIDEST, values_only=True):
            rows.append(list(row))
    except _Enough:
        if not rows:
            raise ToolError(
                f"the first row of sheet {sheet.title!r} is larger than {size_text(_UNPACKED)}: it was not looked into"
            ) from None
        return rows, False
    finally:
        sheet._get_source = source  # noqa: SLF001
    return rows, True


def _filled(value: Any) -> bool:
    return value is not None and (type(value) is not str or bool(value.strip()))


def _filled_on(row: Sequence[Any]) -> list[Any]:
    """Return a header's row with each name put on over the empty cells after it, as a merged cell shows it."""
    found: list[Any] = []
    for value in row:
        found.append(value if _filled(value) or not found else found[-1])
    return found


def _codes(values: Sequence[Any]) -> bool:
    texts = [value for value in values if type(value) is str]
    return (
        bool(texts)
        and all(text.strip().isdigit() for text in texts)
        and any(len(text) > 1 and text[0] == "0" for text in texts)
    )


def _letters(place: int) -> str:
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(65 + rest) + text
    return text


def _header(rows: Sequence[Sequence[Any]], width: int, spans: Any) -> tuple[int, int]:
    """Return how many rows stand above the header, and how many rows the header has."""
    start = 0
    for place, row in enumerate(rows[:_TITLES]):
        filled = sum(map(_filled, row))
        fuller = any(sum(map(_filled, other)) > filled for other in rows[place + 1 : place + 6])
        if not filled or (
            width > 2
            and filled <= max(1, width // 3)
            and fuller
            and not (spans(place) and _above_header(rows, place, width))
        ):
            start = place + 1
        else:
            break
    if start >= len(rows):
        return 0, 0
    names = 0
    while names < _HEADERS and start + names < len(rows) and _is_names(rows, start + names):
        names += 1
    if not names:
        return start, 0
    if (
        start + names < len(rows) and names > 1
    ):  # rows of texts only: data too, unless the first is spread over the second
        spread = [
            place for place in range(start, start + names - 1) if spans(place) or not all(map(_filled, rows[place]))
        ]
        names = 1 + len(spread) if spread else 1
    elif names > 1:
        names = 1
    return start, names


def _above_header(rows: Sequence[Sequence[Any]], place: int, width: int) -> bool:
    """Whether a merged row is the upper one of a header: more than one name, and names below it."""
    below = rows[place + 1] if place + 1 < len(rows) else ()
    return (
        sum(map(_filled, rows[place])) > 1
        and all(type(v) is str for v in below if _filled(v))
        and sum(map(_filled, below)) > width // 2
    )


def _is_names(rows: Sequence[Sequence[Any]], place: int) -> bool:
    row = [value for value in rows[place] if _filled(value)]
    if not any(type(value) is str for value in row):
        return False
    years = [value for value in row if type(value) is int and 1900 <= value <= 2100]
    below = rows[place + 1] if place + 1 < len(rows) else ()
    same = sum(type(value) is int and 1900 <= value <= 2100 for value in below)
    return all(type(value) is str for value in row if value not in years) and (not years or same < len(years))


def _footer(data: Sequence[Sequence[Any]], width: int) -> int:
    count = 0
    for row in reversed(data[-6:]):
        filled = sum(map(_filled, row))
        first = next((value for value in row if _filled(value)), None)
        if (width > 2 and filled <= width // 3) or (type(first) is str and _TOTAL.match(first)):
            count += 1
        else:
            break
    return count if count < len(data) else 0


def _merged(archive: zipfile.ZipFile, sheet: Any) -> list[tuple[int, int, int, int]]:
    """Return the merged areas of a sheet (left, top, right, bottom, from 0), of what of it may be unpacked."""
    from openpyxl.utils import range_boundaries  # noqa: PLC0415

    name = str(getattr(sheet, "_worksheet_path", "")).lstrip("/")
    if name not in archive.namelist() or archive.getinfo(name).file_size > _MERGED:
        return []
    data = member_piece(archive, archive.getinfo(name), _MERGED).data
    found: list[tuple[int, int, int, int]] = []
    for area in re.findall(rb'<mergeCell ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"', data)[:5_000]:
        left, top, right, bottom = range_boundaries(area.decode())
        found.append((int(left or 1) - 1, int(top or 1) - 1, int(right or 1) - 1, int(bottom or 1) - 1))
    return found
