"""How one server wants to be asked: which headers, which optional fields, where the cache markers go.

Anthropic's own API gets the SDK's headers as they are. Any other server (a gateway, LM Studio, Ollama, llama.cpp, vLLM)
gets the key in both headers that are in use, and optional fields only for Claude models; if it answers that it does not
know the version header or a field, `Dialect.simpler` says how to ask it once more, and the answer is remembered.
This module knows nothing of the client that sends. Read `Dialect` first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from nbagent.core.messages import Block, Json, Message
from nbagent.core.ports import Request
from nbagent.core.seeding import begins_with_summary, in_words
from nbagent.models import catalog

Auth = Literal["auto", "bearer", "x-api-key", "both"]
"""Which header carries the key; "auto" is bearer for Anthropic's own API and both for any other server."""

OLD_VERSION = "2023-06-01"
COMPACTION = "compact-2026-09-04"
"""The beta in which the API sums up conversations."""

_ABOUT_VERSION = re.compile(r"anthropic[-_ ]?version|api[-_ ]version|version header", re.IGNORECASE)
_ABOUT_FIELD = re.compile(r"thinking|cache_control", re.IGNORECASE)
_MARK = {"type": "ephemeral"}
_NOT_CACHEABLE = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to ask one server. `home` is Anthropic's own API; `old_version` sends the version header of 2023.

    `compaction`: the server can sum a conversation up itself, and takes its own summary back.
    """

    home: bool
    auth: Auth
    thinking: bool
    caching: bool
    old_version: bool = False
    compaction: bool = False

    @classmethod
    def of(
        cls, model: str, *, home: bool, auth: Auth = "auto", thinking: bool | None = None, caching: bool | None = None,
        compaction: bool | None = None,
    ) -> Dialect:  # fmt: skip
        """Return the first dialect to try with `model`; what is not given follows its name and its server."""
        return cls(
            home=home,
            auth=("bearer" if home else "both") if auth == "auto" else auth,
            thinking=catalog.thinks_adaptively(model) if thinking is None else thinking,
            caching=catalog.is_claude(model) if caching is None else caching,
            compaction=(home and catalog.is_claude(model)) if compaction is None else compaction,
        )

    def simpler(self, status: int, said: str) -> Dialect | None:
        """Return the dialect to try after the server refused with `status`, saying `said`; None: the refusal stands."""
        if self.home or status not in (400, 401, 403, 422):
            return None
        if not self.old_version and _ABOUT_VERSION.search(said):
            return replace(self, old_version=True)
        # A complaint about a signature is about a thinking *block* of the transcript: leaving the field out cures nothing.
        if (
            (self.thinking or self.caching)
            and status in (400, 422)
            and _ABOUT_FIELD.search(said)
            and "signature" not in said
        ):
            return replace(self, thinking=False, caching=False)
        return None

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers to send beside the client's own; `key` is "" where the client has other credentials."""
        headers: dict[str, str] = {}
        if key and self.auth in ("both", "x-api-key"):
            headers["x-api-key"] = key
        if self.old_version:
            headers["anthropic-version"] = OLD_VERSION
        return headers


def request_body(model: str, request: Request, dialect: Dialect, longest: int | None = None) -> Json:
    """Return the body of a streamed request. The transcript is not changed, and only marked messages are copied.

    `longest`: tokens of the model's longest output, None where only the catalog may know.
    """
    served = catalog.is_claude(model)  # other servers run no tools themselves
    limit = catalog.facts(model).max_output if longest is None else longest
    messages = request.messages if dialect.compaction else in_words(request.messages)
    body: Json = {
        "model": model,
        "max_tokens": request.max_tokens if limit is None else min(request.max_tokens, limit),
        "messages": marked(messages) if dialect.caching else list(messages),
        "stream": True,
    }
    if request.system.strip():
        system: Block = {"type": "text", "text": request.system, "cache_control": _MARK}
        body["system"] = [system] if dialect.caching else request.system
    if tools := [tool for tool in request.tools if served or "type" not in tool]:
        body["tools"] = tools
    if dialect.thinking:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    if request.compaction is not None and dialect.compaction:
        wishes = {"instructions": request.compaction} if request.compaction.strip() else {}
        body["compaction"] = {"type": "summarize", **wishes}
    return body


def counted(body: Json) -> Json:
    """Return the body with which a server is asked how many tokens a request is."""
    kept = {name: body[name] for name in ("model", "messages", "system", "tools", "thinking") if name in body}
    return {**kept, "messages": kept["messages"] or [{"role": "user", "content": "."}]}


def beta_of(body: Json) -> str:
    """Return the name of the beta that a request needs, "" where it needs none."""
    return COMPACTION if "compaction" in body or begins_with_summary(body["messages"]) else ""


def marked(messages: Sequence[Message]) -> list[Message]:
    """Return `messages` with a cache marker on the last cacheable block of the last two messages of the user.

    The last one makes the server keep the whole prefix, the one before is where the turn before kept it: the server
    looks back only 20 blocks from a marker, and a turn with many calls is longer than that. With the one on `system`
    (which covers the tools) that makes three; the API takes four.
    """
    result = list(messages)
    left = 2
    for index in range(len(result) - 1, -1, -1):
        if result[index].get("role") != "user":
            continue
        result[index] = _with_mark(result[index])
        left -= 1
        if not left:
            break
    return result


def _with_mark(message: Message) -> Message:
    content: Any = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for index in range(len(content) - 1, -1, -1):
        block: Block = content[index]
        blank_text = block.get("type") == "text" and not str(block.get("text") or "").strip()
        if block.get("type") in _NOT_CACHEABLE or blank_text:
            continue
        copied = list(content)
        copied[index] = {**block, "cache_control": _MARK}
        return {**message, "content": copied}
    return message
