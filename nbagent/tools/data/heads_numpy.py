"""The headers of NumPy's files: shape, type and order, read without NumPy and without the data. Read `npy`."""

from __future__ import annotations

import ast
import math
import re
import struct
import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO

from nbagent.core.errors import ToolError
from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.opening import member_piece, size_text
from nbagent.tools.data.telling import call_text

_MOST = 64 * 1024  # bytes of a header


def npy(file: BinaryIO, asked: Asked) -> list[str]:
    """Return what a .npy file holds."""
    said = _said(file.read(_MOST))
    lines = [f"NumPy array, {said}", f"{size_text(asked.size)} on disk"]
    if "a pickle" in said:
        return lines
    return [*lines, "", "To read it:", "x = " + call_text("np.load", asked.path, [("mmap_mode", "r")])]


def npz(archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], asked: Asked) -> list[str]:
    """Return what a .npz file holds."""
    lines = [
        f"  {member.filename.removesuffix('.npy')!r}  {_said(member_piece(archive, member, _MOST).data)}"
        for member in members[:60]
    ]
    more = [f"  … and {len(members) - 60:,} more"] if len(members) > 60 else []
    return [f"NumPy archive of {len(members):,} arrays, {size_text(asked.size)} on disk:", *lines, *more, "", "To read it:",
            "arrays = " + call_text("np.load", asked.path)]  # fmt: skip


def _said(data: bytes) -> str:
    header = _header(data)
    shape, kind = header["shape"], header["descr"]
    fields = ""
    if isinstance(kind, list):
        fields = f"fields {', '.join(str(field[0]) for field in kind[:20] if isinstance(field, tuple) and field)}"
    elif "O" in str(kind):
        return f"shape {shape}, objects: a pickle, which runs code when it is loaded (allow_pickle); only from somebody you trust"
    size = re.search(r"\d+", str(kind))
    total = f", {size_text(math.prod(shape) * int(size[0]))} of data" if size and not fields else ""
    return (
        f"shape {shape}, {fields or f'type {kind}'}{total}{', in Fortran order' if header.get('fortran_order') else ''}"
    )


def _header(data: bytes) -> dict[str, Any]:
    """Return the header of a .npy file; raises `ToolError` for a broken one."""
    try:
        first = data[6] == 1
        start, size = (10, struct.unpack("<H", data[8:10])[0]) if first else (12, struct.unpack("<I", data[8:12])[0])
        header = ast.literal_eval(data[start : start + size].decode("latin-1").strip())
        shape = header["shape"]
        whole = type(shape) is tuple and all(type(n) is int and 0 <= n < 2**62 for n in shape) and "descr" in header
    except (ValueError, SyntaxError, KeyError, TypeError, IndexError, struct.error, RecursionError, MemoryError):
        whole, header = False, {}
    if not whole or data[:6] != b"\x93NUMPY":
        raise ToolError("it begins as a NumPy file, but its header is broken")
    return header
