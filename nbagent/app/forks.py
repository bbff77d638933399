"""A conversation that goes on from a point of another one: what was before a cell's last run, or after a shown one.

The fork is a session of its own, with a file of its own that says `forked_from`; the messages before the point are
taken over as they were, so that thinking stays bound to its prefix and the prompt cache stays warm. A finished run keeps
the hash of its past, so that its answer never passes for one that another conversation would give. Must not know why one
forks. Read `fork`, then `PastNow`.
"""

from __future__ import annotations

import asyncio
import copy
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
from nbagent.app.ways import NO_WAYS, Ways
from nbagent.config import Settings
from nbagent.core.messages import Block, Json, Message
from nbagent.core.seeding import seed, thinks
from nbagent.core.tools import Tool
from nbagent.extend.runs import FinishedRun
from nbagent.extend.seals import Seals
from nbagent.extend.sessions import FOLDER, Stored, read_session
from nbagent.tools.results import ResultStore

OTHER_PREFIX = (
    "The conversation goes on in a new session without the model's earlier thinking, because the system prompt or the "
    "tools are not those of then."
)
OTHER_VOICE = (
    "The conversation goes on in a new session without the model's earlier thinking, because the model is at another "
    "server, or of another kind."
)
OTHER_MODEL = "This branch goes on without the earlier thinking, because it was another model's."

_NONE: Mapping[str, int] = MappingProxyType({})
_ID = re.compile(r"[\w-]{1,80}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Past:
    """The first messages of a session, to go on from; `began` and `voice` as in `Conversation` ("": not known).

    `closing` are results for calls that the last message leaves open (the kernel ended there). `model`: of the last run
    before, `kernel`: where it was said ("": not known). `whole` is the session on disk, if these are all of its messages.
    """

    session: str
    system: str
    tools: Sequence[Json]
    messages: Sequence[Message]
    began: Mapping[str, int] = field(default_factory=dict[str, int])
    voice: str = ""
    closing: Mapping[str, Block] = field(default_factory=dict[str, Block])
    model: str = ""
    kernel: str = ""
    whole: Stored | None = None


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
    voice = conversation.voice
    return Past(
        session.id, session.system, session.tools, session.transcript[:first], earlier, voice, model=conversation.model
    )


def all_of(conversation: Conversation) -> Past:
    """Return all that was said in a conversation of this kernel."""
    session, voice = conversation.session, conversation.voice
    told = session.transcript[:]
    return Past(
        session.id, session.system, session.tools, told, dict(conversation.began), voice, model=conversation.model
    )


def past_of(extension: Extension, place: Place, seat: str | None = None) -> Past | None:
    """Return where the running cell's conversation goes on from, None where that is its end, or nothing is known.

    `seat`: by what the conversation is found, if not by the notebook (see starts.py).

    In this kernel: before the cell's last run, if that finished. In a new one: before the cell's last run, or after the
    last record that was shown from the store, whichever the notebook's order asks for.
    """
    cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
    seat = place.document if seat is None else seat
    conversation = extension.conversations.get(seat)
    if conversation is not None:
        return before(conversation, cell)
    shown = extension.shown.get(seat)
    last = next(extension.runs.of_cell(cell), None)
    if last is not None and (shown is None or shown.session == last.session):
        began = {} if shown is None else {other: first for other, first in shown.began.items() if first < last.first}
        return stored(extension.folder, last.session, last.first, began, seals=extension.seals)
    if shown is None:
        return None
    return stored(extension.folder, shown.session, shown.count, shown.began, seals=extension.seals)


def stored(
    folder: Path, session: str, count: int | None, began: Mapping[str, int] = _NONE, *, seals: Seals | None = None
) -> Past | None:
    """Return the first `count` messages (None: all) of a session on disk, None where they are not there."""
    if not _ID.fullmatch(session):
        return None
    found = read_session(folder / FOLDER / f"{session}.jsonl", seals)
    if found is None:
        return None
    count = len(found.messages) if count is None else count
    if not 0 <= count <= len(found.messages):
        return None
    system, tools = found.about.get("system"), found.about.get("tools")
    if not isinstance(system, str) or not isinstance(tools, list):
        return None
    whole, voice = count == len(found.messages), str(found.about.get("voice") or "")
    return Past(session, system, tools, found.messages[:count], began, voice,
                found.closing if whole else {}, found.model, found.kernel, found if whole else None)  # fmt: skip


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
    async def of(
        cls, extension: Extension, place: Place, *, new: bool, seat: str | None = None, branch: Past | None = None
    ) -> PastNow:
        """Look it up; `new`: the cell asks for a conversation of its own. Reads and hashes on another thread.

        `branch`: where a branch leaves its parent; the cell asks for one.
        """
        if new:
            return cls(past_hashes(()), {})
        seat = place.document if seat is None else seat
        past = branch or await asyncio.to_thread(past_of, extension, place, seat)
        conversation = extension.conversations.get(seat)
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


@dataclass(frozen=True, slots=True)
class Making:
    """What a fork is made as. `model`: the one it begins with, to be told from the past's; `id` "" for a new one."""

    ways: Ways = NO_WAYS
    beside: bool = False
    title: str = ""
    model: str = ""
    kernel: str = ""
    id: str = ""
    seals: Seals | None = None


PLAIN = Making()


def fork(
    past: Past,
    settings: Settings,
    tools: Callable[[ResultStore], list[Tool]],
    folder: Path,
    notebook: str,
    *,
    before: Conversation | None = None,
    new: Making = PLAIN,
) -> tuple[Conversation, str]:
    """Return a conversation that goes on from `past`, and a sentence for the person where it lost something on the way.

    `before` is this kernel's conversation of the same notebook: the long results that its messages name, and the rules
    that the person keeps, are the new one's too; a branch has copies of its own. What the model has read since is not.
    """
    about: Json = {"forked_from": {"session": past.session, "messages": len(past.messages)}}
    about |= {"began": dict(past.began)} if past.began else {}
    about |= {"beside": True} if new.beside else {}
    about |= {"kernel": new.kernel} if new.kernel else {}
    about |= {"title": new.title} if new.title else {}
    about |= {"ways": ways} if (ways := new.ways.to_json()) else {}
    made = Conversation.begin(settings, tools, folder, notebook, seals=new.seals, session_id=new.id, **about)
    made.began, made.beside, made.ways, made.title = dict(past.began), new.beside, new.ways, new.title
    if before is not None:
        made.results, made.kept = before.results, before.kept
        made.told_restart = before.told_restart
        if new.beside:
            made.results, made.kept = copy.deepcopy(before.results), list(before.kept)
        if before.session.id == past.session and len(past.messages) == len(before.session.transcript):
            made.know_as(before)
    same = json.dumps([past.system, past.tools]) == json.dumps([made.session.system, made.session.tools])
    moved = past.voice not in {"", made.voice}
    other_model = bool(new.model and past.model and new.model != past.model)
    served = () if moved else [str(tool["name"]) for tool in made.session.tools if "type" in tool]
    as_it_was = same and not moved and not (other_model and thinks(past.messages))
    made.session.transcript.take_over(past.messages if as_it_was else seed(past.messages, served))
    if past.closing:
        made.session.transcript.answer(past.closing)
    if as_it_was or not thinks(past.messages):
        return made, ""
    return made, OTHER_VOICE if moved else OTHER_MODEL if same else OTHER_PREFIX
