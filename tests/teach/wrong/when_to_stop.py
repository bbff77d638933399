"""Wrong answers to lesson 03: circles of one length only, anything seen before, results left out; an end taken for done; tame runaways."""

from __future__ import annotations

WRONG: dict[str, tuple[str, str, str]] = {
    "03.circle": (
        "def goes_round(turns):\n    return len(turns) > 1 and turns[-1] == turns[-2]",
        "def goes_round(turns):\n    return len(set(turns)) < len(turns)",
        "def goes_round(turns):\n    calls = [turn[:2] for turn in turns]\n    return any(len(calls) >= 2 * p and calls[-p:] == calls[-2 * p : -p] for p in (1, 2))",
    ),
    "03.done": (
        'def is_done(events):\n    return events[-1].type == "run_ended"',
        'def is_done(events):\n    return str(events[-1].reason) == "end_turn"',
        'def is_done(events):\n    return any(event.type == "text_delta" for event in events) or events[-1].turn < 3',
    ),
    "03.runaway": (
        'runaway = [call("look", column="mass") for _ in range(12)]',
        'runaway = [call("look", column="mass", note=f"attempt {n}") for n in range(12)]',
        'runaway = [call("look", column=("mass", "island")[n % 2]) for n in range(12)]',
    ),
}
