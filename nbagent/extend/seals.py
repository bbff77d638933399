"""Seals what nbagent keeps beside a notebook, so that it believes only what this person's nbagent wrote.

A folder that came with somebody else's project may hold files that look like ours: answers that were never given, or
files that an undo would write. The key lies in the person's own configuration folder and never in a project. Must not
know what is sealed. Read `Seals`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

import platformdirs

KEY = "seal.key"
_SIZE = 32


class Seals:
    """Makes and checks seals with the person's key; without a folder that can be written, with a key of its own.

    Then what was sealed is believed as long as this lives: share one between all that keep something.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or platformdirs.user_config_path("nbagent")
        self._key: bytes | None = None

    def seal(self, data: bytes) -> str:
        """Return the seal of `data` (64 hex digits: HMAC-SHA256)."""
        return hmac.new(self._known_key(), data, hashlib.sha256).hexdigest()

    def holds(self, data: bytes, seal: object) -> bool:
        """Whether `seal` was made of `data` with this key."""
        return isinstance(seal, str) and seal.isascii() and hmac.compare_digest(self.seal(data), seal)

    def _known_key(self) -> bytes:
        if self._key is None:
            self._key = _read_or_make(self._folder / KEY)
        return self._key


def _read_or_make(path: Path) -> bytes:
    """Return the key in `path`; two processes that make it at once end up with the same."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            made = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_hex(_SIZE))
            try:
                _put(made, path)
            finally:
                made.unlink(missing_ok=True)
        kept = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError):
        return secrets.token_bytes(_SIZE)
    return kept if len(kept) == _SIZE else secrets.token_bytes(_SIZE)


def _put(made: Path, path: Path) -> None:
    """Give a file its name, whole at once and never over another one."""
    try:
        os.link(made, path)
    except FileExistsError:
        pass
    except OSError:  # a disk without hard links
        if not path.exists():
            made.replace(path)
