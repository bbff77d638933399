"""What does it cost to look at an object? `python -m tests.benchmarks.describers [ROWS]` (by hand; default 2,000,000 rows).

For each kind of object of tests/tools/data/objects.py, with that many rows and empty: milliseconds of the line in a list of
variables and of the whole description, the best of several. Exit code 1 where one takes more than 5 ms.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from nbagent.tools.describe import brief
from nbagent.tools.details import details
from tests.tools.data import objects

LIMIT, TRIES = 5.0, 15


def best(look: Callable[[Any], str], value: Any) -> float:
    """Milliseconds that a look takes at best; a busy machine only ever adds."""
    found: list[float] = []
    for _ in range(TRIES):
        began = time.perf_counter()
        look(value)
        found.append((time.perf_counter() - began) * 1e3)
    return min(found)


def main() -> int:
    """Measure, print, and judge."""
    rows, slow = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000, 0
    for size in (0, rows):
        print(f"{size:,} rows: line, description")
        for name, value in {**objects.everything(size), **objects.strangers(), **objects.lazies()}.items():
            line, whole = best(brief, value), best(details, value)
            slow += max(line, whole) > LIMIT
            print(f"  {name:18} {line:7.2f} {whole:7.2f} ms{'  slow' if max(line, whole) > LIMIT else ''}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
