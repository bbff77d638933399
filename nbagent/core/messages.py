"""Messages of the Messages API as plain values, and the fold of a streamed reply into one.

Blocks are kept verbatim as the server sent them (thinking is bound to the exact bytes of the prefix), so a message
is a dict and never a class. Source of the shapes: the Messages API's reference, checked against anthropic 2.14.
Read `ReplyBuilder` first.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

Block = dict[str, Any]
Message = dict[str, Any]
Json = dict[str, Any]

CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Stop reasons of a reply that ends in the middle: none of its calls may run."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD, so that it can be encoded as UTF-8."""
    return _SURROGATE.sub("\ufffd", text) if not text.isascii() else text


def clean_value(value: Any) -> Any:
    """Return a JSON value with `clean` applied to each string in it, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item) for key, item in value.items()}
    return value


def text_block(text: str) -> Block:
    """Return a text block; empty or blank text becomes "(empty)", since the API refuses blank blocks."""
    return {"type": "text", "text": clean(text) if text.strip() else "(empty)"}


def image_block(media_type: str, data: str) -> Block:
    """Return an image block from base64 `data` of `media_type` (image/png, image/jpeg, image/gif, image/webp)."""
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def plain_text(content: str | list[Block]) -> str:
    """Return the text blocks of `content` joined by blank lines; images become `[image]`."""
    if isinstance(content, str):
        return content
    parts = [b["text"] if b.get("type") == "text" else f"[{b.get('type')}]" for b in content]
    return "\n\n".join(parts)


def joined_text(content: list[Block]) -> str:
    """Return the text blocks joined by blank lines; a server cuts a text where a citation begins and ends."""
    parts: list[str] = []
    before: Block = {}
    for block in content:
        if block.get("type") == "text":
            one = before.get("type") == "text" and (before.get("citations") or block.get("citations"))
            parts += [block["text"]] if one or not parts else ["\n\n", block["text"]]
        before = block
    return "".join(parts)


def last_words(content: list[Block]) -> str:
    """Return what a reply says after its last call of a server's tool, all of its text where it says nothing after it."""
    calls = [at for at, block in enumerate(content) if str(block.get("type")).endswith("_tool_result")]
    return (joined_text(content[calls[-1] :]) if calls else "") or joined_text(content)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply or a sum of them: fresh input, output, cache writes and reads; web searches and fetches."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0
    searches: int = 0
    fetches: int = 0

    @classmethod
    def of(cls, raw: Json | None) -> Usage:
        """Read the `usage` object of the API; absent or null counts are 0."""
        raw = raw or {}
        served = raw.get("server_tool_use") or {}
        return cls(
            input=int(raw.get("input_tokens") or 0),
            output=int(raw.get("output_tokens") or 0),
            cache_write=int(raw.get("cache_creation_input_tokens") or 0),
            cache_read=int(raw.get("cache_read_input_tokens") or 0),
            searches=int(served.get("web_search_requests") or 0),
            fetches=int(served.get("web_fetch_requests") or 0),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_write + other.cache_write,
            self.cache_read + other.cache_read,
            self.searches + other.searches,
            self.fetches + other.fetches,
        )

    @property
    def total(self) -> int:
        """All tokens that were read or written."""
        return self.input + self.output + self.cache_write + self.cache_read


@dataclass(slots=True)
class _OpenBlock:
    block: Block
    text: list[str] = field(default_factory=list[str])
    signature: list[str] = field(default_factory=list[str])
    json: list[str] = field(default_factory=list[str])
    citations: list[Json] = field(default_factory=list[Json])


