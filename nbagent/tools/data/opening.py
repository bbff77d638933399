"""The beginning of a file's content, within bounds, through whatever packs it: gzip, bzip2, xz, Zstandard, zip.

Never more than a few hundred kilobytes are unpacked, whatever a file claims of itself. It must not know what the content
means. Read `piece_of`.
"""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from nbagent.core.errors import ToolError

HEAD = 512 * 1024
"""Bytes of the content that are looked at."""
_FURTHER = 4 * 1024 * 1024
_PROBES = 8
_PROBE = 16 * 1024
_TAIL = 64 * 1024
_DIRECTORY = 16 * 1024 * 1024  # bytes of a zip's list of files

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = {"gzip": (".gz",), "bz2": (".bz2",), "xz": (".xz",), "zstd": (".zst",), "zip": (".zip",)}


@dataclass(frozen=True, slots=True)
class Piece:
    """The beginning of a content. `size`: bytes of all of it, as far as is known; `exact` whether that is certain.

    `probes` are pieces from further on and `tail` is its end, of files that are not packed.
    """

    data: bytes
    size: int
    exact: bool
    packed: str = ""
    member: str = ""
    probes: tuple[bytes, ...] = ()
    tail: bytes = b""

    @property
    def whole(self) -> bool:
        """Whether this is all of the content."""
        return self.exact and self.size == len(self.data)


def size_text(count: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def packing_of(data: bytes) -> str:
    """Return by which program a content is packed, "" where by none."""
    return next((name for mark, name in _PACKED.items() if data.startswith(mark)), "")


def inferred(packed: str, name: str) -> bool:
    """Whether pandas sees by the name of a file how it is packed."""
    return not packed or name.lower().endswith(_SUFFIXES[packed])


def piece_of(file: BinaryIO) -> Piece:
    """Return the beginning of a file's content, unpacked. Raises `ToolError` where it can't be unpacked."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    packed = packing_of(file.read(8))
    file.seek(0)
    if packed:
        return _unpacked(file, packed, size)
    data = file.read(HEAD)
    if len(data) == size:
        return Piece(data, size, exact=True, tail=data[-_TAIL:])
    probes = [_at(file, size * place // (_PROBES + 1), _PROBE) for place in range(1, _PROBES + 1)]
    return Piece(data, size, exact=True, probes=tuple(probes), tail=_at(file, max(0, size - _TAIL), _TAIL))


def _at(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _unpacked(file: BinaryIO, packed: str, size: int) -> Piece:
    counted = _Counted(file)
    try:
        with _reader(counted, packed) as reader:
            data = reader.read(HEAD)
            read, more = len(data), bool(data)
            while more and read < _FURTHER:  # blocks are unpacked as a whole: a longer stretch makes the better guess
                part = reader.read(_TAIL)
                read, more = read + len(part), bool(part)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise ToolError(f"the file begins as one packed by {packed}, but can't be unpacked: {error}") from None
    if not more:
        return Piece(data, read, exact=True, packed=packed, tail=data[-_TAIL:] if read == len(data) else b"")
    return Piece(data, int(size * read / max(1, counted.count)), exact=False, packed=packed)


class _Counted(io.RawIOBase):
    """A file that counts how much was read of it, to guess how large the whole is when it is unpacked."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.count, self._file = 0, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


def _reader(file: _Counted, packed: str) -> Any:
    match packed:
        case "gzip":
            return gzip.GzipFile(fileobj=io.BufferedReader(file, 16 * 1024), mode="rb")
        case "bz2":
            return bz2.BZ2File(io.BufferedReader(file, 16 * 1024))
        case "xz":
            return lzma.LZMAFile(io.BufferedReader(file, 16 * 1024))
        case _:
            return _zstd(file)


def _zstd(file: _Counted) -> Any:
    if importlib.util.find_spec("zstandard") is not None:
        import zstandard  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  (only for such files, and only where it is)

        return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
    if importlib.util.find_spec("pyarrow") is not None:
        import pyarrow as pa  # noqa: PLC0415  (only for such files)

        return pa.CompressedInputStream(pa.PythonFile(io.BufferedReader(file), mode="r"), "zstd")
    raise ToolError(
        "the file is packed by Zstandard; to look into it the package zstandard (or pyarrow) must be installed"
    )


# ── zip ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def zip_of(file: BinaryIO) -> zipfile.ZipFile:
    """Open a zip archive whose list of files is not absurdly long. Raises `ToolError` where it is broken."""
    size = file.seek(0, os.SEEK_END)
    end = _at(file, max(0, size - 66_000), 66_000)
    place = end.rfind(b"PK\x05\x06")
    if place >= 0 and len(end) >= place + 16 and struct.unpack("<I", end[place + 12 : place + 16])[0] > _DIRECTORY:
        raise ToolError("the archive lists too many files to be looked into")
    file.seek(0)
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ToolError(f"the file begins as a zip archive, but can't be read: {error}") from None


def members_of(archive: zipfile.ZipFile) -> Sequence[zipfile.ZipInfo]:
    """Return the files of an archive, without folders and what macOS adds."""
    return [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]


def member_piece(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int = HEAD) -> Piece:
    """Return the beginning of a file in an archive."""
    if member.flag_bits & 1:
        raise ToolError(f"{member.filename} in the archive is encrypted")
    try:
        with archive.open(member) as reader:
            data = reader.read(most)
            more = bool(reader.read(1))
    except (
        zipfile.BadZipFile,
        OSError,
        EOFError,
        zlib.error,
        lzma.LZMAError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ToolError(f"{member.filename} in the archive can't be unpacked: {error}") from None
    size = max(member.file_size, len(data) + 1) if more else len(data)
    tail = b"" if more else data[-_TAIL:]
    return Piece(data, size, exact=not more, packed="zip", member=member.filename, tail=tail)
