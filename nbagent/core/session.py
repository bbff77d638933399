"""One conversation: an append-only transcript that is valid by construction, and its records on disk.

`Transcript` has one append point. A reply's calls stay open until one message answers all of them, and nothing else
can be appended before that, so no history can lack a result. It knows nothing of where the records go (a `Store`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from nbagent.core import images
from nbagent.core.events import Event, InputDelta, TextDelta, ThinkingDelta, innermost
from nbagent.core.events_json import to_json
from nbagent.core.messages import Block, Json, Message, Usage, clean_value, text_block
from nbagent.core.ports import Store

NOT_STARTED = "Not started: the run was stopped before this call. Nothing of it happened."
CUT_OFF = "Interrupted: the run was stopped while this call ran. It may have taken effect in part."

_NOT_LOGGED = (TextDelta, ThinkingDelta, InputDelta)


class NoStore:
    """The double of a store: keeps the records in a list."""

    def __init__(self) -> None:
        self.records: list[Json] = []

    def append(self, record: Json) -> None:
        """Keep `record` in `records`."""
        self.records.append(record)


def result_block(call_id: str, content: Sequence[Block], *, is_error: bool = False) -> Block:
    """Return the one `tool_result` block that answers the call `call_id`."""
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": list(content)}
    if is_error:
        block["is_error"] = True
    return block


class Transcript(Sequence[Message]):
    """The messages as the API gets them. Read it like a list; append through `ask`, `reply` and `answer` only."""

    def __init__(self, store: Store) -> None:
        self._messages: list[Message] = []
        self._open: list[str] = []
        self.call_ids: set[str] = set()
        self._store = store
        self._digest = hashlib.sha256()

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Ids of the calls of the last reply that have no result yet."""
        return tuple(self._open)

    @property
    def prefix(self) -> str:
        """Hash of all messages so far (16 hex digits)."""
        return self._digest.hexdigest()[:16]

    def ask(self, blocks: Sequence[Block]) -> None:
        """Append what the person (or the runtime) says; open calls are first answered as not started."""
        if self._open:
            self.answer({})
        self._append({"role": "user", "content": list(blocks)})

    def reply(self, content: Sequence[Block]) -> None:
        """Append a whole reply of the model as it was received; its calls are open from now on."""
        if self._open:
            self.answer({})
        self._append({"role": "assistant", "content": list(content)})
        self._open = [str(b["id"]) for b in content if b.get("type") == "tool_use"]
        self.call_ids.update(self._open)

    def take_over(self, messages: Sequence[Message]) -> None:
        """Begin with the messages of another transcript, as they are: a fork replays the identical prefix.

        Only before anything else was appended. Calls that the last of them leaves open are answered as any others.
        """
        if self._messages:
            raise ValueError("a transcript that has begun can't take over another one")
        for message in messages:
            self._append(message)
            calls = [str(b["id"]) for b in message["content"] if b.get("type") == "tool_use"]
            self._open = calls if message["role"] == "assistant" else []
            self.call_ids.update(self._open)

    def answer(self, results: Mapping[str, Block], words: Sequence[str] = ()) -> None:
        """Append the one message that answers every open call, in call order; a call without a result was not started.

        `words` are said to the model after the results, in the same message.
        """
        blocks = [results.get(i) or result_block(i, [text_block(NOT_STARTED)], is_error=True) for i in self._open]
        blocks += [text_block(text) for text in words]
        self._open = []
        if blocks:
            self._append({"role": "user", "content": blocks})

    def _append(self, message: Message) -> None:
        if message["role"] == "user":  # a reply is kept as it came: its thinking is bound to the bytes
            message = clean_value(message)
        encoded = json.dumps(message, sort_keys=True).encode()  # what can't be sent must fail before it is kept
        self._messages.append(message)
        self._digest.update(encoded)
        self._store.append({"type": "message", "message": message})


class Session:
    """One conversation: `system` and `tools` never change, the transcript only grows; `usage` and `cost` are sums.

    Messages before index `images_from` are sent without their images.
    """

    def __init__(
        self, session_id: str, *, system: str, tools: tuple[Json, ...], store: Store, about: Json | None = None
    ) -> None:
        self.id = session_id
        self.system = system
        self.tools = tools
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.runs = 0
        self.images_from = 0
        self._store = store
        store.append({"v": 1, "type": "session", "id": session_id, **(about or {}), "system": system, "tools": tools})
        self.transcript = Transcript(store)

    def messages(self) -> Sequence[Message]:
        """Return the transcript as it is sent: older images left out where they are too many, or were refused."""
        if images.too_many(self.transcript[self.images_from :]):
            self.leave_out_images(newest=images.too_many(self.transcript[-1:]))
        return images.without_images(self.transcript, self.images_from) if self.images_from else self.transcript

    def leave_out_images(self, *, newest: bool) -> bool:
        """Send no image of the transcript so far from now on; keep those of its last message unless `newest`.

        Returns whether that leaves out any that was sent until now.
        """
        before = len(self.transcript) - (not newest)
        dropped = any(images.images(self.transcript[self.images_from : before]))
        if dropped:
            self.images_from = before
        return dropped

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Add one reply's usage; an unknown price makes the sum unknown."""
        self.usage += usage
        self.cost = None if self.cost is None or cost is None else self.cost + cost

    def log(self, event: Event) -> None:
        """Keep an event in the session's records; pieces of text and requests are left out, messages are there."""
        if isinstance(innermost(event), _NOT_LOGGED):
            return
        inner = record = to_json(event)
        while isinstance(inner.get("event"), dict):
            inner = inner["event"]
        inner.pop("new", None)  # a request is its new messages, which are records of their own, and the prefix's hash
        self._store.append({"type": "event", "event": record})
