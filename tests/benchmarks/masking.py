"""What does it cost to mask a text before it leaves? `python -m tests.benchmarks.masking`

For prose, code, JSON and a text full of names of secrets: milliseconds for 100 kB with 20 known secrets, how many times
that is what `json.dumps` takes for the same text (it is encoded anyway), and how it grows from 10 kB. The best of many, since
a busy machine only ever adds. Exit code 1 where ten times the text takes more than forty times the time (twenty to thirty were seen). Takes seconds.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable

from tests.privacy.planted import vault
from tests.source import PACKAGE

SIZE, SMALL, TRIES, LIMIT = 100_000, 10_000, 15, 40.0


def texts() -> dict[str, str]:
    """What is masked in real life, by name."""
    code = "\n".join(path.read_text("utf-8") for path in sorted(PACKAGE.glob("core/*.py")))
    return {
        "prose": "The quick brown fox jumps over the lazy dog, and so on. " * 3_000,
        "code": code * 2,
        "json": '{"key": "abc", "name": "token", "value": 12345, "author": "x"},\n' * 2_000,
        "names": "key=1 pass token " * 8_000,
    }


def best(work: Callable[[str], object], text: str) -> float:
    """Seconds that `work` takes at best."""
    found: list[float] = []
    for number in range(TRIES):
        fresh = f"{text}{number}"  # what was masked before is remembered
        began = time.perf_counter()
        work(fresh)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> int:
    """Measure, print, and judge."""
    worst = 0.0
    for name, text in texts().items():
        box = vault()
        for number in range(20):
            box.mask(f"ghp_{hashlib.sha256(bytes([number])).hexdigest()[:36]}")
        large, small = best(box.mask, text[:SIZE]), best(box.mask, text[:SMALL])
        encoded = best(json.dumps, text[:SIZE])
        worst = max(worst, large / small)
        print(
            f"{name:6} {large * 1e3:6.2f} ms, {large / encoded:5.1f} x json.dumps, {large / small:5.1f} x that of 10 kB"
        )
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
