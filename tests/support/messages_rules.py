"""The rules of the Messages API that a request can break, checked as the real server checks them.

`check(body)` raises `Refusal` with the status, type and (nearly) the words of the real API. Source: the API reference
and /reference/model-api.md. State that lasts over requests (thinking that was issued, the cache) is in `Memory`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

FIELDS = {
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "stream", "metadata",
    "stop_sequences", "output_config", "cache_control", "service_tier", "container", "diagnostics", "inference_geo",
    "speed", "compaction",
}  # fmt: skip
BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {
        "text",
        "tool_use",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "compaction",
        "web_search_tool_result",
        "web_fetch_tool_result",
    },
    "system": {"text"},
}
MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
IMAGE_LIMIT = 5 * 1024 * 1024


class Refusal(Exception):
    """The request broke a rule; the server answers with this error."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def need(condition: object, message: str) -> None:
    """Refuse with `message` unless the condition holds."""
    if not condition:
        raise Refusal(message)


def canonical(value: Any) -> str:
    """JSON text of a value in which cache markers do not count and the order of keys does."""
    return json.dumps(_without_marks(value), ensure_ascii=False)


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_marks(v) for k, v in value.items() if k != "cache_control"}
    return [_without_marks(v) for v in value] if isinstance(value, list) else value


