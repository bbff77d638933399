"""The tool `read_data_head`: what a data file is and how it begins, without loading it.

A file is told by its first bytes, not by its name; what belongs to one format is in a module of its own. All of it works
on bounded pieces, on another thread. Read `head_tool`, then `head_of`.
"""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import BinaryIO

from nbagent.core.errors import ToolError
from nbagent.core.messages import clean, text_block
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools import paths
from nbagent.tools.data import delimited, heads_arrow, heads_excel, heads_json, heads_numpy, heads_sqlite
from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.encodings import encoding_of
from nbagent.tools.data.opening import Piece, member_piece, members_of, piece_of, size_text, zip_of
from nbagent.tools.data.telling import MOST_ROWS
from nbagent.tools.pathrules import PathRules
from nbagent.tools.paths import Place
from nbagent.tools.secrets import mask
from nbagent.tools.workspace_root import Workspace

_OTHERS: tuple[tuple[bytes, str], ...] = (
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Excel file (.xls), or one with a password: pd.read_excel reads the first with the package xlrd",
    ),
    (b"\x89HDF\r\n\x1a\n", "HDF5: pd.read_hdf (package tables), h5py or xarray.open_dataset read it"),
    (b"CDF\x01", "netCDF: xarray.open_dataset reads it"),
    (b"CDF\x02", "netCDF: xarray.open_dataset reads it"),
    (b"ORC", "ORC: pd.read_orc reads it (package pyarrow)"),
    (b"Obj\x01", "Avro: the package fastavro reads it"),
    (b"$FL2", "SPSS: pd.read_spss reads it (package pyreadstat)"),
    (b"$FL3", "SPSS: pd.read_spss reads it (package pyreadstat)"),
    (b"<stata_dta>", "Stata: pd.read_stata reads it"),
    (b"RDX2", "R data: the package pyreadr reads it"),
    (b"RDX3", "R data: the package pyreadr reads it"),
    (b"\x00\x00\x27\x0a", "a shapefile: geopandas.read_file reads it, with the files of the same name beside it"),
    (b"%PDF", "a PDF: read_file shows it"),
    (b"\x89PNG", "an image: read_file shows it"),
    (b"\xff\xd8\xff", "an image: read_file shows it"),
    (b"MATLAB", "MATLAB data: scipy.io.loadmat reads it"),
)
_SAS = b"\0" * 12 + b"\xc2\xea\x81\x60"


def head_tool(workspace: Workspace) -> Tool:
    """Return the tool that tells how a data file begins and how it is read right."""

    @tool(
        kind=lambda given: workspace.kind(given["path"], writes=False),
        subject=lambda given: workspace.subject(given["path"], writes=False),
        grammar=PathRules(workspace.root),
    )
    async def read_data_head(_call: Call, path: str, rows: int = 10, table: str | None = None) -> Result:
        """Tell a data file's format, encoding, header, types, size and first rows, and the pandas call that reads it right.

        CSV, fixed width, Excel, Parquet (file or folder), Arrow, JSON, SQLite, .npy; also compressed. The file is not loaded.

        Args:
            path: the file, relative to the working folder.
            rows: how many rows to show.
            table: a sheet, a table, or a file in an archive.
        """
        place = workspace.approved(path, writes=False)
        if workspace.denied(str(place.path)):
            raise ToolError(f"a rule forbids to read {place.shown}")
        lines = await asyncio.to_thread(_told, workspace, place, max(0, min(rows, MOST_ROWS)), table)
        text = mask(clean("\n".join([f"{place.shown}: {lines[0]}", *lines[1:]])))
        return Result((text_block(text),), f"{place.shown}: {lines[0]}"[:120])

    return read_data_head


def _told(workspace: Workspace, place: Place, rows: int, table: str | None) -> list[str]:
    try:
        if place.path.is_dir():
            return heads_arrow.folder(place.path, place.shown, rows, lambda path: _may_read(workspace, path))
        with paths.opened(place.path) as file:
            return head_of(file, place.path, Asked(place.shown, rows, os.fstat(file.fileno()).st_size), table)
    except ToolError as error:
        named = str(error).startswith((f"{place.shown}:", f"{place.shown} ", f"{place.path.name} "))
        raise ToolError(str(error) if named else f"{place.shown}: {error}") from None
    except OSError as error:
        raise ToolError(f"{place.shown}: {(error.strerror or 'it can not be read').lower()}") from None


def _may_read(workspace: Workspace, path: Path) -> bool:
    """Whether a file below a folder that may be read may be read too: it is no link that leads out, and no secret."""
    try:
        place = paths.locate(workspace.root, str(path))
    except ToolError:
        return False
    return place.path == path and not place.secret and not workspace.denied(str(path))


