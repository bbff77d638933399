"""A disk that is full: what is written beyond a limit is refused by the system itself, a part of it being taken."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Let no file of this process grow beyond `limit` bytes; the refusal is “File too large”."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