def blocks_of(content: Any) -> list[Json]:
    """Content as a list of blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check(body: Any, *, plain: bool = False) -> None:
    """Refuse a body that breaks a rule; `plain`: an older server, which knows neither thinking nor cache markers."""
    need(isinstance(body, dict), "body: Input should be a valid dictionary")
    for name in ("temperature", "top_p", "top_k"):
        need(name not in body, f"{name}: this parameter is not supported by this API version")
    for name in body:
        need(name in FIELDS, f"{name}: Extra inputs are not permitted")
    need(isinstance(body.get("model"), str) and body["model"], "model: Field required")
    need(isinstance(body.get("max_tokens"), int) and body["max_tokens"] >= 1, "max_tokens: Field required")
    messages = body.get("messages")
    need(isinstance(messages, list) and messages, "messages: at least one message is required")
    if plain:
        need("thinking" not in body, "thinking: Extra inputs are not permitted")
        need("cache_control" not in json.dumps(body), "system.0.cache_control: Extra inputs are not permitted")
    _check_text(canonical(body))
    _check_options(body)
    _check_marks(body)
    for at, message in enumerate(messages):
        _check_message(at, message)
    _check_compaction(body, messages)
    need(
        messages[0]["role"] == "user" or blocks_of(messages[0]["content"])[0]["type"] == "compaction",
        'messages: first message must use the "user" role',
    )
    last = next(m for m in reversed(messages) if m["role"] != "system")
    need(
        last["role"] == "user" or paused(last),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    _check_pairs(messages)
    _check_images(messages)


def paused(message: Json) -> bool:
    """Whether a reply may be gone on with: it was paused in the work of a tool of the server (stop reason pause_turn)."""
    kinds = {block["type"] for block in blocks_of(message["content"])}
    return "server_tool_use" in kinds and "tool_use" not in kinds


def _check_server_tool(where: str, tool: Json) -> None:
    known = {"web_search_20250305": "web_search", "web_fetch_20250910": "web_fetch"}
    need(tool["type"] in known, f"{where}: Input tag {tool['type']!r} does not match any of the expected tags")
    need(tool["name"] == known[tool["type"]], f"{where}.name: Input should be {known[tool['type']]!r}")
    need(
        not ("allowed_domains" in tool and "blocked_domains" in tool),
        f"{where}: Only one of allowed_domains or blocked_domains can be specified",
    )
    fields = {"type", "name", "max_uses", "allowed_domains", "blocked_domains", "cache_control"}
    extra = set(tool) - fields - ({"citations", "max_content_tokens"} if tool["name"] == "web_fetch" else set())
    need(not extra, f"{where}.{extra}: Extra inputs are not permitted")


def _check_text(text: str) -> None:
    need(not re.search("[\ud800-\udfff]", text), "The request body is not valid JSON: no low surrogate in string")


def _check_options(body: Json) -> None:
    names = [tool.get("name") for tool in body.get("tools", [])]
    need(len(names) == len(set(names)), "tools: Tool names must be unique.")
    for at, tool in enumerate(body.get("tools", [])):
        need(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]), f"tools.{at}.name: String should match pattern")
        if "type" in tool:
            _check_server_tool(f"tools.{at}", tool)
            continue
        need(tool.get("input_schema", {}).get("type") == "object", f"tools.{at}.input_schema.type: Field required")
    choice = body.get("tool_choice", {}).get("type", "auto")
    need(choice in ("auto", "none"), "tool_choice: forced tool use is not supported by this model")
    thinking = body.get("thinking")
    if thinking is not None:
        need(thinking.get("type") == "adaptive", f"thinking: {thinking.get('type')!r} is not supported by this model")
        need(
            thinking.get("display") in (None, "summarized", "omitted"), "thinking.display: Input should be 'summarized'"
        )
    for at, block in enumerate(blocks_of(body.get("system") or [])):
        need(
            block.get("type") == "text" and block["text"].strip(), f"system.{at}: text content blocks must be non-empty"
        )


def _check_compaction(body: Json, messages: list[Json]) -> None:
    wanted = body.get("compaction")
    if wanted is not None:
        need(wanted.get("type") == "summarize", "compaction.type: Input should be 'summarize'")
        need(set(wanted) <= {"type", "instructions"}, "compaction: Extra inputs are not permitted")
    for at, message in enumerate(messages):
        for block in blocks_of(message["content"]):
            if block["type"] == "compaction":
                need(at == 0, f"messages.{at}: a compaction block must be the first of the conversation")
                need(block.get("signature"), "messages.0.content.0.compaction.signature: Field required")


def needs_beta(body: Json) -> bool:
    """Whether the request is only understood under the beta of compaction."""
    return "compaction" in body or blocks_of(body["messages"][0]["content"])[0]["type"] == "compaction"


def marks(body: Json) -> int:
    """How many cache markers the request carries."""
    return json.dumps(body).count('"cache_control":')


def _check_marks(body: Json) -> None:
    need(marks(body) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks(body)}.")


def _check_message(at: int, message: Json) -> None:
    where = f"messages.{at}"
    need(
        set(message) <= {"role", "content"},
        f"{where}.{(set(message) - {'role', 'content'})}: Extra inputs are not permitted",
    )
    role = message.get("role")
    need(role in BLOCKS, f"{where}.role: Input should be 'user', 'assistant' or 'system'")
    content = message.get("content")
    need(content, f"{where}: all messages must have non-empty content")
    for index, block in enumerate(blocks_of(content)):
        _check_block(f"{where}.content.{index}", str(role), block)


def _check_block(where: str, role: str, block: Json) -> None:
    kind = block.get("type")
    need(
        kind in BLOCKS[role], f"{where}: Input tag {kind!r} found using 'type' does not match any of the expected tags"
    )
    if kind == "text":
        need(block["text"], "messages: text content blocks must be non-empty")
        need(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
        need(role != "user" or not block.get("citations"), f"{where}.citations: not permitted in user messages")
    elif kind in ("thinking", "redacted_thinking"):
        need("cache_control" not in block, f"{where}.cache_control: thinking blocks cannot be cached")
        need(kind != "thinking" or "signature" in block, f"{where}.thinking.signature: Field required")
    elif kind == "tool_use":
        need(isinstance(block.get("input"), dict), f"{where}.tool_use.input: Input should be a valid dictionary")
        need(re.fullmatch(r"[a-zA-Z0-9_-]+", block.get("id", "")), f"{where}.tool_use.id: String should match pattern")
    elif kind == "tool_result":
        for index, inner in enumerate(blocks_of(block.get("content") or [])):
            need(
                inner.get("type") in BLOCKS["user"] - {"tool_result"},
                f"{where}.tool_result.content.{index}: wrong type",
            )
            need(
                inner.get("type") != "text" or inner["text"].strip(), "messages: text content blocks must be non-empty"
            )
        if block.get("is_error"):
            need(block.get("content"), f"{where}: content cannot be empty if `is_error` is true")


def _check_pairs(messages: list[Json]) -> None:
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "system":
            continue
        blocks = blocks_of(message["content"])
        if message["role"] == "assistant":
            _check_answered(at - 1, waiting, [])
            waiting = [b["id"] for b in blocks if b["type"] == "tool_use"]
            need(len(seen | set(waiting)) == len(seen) + len(waiting), f"messages.{at}: `tool_use` ids must be unique")
            seen |= set(waiting)
            continue
        answers = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        for index, block in enumerate(blocks):
            if block["type"] == "tool_result":
                need(
                    block["tool_use_id"] in waiting,
                    f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                    "previous message.",
                )
                need(
                    index == 0 or blocks[index - 1]["type"] == "tool_result",
                    f"messages.{at}: `tool_result` blocks must come first in the message that answers `tool_use` blocks",
                )
        need(len(answers) == len(set(answers)), f"messages.{at}: each tool_use must have a single result.")
        _check_answered(at - 1, waiting, answers)
        waiting = []
    _check_answered(len(messages) - 1, waiting, [])


def _check_answered(at: int, waiting: list[str], answers: list[str]) -> None:
    left = [i for i in waiting if i not in answers]
    need(
        not left,
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(left)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    )


def _images(messages: list[Json]) -> Iterator[tuple[str, Json]]:
    for at, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message["content"])):
            inner = blocks_of(block.get("content") or []) if block["type"] == "tool_result" else [block]
            yield from ((f"messages.{at}.content.{index}", b) for b in inner if b.get("type") == "image")


def _check_images(messages: list[Json]) -> None:
    found = list(_images(messages))
    longest = 2000 if len(found) > 20 else 8000
    for where, block in found:
        source = block["source"]
        if source["type"] != "base64":
            continue
        need(source["media_type"] in MAGIC, f"{where}.source.media_type: Input should be 'image/jpeg', 'image/png', …")
        need(
            len(source["data"]) <= IMAGE_LIMIT,
            f"{where}.image.source.base64: image exceeds 5 MB maximum: {len(source['data'])} bytes > 5242880 bytes",
        )
        try:
            data = base64.b64decode(source["data"], validate=True)
        except binascii.Error:
            raise Refusal(f"{where}.source.base64: invalid base64 data") from None
        need(data.startswith(MAGIC[source["media_type"]]), f"{where}: Image does not match the provided media type")
        if source["media_type"] == "image/png":
            width, height = struct.unpack(">II", data[16:24])
            need(
                max(width, height) <= longest,
                f"{where}: At least one of the image dimensions exceed max allowed size: {longest} pixels",
            )


@dataclass
class Memory:
    """What the server keeps between requests: the thinking that it issued, and which prefixes are cached."""

    issued: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Signature → (the block as JSON, hash of the prefix that it was made for)."""
    thought: dict[str, list[str]] = field(default_factory=dict)
    """Id of a call → signatures of the thinking blocks in the same reply."""
    cached: set[str] = field(default_factory=set)

    def check(self, body: Json) -> None:
        """Refuse thinking that was changed, moved to another conversation, or left out beside its call."""
        asked = [at for at, m in enumerate(body["messages"]) if m["role"] == "user" and not _answers(m)]
        for at, message in enumerate(body["messages"]):
            if message["role"] != "assistant":
                continue
            blocks = blocks_of(message["content"])
            here = [b.get("signature", "") for b in blocks if b["type"] == "thinking"]
            for index, block in enumerate(blocks):
                if block["type"] == "thinking":
                    self._check_thinking(f"messages.{at}.content.{index}", block, prefix_hash(body, at))
                elif block["type"] == "tool_use" and (here or at > max(asked, default=0)):  # may lack in earlier turns
                    missing = [s for s in self.thought.get(block["id"], []) if s not in here]
                    need(
                        not missing, f"messages.{at}: the `thinking` blocks of this message were left out or reordered"
                    )

    def _check_thinking(self, where: str, block: Json, prefix: str) -> None:
        text, made_for = self.issued.get(block["signature"], ("", ""))
        need(text == canonical(block), f"{where}: Invalid `signature` in `thinking` block")
        need(
            made_for == prefix,
            f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
        )

    def sign(self, body: Json, content: list[Json]) -> None:
        """Sign the thinking blocks of a reply to `body` and keep what was signed."""
        prefix = prefix_hash(body, len(body["messages"]))
        signatures = []
        for index, block in enumerate(content):
            if block["type"] == "thinking":
                text = f"{prefix}{index}{len(self.issued)}"
                block["signature"] = base64.b64encode(hashlib.sha256(text.encode()).digest() * 3).decode()
                self.issued[block["signature"]] = (canonical(block), prefix)
                signatures.append(block["signature"])
        for block in content:
            if block["type"] == "tool_use" and signatures:
                self.thought[block["id"]] = signatures

    def usage(self, body: Json, output: int) -> Json:
        """Count tokens (4 characters each) as fresh, written to and read from the cache, and keep what is marked."""
        parts = [*body.get("tools", []), *blocks_of(body.get("system") or [])]
        for message in body["messages"]:
            parts += blocks_of(message["content"])
        digest = hashlib.sha256()
        total, written, read = 0, 0, 0
        keys: list[tuple[str, int]] = []
        for index, part in enumerate(parts):
            digest.update(canonical(part).encode())
            total += len(canonical(part)) // 4 + 1
            keys.append((digest.hexdigest(), total))
            if "cache_control" in part:
                for key, tokens in keys[max(0, index - 20) :]:  # the server looks back 20 blocks from a marker
                    read = max(read, tokens) if key in self.cached else read
                written = total
        self.cached |= {keys[i][0] for i, part in enumerate(parts) if "cache_control" in part}
        return {"input_tokens": total - max(written, read), "output_tokens": output,
                "cache_creation_input_tokens": max(0, written - read), "cache_read_input_tokens": read}  # fmt: skip


def _answers(message: Json) -> bool:
    return any(block["type"] == "tool_result" for block in blocks_of(message["content"]))


def prefix_hash(body: Json, upto: int) -> str:
    """Hash of system, tools and the first `upto` messages: what thinking is bound to."""
    parts = [blocks_of(body.get("system") or []), body.get("tools", [])]
    parts += [[m["role"], blocks_of(m["content"])] for m in body["messages"][:upto]]
    return hashlib.sha256(canonical(parts).encode()).hexdigest()
