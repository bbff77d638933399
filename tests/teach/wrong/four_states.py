"""Wrong answers to lesson 02: states without order or with every event; requests, replies or results taken for turns; hasty breakpoints."""

from __future__ import annotations

WRONG: dict[str, tuple[str, str, str]] = {
    "02.path": (
        "def state_path(events):\n    return list(dict.fromkeys(event.state for event in events))",
        "def state_path(events):\n    return [event.state for event in events]",
        "def state_path(events):\n    return [b.state for a, b in zip(events, events[1:]) if a.state != b.state]",
    ),
    "02.turns": (
        'async def count_turns(events):\n    return sum([event.type == "reply_started" async for event in events])',
        'async def count_turns(events):\n    return sum([event.type == "reply_ended" async for event in events])',
        'async def count_turns(events):\n    return sum([event.type == "results_appended" async for event in events])',
    ),
    "02.break": (
        'def rest_here(before, event):\n    return event.state == "Act"',
        'def rest_here(before, event):\n    return event.type == "call_started" and event.name == "count"',
        'def rest_here(before, event):\n    return before.state != event.state or event.type == "call_started"',
    ),
}
