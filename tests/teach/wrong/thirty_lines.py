"""Wrong answers to lesson 01: one call only, ids forgotten, a message a result; no end, a crash, silence; names mixed up."""

from __future__ import annotations

from nbagent.teach.lessons.thirty_lines import EXERCISES

_LOOP, _SAFE, _SWAP = (each.answer for each in EXERCISES)


def _but(source: str, old: str, new: str) -> str:
    """The given answer with one thing wrong."""
    assert old in source
    return source.replace(old, new)


WRONG: dict[str, tuple[str, str, str]] = {
    "01.loop": (
        _but(_LOOP, '        messages.append({"role": "user", "content": results})\n', '        yield "done", "end_turn"\n        return\n'),
        _but(_LOOP, '"tool_use_id": block["id"]', '"tool_use_id": block["name"]'),
        _but(_LOOP, '        messages.append({"role": "assistant", "content": reply["content"]})\n', ""),
    ),
    "01.safe": (
        _but(_SAFE, "for turn in range(max_turns):", "while True:"),
        _but(_SAFE, 'await tool(**block["input"]) if tool else f"There is no tool {block[\'name\']!r}."', 'await tool(**block["input"])'),
        _but(_SAFE, '    yield "done", "max_turns"\n', '    yield "done", "end_turn"\n'),
    ),
    "01.swap": (
        _but(_SWAP, "request_sent", "run_started"),
        _but(_SWAP, "reply_ended", "text_delta").replace("event.content", "event"),
        _but(_SWAP, 'return "done", str(event.reason)', 'return "done", event.type'),
    ),
}  # fmt: skip
