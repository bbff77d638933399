"""Changes a text that came in pieces, so that a secret or a path that is cut in two is changed, too.

The pieces stay as many as they were, each with what is left of its own: where a stream paused, it still pauses. Read `retexted`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from nbagent.core.messages import Json

_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_LEFT = frozenset({"signature"})
"""Fields that are bytes as text: changed, they would mean nothing."""

Change = Callable[[str], str]


def changed(value: Any, change: Change) -> Any:
    """Return a JSON value with `change` applied to its texts and names; pictures and signatures stay, and so does what needs no change."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        items: list[Any] = [changed(item, change) for item in value]
        return value if isinstance(value, list) and all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        if value.get("type") == "base64":
            return value
        made: Json = {change(name): item if name in _LEFT else changed(item, change) for name, item in value.items()}
        return value if all(made.get(name, made) is value[name] for name in value) else made
    return value


def retexted(events: Sequence[Json], change: Change) -> list[Json]:
    """Return the raw events of one reply with `change` applied to all texts, those in pieces as a whole."""
    made = [event if _piece(event) else changed(event, change) for event in events]
    texts: dict[tuple[Any, str], list[int]] = {}
    for place, event in enumerate(made):
        if name := _piece(event):
            texts.setdefault((event.get("index"), name), []).append(place)
    for (_, name), places in texts.items():
        pieces = [str(made[place]["delta"].get(name) or "") for place in places]
        whole = "".join(pieces)
        text = in_json(whole, change) if name == "partial_json" else change(whole)
        for place, before, after in zip(places, pieces, repieced(pieces, text), strict=True):
            if before != after:
                made[place] = {**made[place], "delta": {**made[place]["delta"], name: after}}
    return made


def in_json(text: str, change: Change) -> str:
    """Return a JSON text with `change` applied to what its strings mean, not only to how JSON escapes them.

    A text that is cut, so that it is no JSON, is changed as it is written.
    """
    plain = change(text)
    try:
        meant = changed(json.loads(text), change)
    except (ValueError, RecursionError):
        return plain
    try:
        same = json.loads(plain) == meant
    except ValueError:  # what was put in would have to be escaped
        same = False
    return plain if same else change(json.dumps(meant, ensure_ascii=False))


def repieced(pieces: Sequence[str], text: str) -> list[str]:
    """Cut `text`, a change of the joined `pieces`, into as many: what did not change stays in the piece where it was."""
    whole = "".join(pieces)
    if text == whole:
        return list(pieces)
    first = _same(whole, text)
    last = _same(whole[first:][::-1], text[first:][::-1])
    middle, at, put, made = text[first : len(text) - last], 0, False, list[str]()
    for piece in pieces:
        start, at = at, at + len(piece)
        head = piece[: max(0, first - start)]
        tail = piece[max(0, len(whole) - last - start) :] if at > len(whole) - last else ""
        here = not put and at >= first and (at > first or at == len(whole))
        made.append(head + (middle if here else "") + tail)
        put = put or here
    return made


def _same(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _piece(event: Json) -> str:
    delta = event.get("delta")
    if event.get("type") != "content_block_delta" or not isinstance(delta, dict):
        return ""
    return _PIECES.get(str(delta.get("type")), "")