@dataclass(slots=True)
class ReplyBuilder:
    """Folds the raw events of one streamed reply into an assistant message.

    Feed it every event in order; afterwards `complete` tells whether the stream was whole (a stop reason and
    `message_stop` were seen), `content` holds the blocks, and `bad_input` the calls whose JSON could not be parsed,
    by call id, with the reason and the text that was sent. `taken` are ids of earlier calls.
    """

    taken: frozenset[str] | set[str] = frozenset()
    content: list[Block] = field(default_factory=list[Block])
    stop_reason: str | None = None
    stop_details: Json | None = None
    usage: Json = field(default_factory=dict[str, Any])
    message_id: str = ""
    model: str = ""
    started: bool = False
    stopped: bool = False
    bad_input: dict[str, str] = field(default_factory=dict[str, str])
    _open: dict[int, _OpenBlock] = field(default_factory=dict[int, _OpenBlock])

    @property
    def calls(self) -> list[Block]:
        """The `tool_use` blocks, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    @property
    def text(self) -> str:
        """The text blocks, joined by blank lines; those around a citation are pieces of one text."""
        return joined_text(self.content)

    @property
    def complete(self) -> bool:
        """Whether the reply ended as the API says a reply ends, with no block left open."""
        return self.started and self.stopped and self.stop_reason is not None and not self._open

    def feed(self, event: Json) -> None:
        """Take one raw event; events and deltas of unknown types are passed over."""
        match event.get("type"):
            case "message_start":
                message = event.get("message") or {}
                self.started = True
                self.message_id = str(message.get("id") or "")
                self.model = str(message.get("model") or "")
                self.usage.update(message.get("usage") or {})
            case "content_block_start":
                self._open[int(event["index"])] = _OpenBlock(dict(event["content_block"]))
            case "content_block_delta":
                if (block := self._open.get(int(event["index"]))) is not None:
                    _add_delta(block, event["delta"])
            case "content_block_stop":
                if (block := self._open.pop(int(event["index"]), None)) is not None:
                    self._close(block)
            case "message_delta":
                delta = event.get("delta") or {}
                self.stop_reason = delta.get("stop_reason") or self.stop_reason
                self.stop_details = delta.get("stop_details") or self.stop_details
                self.usage.update({k: v for k, v in (event.get("usage") or {}).items() if v is not None})
            case "message_stop":
                self.stopped = True
                if self.stop_reason in CUT_SHORT:  # some servers end a cut reply without closing its last block
                    for index in sorted(self._open):
                        self._close(self._open.pop(index))
            case _:
                pass

    def _close(self, part: _OpenBlock) -> None:
        block = part.block
        kind = block.get("type")
        if part.citations:
            block["citations"] = [*(block.get("citations") or []), *part.citations]
        if kind == "text":
            block["text"] = clean(str(block.get("text") or "") + "".join(part.text))
            if not block["text"].strip():
                return
        elif kind == "thinking":
            block["thinking"] = str(block.get("thinking") or "") + "".join(part.text)
            if part.signature:
                block["signature"] = "".join(part.signature)
        elif part.json or kind == "tool_use":
            if kind == "tool_use":
                self._name_call(block)
            self._parse_input(block, "".join(part.json))
        self.content.append(block)

    def _name_call(self, block: Block) -> None:
        """Give a call without an id, or with one that was used before, a new one: the API takes each id once."""
        used = self.taken | {str(call["id"]) for call in self.calls}
        if not block.get("id") or block["id"] in used:
            block["id"] = f"toolu_{uuid.uuid4().hex[:20]}"
        if isinstance(self.taken, set):  # at once: a subagent beside this one may be given the same by its server
            self.taken.add(str(block["id"]))

    def _parse_input(self, block: Block, raw: str) -> None:
        given: Any = block.get("input")
        block["input"] = given if isinstance(given, dict) else {}
        if not raw.strip():
            return
        try:
            value = json.loads(raw)
        except ValueError as error:
            self.bad_input[str(block.get("id"))] = f"the input is not valid JSON ({error}): {clean(raw)[:500]}"
            return
        if isinstance(value, str):  # some models encode twice; the schema still has to match afterwards
            try:
                value = json.loads(value)
            except ValueError:
                pass
        if isinstance(value, dict):
            block["input"] = clean_value(value)
        else:
            shown = clean(raw)[:500]
            self.bad_input[str(block.get("id"))] = f"the input must be a JSON object with named arguments, not {shown}"


def _add_delta(part: _OpenBlock, delta: Json) -> None:
    match delta.get("type"):
        case "text_delta":
            part.text.append(str(delta.get("text") or ""))
        case "thinking_delta":
            part.text.append(str(delta.get("thinking") or ""))
        case "signature_delta":
            part.signature.append(str(delta.get("signature") or ""))
        case "input_json_delta":
            part.json.append(str(delta.get("partial_json") or ""))
        case "citations_delta":
            part.citations.append(delta["citation"])
        case "compaction_delta":
            part.block.update({name: delta[name] for name in ("content", "encrypted_content") if name in delta})
        case _:
            pass


def reply_events(
    content: list[Block],
    stop_reason: str | None = None,
    *,
    usage: Json | None = None,
    message_id: str = "msg_scripted",
    model: str = "scripted",
    chunk: int = 24,
) -> list[Json]:
    """Return the raw stream events that a server would send for `content`, text cut into pieces of `chunk` characters.

    `stop_reason` defaults to tool_use where a call is in it, else end_turn.
    """
    if stop_reason is None:
        stop_reason = "tool_use" if any(b.get("type") == "tool_use" for b in content) else "end_turn"
    start_usage = {"input_tokens": 0, "output_tokens": 0, **(usage or {})}
    message = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": start_usage}  # fmt: skip
    events: list[Json] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(content):
        events += _block_events(index, block, chunk)
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": start_usage}
    )
    events.append({"type": "message_stop"})
    return events


def _block_events(index: int, block: Block, chunk: int) -> list[Json]:
    kind = block.get("type")
    if kind == "text":
        first, deltas = {**block, "text": ""}, _pieces(block["text"], chunk, "text_delta", "text")
    elif kind == "thinking":
        first = {**block, "thinking": "", "signature": ""}
        deltas = _pieces(block["thinking"], chunk, "thinking_delta", "thinking")
        deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
    elif kind == "tool_use":
        first = {**block, "input": {}}
        deltas = _pieces(json.dumps(block["input"]), chunk, "input_json_delta", "partial_json")
    elif kind == "compaction":
        first, deltas = {**block, "content": None}, [{"type": "compaction_delta", "content": block["content"]}]
    else:
        first, deltas = dict(block), []
    return [
        {"type": "content_block_start", "index": index, "content_block": first},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _pieces(text: str, size: int, kind: str, key: str) -> list[Json]:
    return [{"type": kind, key: text[i : i + size]} for i in range(0, len(text), size)]
