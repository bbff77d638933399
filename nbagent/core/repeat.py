"""Finds a model that goes in circles: the same calls with the same results, turn after turn (also A, B, A, B).

A turn's signature leaves out what does not change what a call does: labels in its input; counts, durations and ids of
new cells in its result.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from nbagent.core.messages import Block, Json

_LABELS = frozenset({"description", "label", "title", "reason", "comment", "note"})
_VOLATILE = re.compile(r"In\[\d+\]|\b\d+(?:\.\d+)? ?(?:µs|ms|s|min)\b|\bref='?r\d+'?")
_LONGEST_PERIOD = 2


class RepeatGuard:
    """Counts how often the last turns repeat themselves."""

    def __init__(self) -> None:
        self._turns: list[str] = []

    def add(self, calls: Iterable[tuple[str, Json, Iterable[Block], Iterable[str]]]) -> int:
        """Take one turn's calls (name, input, result blocks, touched cells); return how often it stands in a row now."""
        self._turns.append("|".join(_signature(*call) for call in calls))
        return max(self._count(period) for period in range(1, _LONGEST_PERIOD + 1))

    def forget(self) -> None:
        """Start again: the person spoke, or something else changed."""
        self._turns.clear()

    def _count(self, period: int) -> int:
        block = self._turns[-period:]
        if len(block) < period or not all(block):
            return 1
        count, end = 1, len(self._turns) - period
        while end >= period and self._turns[end - period : end] == block:
            count, end = count + 1, end - period
        return count


def _signature(name: str, given: Json, result: Iterable[Block], cells: Iterable[str]) -> str:
    what = {key: value for key, value in given.items() if key not in _LABELS}
    text = json.dumps(list(result), sort_keys=True)
    for cell in cells:
        text = text.replace(cell, "cell")
    digest = hashlib.sha256(_VOLATILE.sub("", text).encode()).hexdigest()
    return f"{name}{json.dumps(what, sort_keys=True)}{digest}"
