"""What nbagent keeps on a disk: the folder `.nbagent` and who may see it; and what tells a file's content from another.

Must not know what is kept. Read `private_folder`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
from pathlib import Path


def private_folder(folder: Path) -> None:
    """Make a folder under `.nbagent`, and keep all of `.nbagent` out of git: what lies there holds data.

    Raises OSError, also where a link would lead out of `.nbagent`: the folder may be somebody else's.
    """
    root = next((place for place in (folder, *folder.parents) if place.name == ".nbagent"), folder)
    for place in (folder, *folder.parents)[: len(folder.parts) - len(root.parts) + 1]:
        if place.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(place))
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), (root / ".gitignore").open("x", encoding="utf-8") as ignore:
        ignore.write("*\n")


def content_hash(data: bytes | None) -> str:
    """Return the hash that stands for the content of a file (SHA-256); "" for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()
