"""Messages as HTML, raw and readable: all of it is data, escaped, hidden characters shown, long things cut with "show all".

Must not know of turns or of a page. Read `message_html`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nbagent.core.shown import visible_plain
from nbagent.view.code import RECORD
from nbagent.view.text import count, escape, one_line, visible, without_ansi

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbagent.core.messages import Json, Message

CUT = 1_200
"""Characters that are shown of a text before "show all"."""

ALL = 24_000
"""Characters that "show all" shows."""

FEW = 200
"""Characters of a text where there is little room."""


def message_html(message: Message, names: Mapping[str, str], limit: int = ALL) -> str:
    """Return a message, readable on the left and raw on the right; `names` are the calls' names by their ids."""
    raw = raw_json(message, limit)
    return (
        f'<div class="nbl-two"><div>{readable_html(message, names, limit)}</div>'
        f'<div><div class="nbl-small">raw JSON</div>{long_html(raw, limit)}</div></div>'
    )


def readable_html(message: Message, names: Mapping[str, str], limit: int = ALL) -> str:
    """Return a message's blocks as people read them."""
    return "".join(
        f'<div class="nbl-small">{_plain(label)}</div>{long_html(text, limit)}'
        for label, text in _blocks(message, names)
    )


def line_of(message: Message, names: Mapping[str, str], limit: int = 200) -> str:
    """Return a message on one line of plain text."""
    parts = [f"{label}: {one_line(text, limit)}" for label, text in _blocks(message, names)]
    return one_line(visible_plain(without_ansi(" · ".join(parts)), spaces=False), limit)


def long_html(text: str, limit: int = ALL, room: int = 0) -> str:
    """Return text as a `<pre>`, the rest of a long one behind "show all"; at most about `limit` characters of it.

    `room`: characters of HTML that it may have; hidden characters take many. 0: any number.
    """
    text = without_ansi(text)
    for most in (limit, *(less for less in (CUT, FEW) if less < limit)):
        made = _folded(text, most)
        if not room or len(made) <= room:
            return made
    return _pre(f"{count(len(text), 'character')}: too much to show here")


def _folded(text: str, limit: int) -> str:
    first = min(CUT, limit)
    if len(text) <= first:
        return _pre(text)
    if limit <= CUT:
        return _pre(text[:first] + f"\n… {len(text) - first:,} more characters")
    left = len(text) - limit
    more = f"\n… {left:,} more characters are not shown here" if left > 0 else ""
    return (
        f"{_pre(text[:first] + ' …')}<details><summary>show all ({len(text):,} characters)</summary>"
        f"{_pre(text[:limit] + more)}</details>"
    )


def raw_json(value: Any, limit: int = ALL) -> str:
    """Return a value as indented JSON; strings longer than `limit` are cut, and say so."""
    return json.dumps(_cut(value, limit), indent=2, ensure_ascii=False, default=str)


def _cut(value: Any, limit: int) -> Any:
    match value:
        case str() if len(value) > limit:
            return f"{value[:limit]}… {len(value) - limit:,} more characters"
        case dict():
            long = value.get("type") == "base64" and len(str(value.get("data"))) > 80
            shown = (
                {**value, "data": f"{str(value['data'])[:40]}… {len(str(value['data'])):,} characters"}
                if long
                else value
            )
            return {str(key): _cut(item, limit) for key, item in shown.items()}
        case list() | tuple():
            return [_cut(item, limit) for item in value]
        case _:
            return value


def _blocks(message: Message, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    content: Any = message.get("content")
    if not isinstance(content, list | tuple):
        yield "text", content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
        return
    for block in content:
        yield _block(block, names) if isinstance(block, dict) else ("block", str(block))


def _block(block: Json, names: Mapping[str, str]) -> tuple[str, str]:
    match block:
        case {"type": "text", "text": str(text)}:
            return "text", text
        case {"type": "thinking", "thinking": str(text)}:
            return "thinking", text or "(not shown by the server)"
        case {"type": "tool_use", "name": name, "input": given}:
            return f"call {name}", _given(given)
        case {"type": "tool_result", "tool_use_id": call_id}:
            name = names.get(str(call_id), "")
            failed = " (an error)" if block.get("is_error") else ""
            return f"result of {name or call_id}{failed}", _inner(block.get("content"))
        case {"type": "image"}:
            return "image", f"[{count(len(json.dumps(block, default=str)), 'character')}]"
        case _:
            return str(block.get("type")), json.dumps(_cut(block, CUT), ensure_ascii=False, default=str)


def _given(given: Any) -> str:
    if not isinstance(given, dict):
        return json.dumps(given, ensure_ascii=False, default=str)
    return "\n".join(
        f"{name} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in given.items()
    )


def _inner(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_block(item, {})[1] if isinstance(item, dict) else str(item) for item in content)
    return str(content if content is not None else "")


def _plain(text: str) -> str:
    return escape(visible_plain(one_line(without_ansi(text), 120), spaces=False))


def _pre(text: str) -> str:
    return f'<pre class="nbl-pre">{visible(text, RECORD.attr("ctl"), spaces=False)}</pre>'
