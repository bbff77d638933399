"""Events as JSON objects and back: for the log of a session, for kept runs, for whoever watches from outside.

Pure; what is not known is passed over. Read `to_json`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from nbagent.core import events
from nbagent.core.events import Event, Reason, State, Status
from nbagent.core.messages import Json, Usage


def to_json(event: Event) -> Json:
    """Return `event` as a JSON object with its `type`."""
    data: dict[str, Any] = {"type": event.type}
    for item in dataclasses.fields(event):
        data[item.name] = _to_json(getattr(event, item.name))
    return data


def _to_json(value: Any) -> Any:
    if isinstance(value, Event):
        return to_json(value)
    return dataclasses.asdict(value) if isinstance(value, Usage) else value


def from_json(data: Json) -> Event | None:
    """Return the event that `to_json` gave, also when it came through a file; None for a kind that is not known.

    Fields that are not known are left out. Raises KeyError, TypeError or ValueError for what is no event.
    """
    kinds = (item for item in vars(events).values() if isinstance(item, type) and issubclass(item, Event))
    kind = next((cls for cls in kinds if cls.type == data["type"]), None)
    if kind is None:
        return None
    given: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        if item.name in data:
            given[item.name] = _from_json(item.name, data[item.name])
    return None if "event" in given and given["event"] is None else kind(**given)


def _from_json(name: str, value: Any) -> Any:
    match name, value:
        case "state", str():
            return State(value)
        case "status", str():
            return Status(value)
        case "reason", str():
            return Reason(value)
        case "usage", dict():
            return Usage(**value)
        case "event", dict():
            return from_json(value)
        case _, list():
            return tuple(value)
        case _:
            return value
