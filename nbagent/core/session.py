"""One conversation: an append-only transcript that is valid by construction, and its records on disk.

`Transcript` has one append point. A reply's calls stay open until one message answers all of them, and nothing else
can be appended before that, so no history can lack a result. It knows nothing of where the records go (a `Store`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from nbagent.core import images, sizes
from nbagent.core.events import Event, InputDelta, TextDelta, ThinkingDelta, innermost
from nbagent.core.events_json import to_json
from nbagent.core.messages import Block, Json, Message, Usage, clean_value, text_block
from nbagent.core.ports import Store

NOT_STARTED = "Not started: the run was stopped before this call. Nothing of it happened."
CUT_OFF = "Interrupted: the run was stopped while this call ran. It may have taken effect in part."
MAYBE = (
    "Interrupted: the kernel ended before this call was known to have finished. It was allowed, so it may or may not have "
    "happened, in whole or in part. It was not run again. Look at what is there before you do it anew."
)
NEVER_BEGAN = "Interrupted: the kernel ended before this call began. Nothing of it happened."

Mask = Callable[[Any], Any]
"""Returns a JSON value without what must not leave the kernel; what it returned before it returns as it is."""

_NOT_LOGGED = (TextDelta, ThinkingDelta, InputDelta)


def same(value: Any) -> Any:
    """Mask nothing."""
    return value


class NoStore:
    """The double of a store: keeps the records in a list."""

    def __init__(self) -> None:
        self.records: list[Json] = []

    def append(self, record: Json) -> None:
        """Keep `record` in `records`."""
        self.records.append(record)

    def beside(self, name: str) -> NoStore:  # noqa: ARG002  (the port's shape)
        """Return another one."""
        return NoStore()


def result_block(call_id: str, content: Sequence[Block], *, is_error: bool = False) -> Block:
    """Return the one `tool_result` block that answers the call `call_id`."""
    block: Block = {"type": "tool_result", "tool_use_id": call_id, "content": list(content)}
    if is_error:
        block["is_error"] = True
    return block


class Transcript(Sequence[Message]):
    """The messages as the API gets them. Read it like a list; append through `ask`, `reply` and `answer` only."""

    def __init__(self, store: Store, mask: Mask = same) -> None:
        self._mask = mask
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

    def use(self, mask: Mask) -> None:
        """Have what is said to the model from here on go through `mask`."""
        self._mask = mask

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
            self._append(message, before=True)
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

    def _append(self, message: Message, *, before: bool = False) -> None:
        if message["role"] == "user":  # a reply is kept as it came: its thinking is bound to the bytes
            message = clean_value(message)
            message = message if before else self._mask(message)  # the one way to the model: no tool can forget it
        encoded = json.dumps(message, sort_keys=True).encode()  # what can't be sent must fail before it is kept
        self._messages.append(message)
        self._digest.update(encoded)
        self._store.append({"type": "message", "message": message})


class Session:
    """One conversation: `system` and `tools` never change, the transcript only grows; `usage` and `cost` are sums.

    Messages before index `images_from` are sent without their images. A session that was summed up ends: `newest` is the
    one that goes on. All that is sent or kept goes through `mask`.
    """

    def __init__(
        self,
        session_id: str,
        *,
        system: str,
        tools: tuple[Json, ...],
        store: Store,
        about: Json | None = None,
        mask: Mask = same,
    ) -> None:
        self.id = session_id
        self.mask = mask
        self._masking: Callable[[], Mask] = lambda: mask
        self.system: str = mask(system)
        self.tools: tuple[Json, ...] = mask(tools)
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.runs = 0
        self.images_from = 0
        self.store = store
        self._heir: Session | None = None
        self._measured = (0, 0)
        self._about = about or {}
        head = {"v": 1, "type": "session", "id": session_id, **self._about}
        store.append({**head, "system": self.system, "tools": self.tools})
        self.transcript = Transcript(store, mask)

    def use(self, masking: Callable[[], Mask]) -> None:
        """Have all that is sent or kept from here on go through what `masking` makes, unless something does already."""
        if self.mask is same:
            self._masking, self.mask = masking, masking()
            self.transcript.use(self.mask)

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

    # ── going on from a summary ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def newest(self) -> Session:
        """The session in which this conversation goes on: this one, unless it was summed up."""
        found = self
        while found._heir is not None:
            found = found._heir
        return found

    def successor(self, new_id: str = "", about: Json | None = None) -> Session:
        """Return an empty session with the same system prompt and tools, in which this conversation can go on.

        Its id tells of which one it is (`-sum1`, `-sum2` …), its first record says `compacted_from`; ids of calls stay
        unique in both, and what was used is counted on. It counts once `hand_on` is called.
        """
        name, mark, number = self.id.rpartition("-sum")
        new_id = new_id or (f"{name}-sum{int(number) + 1}" if mark and number.isdecimal() else f"{self.id}-sum1")
        origin = {"compacted_from": {"session": self.id, "messages": len(self.transcript)}}
        store = self.store.beside(new_id)
        made = Session(
            new_id,
            system=self.system,
            tools=self.tools,
            store=store,
            about={**(about or self._about), **origin},
        )
        made.use(self._masking)  # anew: what it tells once it must tell here, too
        made.usage, made.cost, made.runs = self.usage, self.cost, self.runs
        made.transcript.call_ids = self.transcript.call_ids
        return made

    def hand_on(self, heir: Session) -> None:
        """Say that the conversation goes on in `heir`."""
        self._heir = heir
        self.store.append({"type": "compacted", "into": heir.id})

    # ── how much there is ────────────────────────────────────────────────────────────────────────────────────────────

    def measure(self, usage: Usage) -> None:
        """Take how much the last request and its reply were, as the server counted them, if it did."""
        if usage.input + usage.cache_write + usage.cache_read:
            self._measured = (len(self.transcript), usage.total)

    def size(self) -> int:
        """Return how many tokens the next request takes: what the server counted last, and an estimate of the rest."""
        count, tokens = self._measured
        if not count:
            tokens = sizes.of_text(self.system) + sizes.of_tools(self.tools)
        return tokens + sum(sizes.of_message(message) for message in self.transcript[count:])

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
        self.store.append({"type": "event", "event": self.mask(record)})
