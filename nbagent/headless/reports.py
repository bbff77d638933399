"""Events on their way to the hub: pieces of text joined, what is huge cut, and never more than so many.

Pure but for its own state; events are JSON. Must not know how they travel. Read `Reports.add`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from nbagent.core.messages import Json

_PIECES = frozenset({"text_delta", "thinking_delta", "input_delta"})
_MOST = 2_000
_LONG = 20_000
_CUT = " … (cut: the session's file has all of it)"


class Reports:
    """Holds events until `take`; of too many the oldest are dropped."""

    def __init__(self) -> None:
        self._held: deque[Json] = deque()
        self.dropped = 0
        """How many were dropped so far."""

    def add(self, event: Json) -> None:
        """Take an event; a piece of text that goes on from the last one is joined to it."""
        if self._held and (joined := _joined(self._held[-1], event)) is not None:
            self._held[-1] = joined
            return
        if len(self._held) >= _MOST:
            self._held.popleft()
            self.dropped += 1
        self._held.append(event)

    def take(self) -> list[Json]:
        """Return what is held, fit to be sent, and hold it no more."""
        found, self._held = list(self._held), deque()
        return [_fit(event) for event in found]


def _joined(before: Json, after: Json) -> Json | None:
    """Return one event for two pieces of the same block, however deep subagents nest them; None for any others."""
    if before.get("type") != after.get("type"):
        return None
    if after.get("type") == "agent_reported":
        if before.get("agent_id") != after.get("agent_id"):
            return None
        inner = _joined(before["event"], after["event"])
        return None if inner is None else {**after, "event": inner}
    same = before.get("index") == after.get("index") and before.get("turn") == after.get("turn")
    if after.get("type") not in _PIECES or not same or len(before["text"]) > _LONG:
        return None
    return {**after, "text": before["text"] + after["text"]}


def _fit(value: Any) -> Any:
    """Return a JSON value with its long texts cut and its images named only."""
    if isinstance(value, str):
        return value if len(value) <= _LONG else value[:_LONG] + _CUT
    if isinstance(value, dict):
        if value.get("type") == "image":
            return {"type": "text", "text": "[image]"}
        if isinstance(value.get("approval"), dict):  # it is bound to the hash of what is shown: whole or not at all
            return value
        return {key: _fit(one) for key, one in value.items()}
    return [_fit(one) for one in value] if isinstance(value, list | tuple) else value
