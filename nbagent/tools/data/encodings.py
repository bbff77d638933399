"""In which encoding a text most likely is, from its bytes alone. A guess says that it is one. Read `encoding_of`."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from nbagent.tools.data.opening import Piece

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_IN_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
_CONTROL = frozenset({*range(9), 11, *range(14, 27), *range(28, 32)})


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding by Python's name, how it is known, and whether it is a guess."""

    name: str
    said: str
    guess: bool = False


def encoding_of(piece: Piece) -> Encoding | None:
    """Return the encoding of a text, None where the bytes are no text."""
    data = piece.data
    for mark, name in _MARKS:
        if data.startswith(mark):
            return Encoding(name, f"{name} (by its mark)")
    wide = _wide(data[:4096])
    if wide:
        return Encoding(wide, f"{wide} (by its zero bytes)", guess=True)
    if b"\0" in data or sum(byte in _CONTROL for byte in data[:4096]) > len(data[:4096]) * 0.02:
        return None
    parts = [data, *piece.probes, piece.tail]
    if all(part.isascii() for part in parts):
        if piece.whole:
            return Encoding("utf-8", "utf-8 (plain ASCII)")
        return Encoding("utf-8", "utf-8 (only ASCII in what was looked at)")
    if all(_is_utf8(part, cut=place > 0) for place, part in enumerate(parts)):
        return Encoding("utf-8", "utf-8")
    high = {byte for part in parts for byte in part if byte >= 0x80}
    if high & _NOT_IN_CP1252:
        mac = sum(byte < 0xA0 for byte in high) > len(high) / 2
        name = "mac_roman" if mac else "latin-1"
        return Encoding(name, f"not utf-8; {name} is a guess", guess=True)
    return Encoding("cp1252", "not utf-8; cp1252 (Western Windows) is a guess", guess=True)


def decoded(piece: Piece, encoding: Encoding) -> str:
    """Return the piece as text; what does not fit becomes a mark."""
    return codecs.getincrementaldecoder(encoding.name)("replace").decode(piece.data, final=False)


def _wide(data: bytes) -> str:
    """Return which UTF-16 it is by where the zero bytes are, "" where it is none."""
    if len(data) < 8:
        return ""
    even, odd = data[::2].count(0), data[1::2].count(0)
    most = len(data) // 2
    if odd > most * 0.6 and even < most * 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > most * 0.6 and odd < most * 0.1 else ""


def _is_utf8(data: bytes, *, cut: bool) -> bool:
    """Whether bytes are UTF-8; at the ends half a character may be missing."""
    if cut:
        start = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
        data = data[start:]
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data, final=False)
    except UnicodeDecodeError:
        return False
    return True
