"""What a conversation is summed up with and into: the settings, the words to the model, and the message that goes on.

Pure. Who asks the model, and when, is in `summing`. Read `Compaction`, then `going_on`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.messages import Block, Json, Message, plain_text, text_block
from nbagent.core.ports import Model
from nbagent.core.session import Session

FROM_RUNTIME = "(From the runtime, not the person:)"

SUM_UP = f"""{FROM_RUNTIME} This conversation gets too long and goes on in a new one, which has nothing of this one but
what you write now (and the person's own messages, word for word). Call no tool. Write, under these headings:
1. Task: what the person wants, and everything they said about how to do it; what they forbade or decided.
2. Done: what was done so far, with the cells (by id and In[n]), files and variables that were made or changed.
3. Found: the facts and numbers that matter, exactly as they were found.
4. Errors: what failed, and how it was solved or why it was not.
5. State: which variables hold what now; which cells ran and which did not.
6. Left: what is still to do, and the very next step.
Leave out what no longer matters. Say only what is in this conversation."""

DIGEST_SYSTEM = "You sum up a conversation between a person and an agent that works in a Jupyter notebook."

_INTRO = (
    f"{FROM_RUNTIME} The conversation so far was too long and was summed up. Cells that you had read you must read again "
    "before you edit them."
)
GO_ON = f"{FROM_RUNTIME} Go on with what the person asked for last, from where the summary ends."

_CONTEXT, _ASKED, _ASKED_END = "<context>", "<asked>\n", "\n</asked>"
_ROOM = 60_000
_NEWEST, _OLDER = 20_000, 2_000


async def _nothing(_: Session) -> Sequence[Block]:
    return ()


def _no_window(_: Model) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Compaction:
    """How conversations that get too long are summed up.

    `at` is the share of the model's context window (0 to 1) from which that happens; `window` gives the tokens of a
    model's (None: not known, so only when the server says that it is full). `standing` gives what the model
    must be told anew, of the session that ends; `moved` hears in which session the conversation goes on. `begins`
    gives the id of that one and what its first record says ("" and {}: told from the session that ends).
    """

    at: float = 0.8
    window: Callable[[Model], int | None] = _no_window
    standing: Callable[[Session], Awaitable[Sequence[Block]]] = _nothing
    moved: Callable[[Session], None] = lambda _: None
    begins: Callable[[], tuple[str, Json]] = lambda: ("", {})


def asked_for(messages: Sequence[Message], *, whole_first: bool = False) -> list[str]:
    """Return the person's own words, oldest first, those that an earlier summary kept included.

    `whole_first`: the whole first message is what was asked (a subagent's).
    """
    found: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] != "user" or any(block.get("type") == "tool_result" for block in message["content"]):
            continue
        for text in (str(b["text"]) for b in message["content"] if b.get("type") == "text"):
            if (kept := _kept_before(text)) is not None:
                found += kept
            elif not text.startswith("(From ") and ((whole_first and not index) or not text.startswith(_CONTEXT)):
                found.append(text)
    return found


def _kept_before(text: str) -> list[str] | None:
    """Return the person's words that an earlier summary kept in `text`, None where it is none of ours."""
    if not text.startswith(_ASKED):
        return None
    try:
        kept: Any = json.loads(text.removeprefix(_ASKED).removesuffix(_ASKED_END))
    except ValueError:  # the person wrote it so
        return None
    return [str(one) for one in kept] if isinstance(kept, list) else None


def going_on(
    summary: str, asked: Sequence[str], standing: Sequence[Block], *, by_api: bool, in_run: bool, room: int = _ROOM
) -> list[Block]:
    """Return the blocks of the message with which a conversation goes on after a summary, at most about `room` characters.

    `by_api`: the summary stands in a block of its own before it. `in_run`: the model goes on by itself.
    """
    kept = fitting(asked, room // 2)
    said = f"{_INTRO}\n\n" + ("" if by_api else f"<summary>\n{clipped(summary.strip(), room)}\n</summary>")
    blocks = [text_block(said.strip()), *standing]
    if kept:
        blocks.append(text_block(_ASKED + json.dumps(kept, ensure_ascii=False, indent=0) + _ASKED_END))
    return [*blocks, text_block(GO_ON)] if in_run else blocks


def fitting(asked: Sequence[str], room: int) -> list[str]:
    """Return the person's words in at most about `room` characters: the newest whole, older ones cut, the first always."""
    kept: list[str] = []
    for place, text in reversed(list(enumerate(asked))):
        newest, first = place == len(asked) - 1, place == 0
        cut = clipped(text, min(_NEWEST if newest else _OLDER, max(room, 500)))
        if len(cut) > room and not newest and not first:
            continue
        room -= len(cut)
        kept.append(cut)
    return kept[::-1]


def clipped(text: str, limit: int) -> str:
    """Return head and tail of a long text, and how much was left out between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def digest(messages: Sequence[Message], room: int) -> str:
    """Return a conversation as plain text in at most about `room` characters: its beginning and, mostly, its end."""
    lines = [line for message in messages for line in _lines(message)]
    each = max(200, room // 20)
    lines = [clipped(line, each) for line in lines]
    head: list[str] = []
    left = room // 4
    while lines and len(lines[0]) <= left:
        left -= len(lines[0])
        head.append(lines.pop(0))
    tail: list[str] = []
    left = room - room // 4
    while lines and len(lines[-1]) <= left:
        left -= len(lines[-1])
        tail.append(lines.pop())
    gap = [f"… {len(lines):,} entries left out …"] if lines else []
    return "\n\n".join([*head, *gap, *tail[::-1]])


def _lines(message: Message) -> Iterator[str]:
    who = "Agent" if message["role"] == "assistant" else "Person"
    for block in message["content"]:
        match block.get("type"):
            case "text":
                yield f"{who}: {block['text']}"
            case "tool_use":
                yield f"Agent calls {block['name']}({json.dumps(block['input'], ensure_ascii=False)})"
            case "tool_result":
                yield f"Result: {plain_text(block.get('content') or '')}"
            case "compaction":
                yield f"Summary of what was before: {block.get('content') or ''}"
            case "image":
                yield "[an image]"
            case _:
                pass