def head_of(file: BinaryIO, path: Path, asked: Asked, table: str | None = None) -> list[str]:
    """Return what a file is, line by line. Raises `ToolError` where it can't be said, with the reason."""
    start = file.read(64)
    file.seek(0)
    if not start:
        return ["the file is empty"]
    if start.startswith(b"PAR1"):
        return heads_arrow.parquet(file, asked)
    if start.startswith((b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")):
        return heads_arrow.arrow(file, start, asked)
    if start.startswith(b"\x93NUMPY"):
        return heads_numpy.npy(file, asked)
    if start.startswith(b"SQLite format 3\0"):
        return heads_sqlite.sqlite(file, path, asked, table)
    if start.startswith(b"PK\x03\x04"):
        return _zipped(file, asked, table)
    known = _other(start)
    if known:
        return [known, f"{size_text(asked.size)} on disk"]
    return _text(piece_of(file), asked)


def _other(start: bytes) -> str:
    if start[:2] in {b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"}:
        return "a pickle. It is not looked into: to load one runs whatever code it holds. Only from somebody you trust: pd.read_pickle"
    if start[8:12] == b"DUCK":
        return "a DuckDB database: duckdb.connect(path, read_only=True) reads it"
    if start.startswith(_SAS):
        return "SAS: pd.read_sas reads it"
    return next((said for mark, said in _OTHERS if start.startswith(mark)), "")


def _text(piece: Piece, asked: Asked) -> list[str]:
    inside = piece.data[:64]
    if (
        piece.packed
        and inside.startswith((b"PAR1", b"ARROW1", b"\x93NUMPY", b"SQLite format 3", b"PK\x03\x04", b"ustar"))
    ) or b"ustar" in piece.data[256:264]:
        what = "a tar archive" if b"ustar" in piece.data[256:264] else "a file that is none of text"
        return [
            f"packed by {piece.packed}, inside is {what}: unpack it first"
            if piece.packed
            else f"{what}: unpack it first"
        ]
    encoding = encoding_of(piece)
    if encoding is None:
        return [
            f"binary, of no kind that is known here; it begins with {piece.data[:16].hex(' ')}",
            f"{size_text(asked.size)} on disk",
        ]
    if not piece.data.strip():
        return ["nothing but blanks and line ends"]
    begins = piece.data.lstrip(b"\xef\xbb\xbf \t\r\n\0\xff\xfe")[:1]
    if begins in {b"{", b"["} and (said := heads_json.told(piece, encoding, asked)) is not None:
        return said
    if begins == b"<":
        return [
            "XML or HTML: pd.read_xml or pd.read_html (package lxml) read tables in it; read_file shows it",
            f"{size_text(asked.size)} on disk",
        ]
    said = delimited.told(piece, encoding, asked)
    if said is None:
        return [
            f"text, {encoding.said}, of which the first line has more than 200,000 characters: no table that can be told",
            f"{size_text(asked.size)} on disk",
        ]
    return said


def _zipped(file: BinaryIO, asked: Asked, table: str | None) -> list[str]:
    with zip_of(file) as archive:
        members = members_of(archive)
        names = [member.filename for member in members]
        if "xl/workbook.xml" in names:
            return heads_excel.excel(file, archive, asked, table)
        if names and all(name.endswith(".npy") for name in names):
            return heads_numpy.npz(archive, members, asked)
        if "content.xml" in names:
            return ["an OpenDocument file: pd.read_excel(path, engine='odf') reads its sheets (package odfpy)"]
        if not members:
            return ["a zip archive with no file in it"]
        wanted = [member for member in members if table in {None, member.filename}]
        if table is not None and not wanted:
            raise ToolError(f"no file {table!r} in the archive. There are: {', '.join(names[:20])}")
        if len(wanted) > 1:
            listed = [f"  {m.filename}  {size_text(m.file_size)}" for m in members[:60]]
            more = [f"  … and {len(members) - 60:,} more"] if len(members) > 60 else []
            return [f"a zip archive of {len(members):,} files; table= shows one of them:", *listed, *more]
        return _member(member_piece(archive, wanted[0]), asked, alone=len(members) == 1)


def _member(piece: Piece, asked: Asked, *, alone: bool) -> list[str]:
    """Return what one file in an archive is; pandas itself opens an archive of a single file."""
    if alone and asked.path.lower().endswith(".zip"):
        piece = Piece(piece.data, piece.size, exact=piece.exact, packed="zip", tail=piece.tail)
    if piece.data.startswith((b"PAR1", b"SQLite format 3", b"\x93NUMPY")) or not piece.data:
        return (
            head_of(io.BytesIO(b""), Path(), asked)
            if not piece.data
            else ["a zip archive, inside is a file that is none of text: unpack it first"]
        )
    return _text(piece, asked)
