"""What a file that a prompt mentions is told of: what `read_data_head` says of data, the beginning of a text, an image, names in a folder.

Reads on any thread, a little of a file whatever its size. Which files may be read is said by `DataFiles`. Read `file_facts`.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.core.messages import Block, clean
from nbagent.tools.data import heads_arrow
from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.heads import head_of
from nbagent.tools.data.sqlfiles import DataFiles
from nbagent.tools.paths import locate, opened
from nbagent.tools.results import scaled_image

_TEXT = 8_000
_LARGEST_IMAGE = 20_000_000
_IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
_NAMES = 60
_TABLES = frozenset({".csv", ".tsv", ".tab", ".psv", ".jsonl", ".ndjson"})
"""Texts that are told as tables; any other text is shown as it is."""
_ROWS = 5


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is told of a file or folder: its name and size for people, text and images for the model, and which `files` that read."""

    name: str
    size: str
    text: str
    images: tuple[Block, ...] = ()
    files: tuple[str, ...] = ()


def file_facts(files: DataFiles, root: Path, spelled: str, *, look: bool = True) -> FileFacts:
    """Return what is told of a file, or of a folder where `spelled` leads to one; raises `ToolError` for what may not be read.

    Without `look` it only says whether it is there.
    """
    place = locate(root, os.path.expanduser(spelled) if spelled.startswith("~/") else spelled)  # noqa: PTH111
    if place.path.is_dir():
        if not place.inside or place.secret:
            raise ToolError("this folder is outside of the notebook's folder, or holds keys: it is not read")
        return _folder(files, place.path, place.shown) if look else FileFacts(place.shown, "", "")
    (real,) = files.one(str(place.path))
    path = Path(real)
    return _facts(path, place.shown) if look else FileFacts(place.shown, "", "")


def _folder(files: DataFiles, path: Path, shown: str) -> FileFacts:
    try:
        names = sorted(
            f"{one.name}/" if one.is_dir() else one.name
            for one in itertools.islice(path.iterdir(), 5_000)
            if not one.name.startswith(".")
        )
    except OSError as error:
        raise ToolError((error.strerror or "it can't be read").lower()) from None
    more = f"\n… and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    text = f"a folder with {len(names):,} entries:\n" + "\n".join(names[:_NAMES]) + more
    if any(name.endswith((".parquet", ".parq", ".pq")) or ("=" in name and name.endswith("/")) for name in names):
        text = _dataset(files, path, shown) or text
    return FileFacts(f"{shown.rstrip('/')}/", f"{len(names):,} entries", text)


def _dataset(files: DataFiles, path: Path, shown: str) -> str:
    """Return what a folder of Parquet files is, "" where none in it may be read or it is none."""

    def may_read(one: Path) -> bool:
        try:
            return files.one(str(one)) == [str(one)]
        except ToolError:
            return False

    try:
        said = heads_arrow.folder(path, shown, _ROWS, may_read)
    except (ToolError, OSError):
        return ""
    return clean("\n".join(said)) if len(said) > 1 else ""  # one line: no Parquet file is in it


def _facts(path: Path, shown: str) -> FileFacts:
    try:
        size = path.stat().st_size
        mime = _IMAGES.get(path.suffix.lower())
        with path.open("rb") as file:
            data = file.read(_LARGEST_IMAGE if mime else _TEXT)
    except OSError as error:
        raise ToolError((error.strerror or "it can't be read").lower()) from None
    said = _size(size)
    if mime and size <= _LARGEST_IMAGE:
        return FileFacts(shown, said, f"an image, {said}, below", (scaled_image(data, mime),), (str(path),))
    text = _text(data)
    if (text is None or path.suffix.lower() in _TABLES) and (head := _head(path, shown, size)):
        return FileFacts(shown, said, head, files=(str(path),))
    if text is None:
        told = f"a file of {said} that is no text. Its first bytes: {data[:16]!r}. Look at it with code or with a tool for data files."
        return FileFacts(shown, said, told, files=(str(path),))
    cut = size > len(data)
    head = f"a text file of {said}" + (f"; its first {len(data):,} bytes" if cut else "")
    return FileFacts(shown, said, f"{head}:\n{text}" if text.strip() else f"{head}; it is empty", files=(str(path),))


def _head(path: Path, shown: str, size: int) -> str:
    """Return what `read_data_head` says of a file, "" where it has nothing to say."""
    try:
        with opened(path) as file:
            return clean("\n".join(head_of(file, path, Asked(shown, _ROWS, size))))
    except (ToolError, OSError):
        return ""


def _text(data: bytes) -> str | None:
    """Return the beginning of a text, None for bytes that are none; a letter that the cut has split is left out."""
    if b"\0" in data[:4_000] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    for encoding in ("utf-16", "utf-8-sig") if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig",):
        for end in range(4):
            try:
                return data[: len(data) - end].decode(encoding)
            except UnicodeDecodeError:
                continue
    text = data.decode("cp1252", "replace")
    return text if sum(c.isprintable() or c in "\r\n\t" for c in text) >= 0.95 * len(text) else None


def _size(count: int) -> str:
    for unit, size in (("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
