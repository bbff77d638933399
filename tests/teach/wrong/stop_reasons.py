"""Wrong answers to lesson 09: one reply, a piece too few, an end too early; turns for calls; roles for results."""

from __future__ import annotations

WRONG: dict[str, tuple[str, str, str]] = {
    "09.pieces": (
        'script = ["one two three"]\n',
        'script = [Turn("one ", "max_tokens"), "two three"]\n',
        'script = [Turn("one ", "end_turn"), Turn("two ", "end_turn"), "three"]\n',
    ),
    "09.calls": (
        'def enough_calls(run):\n    return "3 calls." if run.turn >= 3 else None\n',
        "def enough_calls(run):\n    return len(run.calls_made) >= 3\n",
        'def enough_calls(run):\n    return f"{len(run.calls_made)} calls." if len(run.calls_made) > 3 else None\n',
    ),
    "09.cut": (
        'def may_cut(messages, at):\n    return messages[at]["role"] == "user"\n',
        'def may_cut(messages, at):\n    return messages[at]["role"] == "assistant"\n',
        'def may_cut(messages, at):\n    return all(block["type"] != "tool_use" for m in messages[:at] for block in m["content"])\n',
    ),
}
