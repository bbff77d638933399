"""A conversation that goes on from a point of another one: what was before a cell's last run, or after a shown one.

The fork is a session of its own, with a file of its own that says `forked_from`; the messages before the point are
taken over as they were, so that thinking stays bound to its prefix and the prompt cache stays warm. A finished run keeps
the hash of its past, so that its answer never passes for one that another conversation would give. Must not know why one
forks. Read `fork`, then `PastNow`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from nbagent.app.conversation import Conversation
from nbagent.app.extension import Extension
from nbagent.app.place import Place
from nbagent.config import Settings
from nbagent.core.messages import Json, Message
from nbagent.core.seeding import seed, thinks
from nbagent.core.tools import Tool
from nbagent.extend.runs import FinishedRun
from nbagent.extend.sessions import FOLDER, read_session
from nbagent.tools.results import ResultStore

OTHER_PREFIX = (
    "The conversation goes on in a new session without the model's earlier thinking, because the system prompt or the "
    "tools are not those of then."
)
OTHER_VOICE = (
    "The conversation goes on in a new session without the model's earlier thinking, because the model is at another "
    "server, or of another kind."
)

_NONE: Mapping[str, int] = MappingProxyType({})
_ID = re.compile(r"[\w-]{1,80}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Past:
    """The first messages of a session, to go on from; `began` and `voice` as in `Conversation` ("": not known)."""

    session: str
    system: str
    tools: Sequence[Json]
    messages: Sequence[Message]
    began: Mapping[str, int] = field(default_factory=dict[str, int])
    voice: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a record that was shown ends: after the first `count` messages of a session; `began` as in `Conversation`."""

    session: str
    count: int
    began: Mapping[str, int] = field(default_factory=dict[str, int])


def before(conversation: Conversation, cell: str) -> Past | None:
    """Return what was before the last run of `cell`, None where it has no finished run in this conversation."""
    first = conversation.began.get(cell)
    if first is None:
        return None
    session = conversation.session
    earlier = {other: place for other, place in conversation.began.items() if place < first}
    return Past(session.id, session.system, session.tools, session.transcript[:first], earlier, conversation.voice)


def whole(conversation: Conversation) -> Past:
    """Return all of a conversation."""
    session = conversation.session
    return Past(
        session.id, session.system, session.tools, session.transcript[:], conversation.began, conversation.voice
    )


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
    last = next(extension.runs.of_cell(cell), None)
    if last is not None and (shown is None or shown.session == last.session):
        began = {} if shown is None else {other: first for other, first in shown.began.items() if first < last.first}
        return stored(extension.folder, last.session, last.first, began)
    return stored(extension.folder, shown.session, shown.count, shown.began) if shown is not None else None


def stored(folder: Path, session: str, count: int, began: Mapping[str, int] = _NONE) -> Past | None:
    """Return the first `count` messages of a session on disk, None where they are not there."""
    if not _ID.fullmatch(session):
        return None
    found = read_session(folder / FOLDER / f"{session}.jsonl")
    if found is None or not 0 <= count <= len(found.messages):
        return None
    system, tools = found.about.get("system"), found.about.get("tools")
    if not isinstance(system, str) or not isinstance(tools, list):
        return None
    return Past(session, system, tools, found.messages[:count], began, str(found.about.get("voice") or ""))


def past_hashes(messages: Iterable[Message]) -> list[str]:
    """Return the hash of no message, of the first one, of the first two … (16 hex digits each).

    What was thought is left out, for a fork may have to leave it out too: it makes no other conversation.
    """
    made = hashlib.sha256()
    hashes = [made.hexdigest()[:16]]
    for message in seed(messages):
        made.update(json.dumps(message, sort_keys=True).encode())
        hashes.append(made.hexdigest()[:16])
    return hashes


@dataclass(frozen=True, slots=True)
class PastNow:
    """What a run of the running cell would go on from now: the hashes of it (`past_hashes`), and `began` of it.

    `ordered`: it is not known which cell runs, so that a run may have stood anywhere in this conversation.
    """

    hashes: Sequence[str]
    began: Mapping[str, int]
    ordered: bool = True

    @classmethod
    async def of(cls, extension: Extension, place: Place, *, new: bool) -> PastNow:
        """Look it up; `new`: the cell asks for a conversation of its own. Reads and hashes on another thread."""
        if new:
            return cls(past_hashes(()), {})
        past = await asyncio.to_thread(past_of, extension, place)
        conversation = extension.conversations.get(place.document)
        if past is not None:
            return cls(await asyncio.to_thread(past_hashes, past.messages), past.began)
        if conversation is None:
            return cls(past_hashes(()), {})
        hashes = await asyncio.to_thread(past_hashes, conversation.session.transcript[:])
        known = place.notebook is not None and place.notebook.own_cell is not None
        return cls(hashes, conversation.began, ordered=known)

    def is_of(self, run: FinishedRun, *, first: bool) -> bool:
        """Whether `run` was given after the same messages; `first`: no cell above the running one is an agent's."""
        if run.past == self.hashes[-1] or (first and run.past == self.hashes[0]):
            return True
        return not self.ordered and run.first < len(self.hashes) and run.past == self.hashes[run.first]


def fork(
    past: Past,
    settings: Settings,
    tools: Callable[[ResultStore], list[Tool]],
    folder: Path,
    notebook: str,
    *,
    before: Conversation | None = None,
) -> tuple[Conversation, str]:
    """Return a conversation that goes on from `past`, and a sentence for the person where it lost something on the way.

    `before` is this kernel's conversation of the same notebook: the long results that its messages name, and the rules
    that the person keeps, are the new one's too. What the model has read since is not.
    """
    origin: Json = {"session": past.session, "messages": len(past.messages)}
    made = Conversation.begin(settings, tools, folder, notebook, forked_from=origin)
    made.began = dict(past.began)
    if before is not None:
        made.results, made.kept = before.results, before.kept
    same = json.dumps([past.system, past.tools]) == json.dumps([made.session.system, made.session.tools])
    moved = past.voice not in {"", made.voice}
    if same and not moved:
        made.session.transcript.take_over(past.messages)
        return made, ""
    served = () if moved else [str(tool["name"]) for tool in made.session.tools if "type" in tool]
    made.session.transcript.take_over(seed(past.messages, served))
    if not thinks(past.messages):
        return made, ""
    return made, OTHER_VOICE if moved else OTHER_PREFIX
