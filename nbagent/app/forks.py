"""A conversation that goes on from a point of another one: what was before a cell's last run, or after a shown one.

The fork is a session of its own, with a file of its own that says `forked_from`; the messages before the point are
taken over as they were, so that thinking stays bound to its prefix and the prompt cache stays warm. Must not know why
one forks. Read `fork`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.place import Place
from nbagent.config import Settings
from nbagent.core.messages import Json, Message, text_block
from nbagent.core.tools import Tool
from nbagent.extend.runs import RunStore
from nbagent.extend.sessions import FOLDER, read_session
from nbagent.tools.results import ResultStore

OTHER_PREFIX = (
    "The conversation goes on in a new session without the model's earlier thinking, because the system prompt or the "
    "tools are not those of then."
)

_THINKING = frozenset({"thinking", "redacted_thinking"})
_ID = re.compile(r"[\w-]{1,80}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Past:
    """The first messages of a session, to go on from; `began` as in `Conversation`."""

    session: str
    system: str
    tools: Sequence[Json]
    messages: Sequence[Message]
    began: Mapping[str, int] = field(default_factory=dict[str, int])


def before(conversation: Conversation, cell: str) -> Past | None:
    """Return what was before the last run of `cell`, None where it has no finished run in this conversation."""
    first = conversation.began.get(cell)
    if first is None:
        return None
    session = conversation.session
    earlier = {other: place for other, place in conversation.began.items() if place < first}
    return Past(session.id, session.system, session.tools, session.transcript[:first], earlier)


def past_of(extension: Extension, place: Place) -> Past | None:
    """Return where the running cell's conversation goes on from, None where that is its end, or nothing is known.

    In this kernel: before the cell's last run, if that finished. In a new one: before the cell's last run, or after the
    last record that was shown from the store, whichever the notebook's order asks for.
    """
    cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
    conversation = extension.conversations.get(place.document)
    if conversation is not None:
        return before(conversation, cell)
    shown = extension.shown.get(place.document)
    last = next(RunStore(extension.folder).of_cell(cell), None)
    if last is not None and (shown is None or shown[0] == last.session):
        return stored(extension.folder, last.session, last.first)
    return stored(extension.folder, *shown) if shown is not None else None


def stored(folder: Path, session: str, count: int) -> Past | None:
    """Return the first `count` messages of a session on disk, None where they are not there."""
    if not _ID.fullmatch(session):
        return None
    found = read_session(folder / FOLDER / f"{session}.jsonl")
    if found is None or not 0 <= count <= len(found.messages):
        return None
    system, tools = found.about.get("system"), found.about.get("tools")
    if not isinstance(system, str) or not isinstance(tools, list):
        return None
    return Past(session, system, tools, found.messages[:count])


def fork(
    past: Past,
    settings: Settings,
    tools: Callable[[ResultStore], list[Tool]],
    folder: Path,
    notebook: str,
) -> tuple[Conversation, str]:
    """Return a conversation that goes on from `past`, and a sentence for the person where it lost something on the way."""
    origin: Json = {"session": past.session, "messages": len(past.messages)}
    made = Conversation.begin(settings, tools, folder, notebook, forked_from=origin)
    made.began = dict(past.began)
    same = json.dumps([past.system, past.tools]) == json.dumps([made.session.system, made.session.tools])
    thought = any(block.get("type") in _THINKING for message in past.messages for block in message["content"])
    if same or not thought:
        made.session.transcript.take_over(past.messages)
        return made, ""
    made.session.transcript.take_over([_without_thinking(message) for message in past.messages])
    return made, OTHER_PREFIX


def _without_thinking(message: Message) -> Message:
    kept = [block for block in message["content"] if block.get("type") not in _THINKING]
    return {**message, "content": kept or [text_block("(thinking only)")]}
