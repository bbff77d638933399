"""One server-sent event as an event of the Messages API, or as the fault that it is.

Read `event_of`.
"""

from __future__ import annotations

import json
from typing import Any

from nbagent.core.messages import Json
from nbagent.models.faults import Place
from nbagent.models.sse import SseEvent


def event_of(place: Place, sse: SseEvent, *, started: bool) -> Json | None:
    """Return the event in `sse`, or None for a ping; raises for an error event and for what cannot be an event."""
    if sse.name == "ping":
        return None
    try:
        event: Any = json.loads(sse.data)
    except ValueError:
        event = dict[str, Any]()
    kind: Any = event.get("type") if isinstance(event, dict) else None
    if kind == "content_block_delta" and started:  # nearly all events: first and short
        if isinstance(event.get("index"), int) and isinstance(event.get("delta"), dict):
            return event
        raise place.garbled(sse.data)
    if kind == "ping":
        return None
    if sse.name == "error" or kind == "error":
        raise place.broken(event if isinstance(event, dict) and event else {"error": sse.data})
    if not started and kind != "message_start":
        raise place.not_the_api(f"a stream without message_start; it begins with {place.safe(sse.data)[:200]!r}")
    if not isinstance(kind, str) or not _well_formed(kind, event):
        raise place.garbled(sse.data)
    return event


def _well_formed(kind: str, event: Json) -> bool:
    """Say whether an event has the parts that everybody who folds it relies on."""
    match kind:
        case "message_start":
            return isinstance(event.get("message"), dict)
        case "content_block_start":
            return isinstance(event.get("index"), int) and isinstance(event.get("content_block"), dict)
        case "content_block_stop":
            return isinstance(event.get("index"), int)
        case _:
            return True
