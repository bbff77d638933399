"""Finds and ends the processes that a process started, those too that left its group or lost their parent.

psutil does it, which comes with ipykernel. It must not know what the processes are for. Read `descendants`.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any


def adopt() -> None:
    """Become the parent of what loses its own below this process, where the system knows that (Linux): so it can be found."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def descendants(pid: int | None) -> list[Any]:
    """Return the processes that a kernel started, those that left its group too (psutil comes with ipykernel)."""
    import psutil  # noqa: PLC0415

    if pid is None:
        return []
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def end_all(processes: list[Any]) -> None:
    """Kill those that are still there; a number that means another process by now is left alone."""
    import psutil  # noqa: PLC0415

    for one in processes:
        with contextlib.suppress(psutil.Error):
            if one.is_running():
                one.kill()
