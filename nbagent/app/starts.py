"""Where the conversation of a run comes from: the notebook's own, a new one, another session, or a branch.

Options of a cell speak of that cell only: `--session` and `--fork` run beside the notebook's own conversation, which goes
on in the next plain cell as if nothing had been. `%agent resume` and `%agent fork` move the notebook; so does a restart of the
kernel, after which it goes on in its last session. Must not know how a run goes. Read `ground_of`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbagent.app.consent import before_run
from nbagent.app.finding import find, last_of, split_point
from nbagent.app.forks import PLAIN, Making, Past, Point, all_of, past_of, stored
from nbagent.app.recording import is_taped
from nbagent.app.ways import NO_WAYS, Ways, tools_named
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.core.events import ViewCleared
from nbagent.core.messages import Json
from nbagent.core.questions import choose
from nbagent.core.shown import visible_plain
from nbagent.extend.sessions import FOLDER, Outline, Stored, read_session
from nbagent.extend.sessions_read import prompts
from nbagent.view.text import one_line

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place

GO_ON, BEGIN = "Go on in it", "Begin a new one"
BACKGROUND = "background"
"""The seat of a run that begins a session beside the notebook's own: no other run is found by it."""
NOTHING_YET = "There is no session of this notebook to go on from yet: run a %%agent cell first."


class NothingYet(ConfigError):
    """There is no conversation to go on from."""


@dataclass(frozen=True, slots=True)
class Move:
    """What `%agent resume` and `%agent fork` ask of the next `%%agent` cell: to go on after `count` messages of a session.

    `itself`: in the session itself; otherwise in a fork of it.
    """

    session: str
    count: int
    itself: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """A branch that `nbagent.fork_session` made and that no run has begun yet: it leaves `session` after `count` messages."""

    id: str
    session: str
    count: int
    ways: Ways
    name: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What a run stands on. `seat`: by what its conversation is found in this kernel. `branch`: where a branch leaves its parent.

    `note` is told to the person when the run begins. `own`: this is the notebook's own conversation.
    """

    seat: str
    settings: Settings
    ways: Ways = NO_WAYS
    new: bool = False
    branch: Past | None = None
    making: Making = PLAIN
    note: str = ""
    own: bool = True

    @property
    def lasts(self) -> bool:
        """Whether its conversation is found by its seat by the next run that asks for it."""
        return self.branch is None and self.seat != BACKGROUND


async def ground_of(extension: Extension, place: Place, settings: Settings, given: Json) -> Ground:
    """Return what the run of a cell with the options `given` stands on; raises `ConfigError` for a session that isn't there.

    In a new kernel this may ask the person whether to go on in the notebook's last session.
    """
    own = Ways(tools=tools_named(str(given.get("tools") or "")))
    ref = given.get("fork")
    if ref is not None:
        return await _branch(extension, place, settings, given, own, str(ref))
    if session := str(given.get("session") or ""):
        return await _in_session(extension, place, settings, given, own, session)
    extension.seat = place.document
    if is_taped(given):  # in a session of its own, so that the same can be asked again
        return Ground(BACKGROUND, own.applied(settings, given), own, new=True, making=Making(beside=True), own=False)
    if given.get("background"):
        return await _in_background(extension, place, settings, given, own)
    if given.get("new"):
        extension.move = None
        return Ground(place.document, own.applied(settings, given), own, new=True)
    note = await _moved(extension, place) or await _restarted(extension, place, settings, given)
    ways = own.over(await asyncio.to_thread(_ways_there, extension, place, place.document))
    return Ground(place.document, ways.applied(settings, given), ways, note=note)


# ── the notebook's own conversation ──────────────────────────────────────────────────────────────────────────────────


async def _moved(extension: Extension, place: Place) -> str:
    """Do what `%agent resume` or `%agent fork` asked for."""
    move, extension.move = extension.move, None
    if move is None:
        return ""
    seat, live = place.document, extension.conversations.get(place.document)
    if live is not None and live.session.id == move.session and move.itself:
        return ""
    if move.itself:
        _is_free(extension, move.session)
    past = await asyncio.to_thread(stored, extension.folder, move.session, move.count, seals=extension.seals)
    if past is None:
        raise ConfigError(f"The session {move.session} is not there any more.")
    extension.conversations.pop(seat, None)
    extension.shown[seat] = Point(move.session, move.count, _began(past.whole, move.count))
    extension.going_on.pop(seat, None)
    if move.itself:
        extension.going_on[seat] = move.session
    return f"Goes on in {'the' if move.itself else 'a fork of the'} session {move.session}."


async def _restarted(extension: Extension, place: Place, settings: Settings, given: Json) -> str:
    """In a kernel that has no conversation of this notebook yet, go on in the last one, if that is wanted."""
    seat, asked = place.document, bool(given.get("go_on"))
    if seat in extension.conversations:
        return ""
    path = place.notebook.path if place.notebook is not None else ""
    in_notebook = bool(path) and getattr(extension.shell, "kernel", None) is not None and place.approver.present
    if not asked and (settings.resume == "never" or not in_notebook):
        return ""
    last = await asyncio.to_thread(last_of, extension.folder, path)
    found = await asyncio.to_thread(read_session, last.path, extension.seals) if last is not None else None
    if last is None or found is None:
        if asked and seat not in extension.shown:
            raise ConfigError(NOTHING_YET)
        return ""
    if not found.sealed and not asked:
        return ""  # it came with somebody's folder: only a person's word makes it a conversation of theirs
    shown = extension.shown.get(seat)
    if (
        shown is not None
    ):  # a record was shown: the conversation goes on after that, in the same session if that is its end
        if shown.session == last.id and shown.count == len(found.messages):
            extension.going_on[seat] = last.id
        return ""
    cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
    finished = await asyncio.to_thread(next, extension.runs.of_cell(cell), None)
    if finished is not None and found.unfinished != cell:
        return ""  # it goes on from before its own last run (forks.py)
    if settings.resume == "ask" and not asked and not await _agreed(place, last):
        return ""
    extension.shown[seat] = Point(last.id, len(found.messages), found.began)
    extension.going_on[seat] = last.id
    return f"The kernel is a new one; goes on in this notebook's last session, {named(last)}. %%agent --new begins another."


async def _agreed(place: Place, last: Outline) -> bool:
    text = f"This notebook has a session of an earlier kernel: {named(last)}. Go on in it?"
    try:
        answer = await choose(text, (GO_ON, BEGIN), place.approver, before_run, place.view.show)
    finally:
        place.view.show(before_run(ViewCleared))
    return answer == GO_ON


def named(one: Outline) -> str:
    """Return in words which session it is: its name or first prompt, and when it was used last."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.last))
    said = one.title or one_line(one.prompt, 60)
    return visible_plain(f"“{said}” of {when} ({one.id})" if said else f"{one.id} of {when}", spaces=False)


def _ways_there(extension: Extension, place: Place, seat: str) -> Ways:
    """Return how the conversation of a seat differs from the settings; only from what this person's nbagent wrote."""
    if (live := extension.conversations.get(seat)) is not None:
        return live.ways
    past = past_of(extension, place, seat)
    if past is None:
        return NO_WAYS
    found = past.whole or read_session(extension.folder / FOLDER / f"{past.session}.jsonl", extension.seals)
    return Ways.of(found.about) if found is not None and found.sealed else NO_WAYS


def _began(found: Stored | None, count: int) -> dict[str, int]:
    return {cell: first for cell, first in found.began.items() if first < count} if found is not None else {}


async def _in_background(extension: Extension, place: Place, settings: Settings, given: Json, own: Ways) -> Ground:
    """Begin a branch of the notebook's conversation for a run that goes on beside it; a session where there is none yet."""
    note, cell = "", (place.notebook.own_cell if place.notebook is not None else None) or ""
    last = await asyncio.to_thread(next, extension.runs.of_cell(cell), None)
    if not given.get("new") and (last is None or last.first):  # else it began a session of its own, and does so again
        note = await _moved(extension, place) or await _restarted(extension, place, settings, given)
        try:
            ground = await _branch(extension, place, settings, given, own, "")
        except NothingYet:
            pass
        else:
            return replace(ground, note=" ".join(filter(None, (note, ground.note))))
    making = Making(beside=True, title=str(given.get("name") or ""))
    return Ground(BACKGROUND, own.applied(settings, given), own, new=True, making=making, own=False, note=note)


# ── beside it ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _in_session(
    extension: Extension, place: Place, settings: Settings, given: Json, own: Ways, ref: str
) -> Ground:
    """Go on in another session, for this cell only."""
    planned = next((one for one in reversed(extension.planned) if ref in {one.id, one.name}), None)
    live = {conversation.session.id: seat for seat, conversation in extension.conversations.items()}
    session = planned.id if planned is not None else (await asyncio.to_thread(find, extension.folder, ref)).id
    if live.get(session) == place.document:  # it is the notebook's own
        ways = own.over(extension.conversations[place.document].ways)
        return Ground(place.document, ways.applied(settings, given), ways)
    seat = f"session {session}"
    making = Making(beside=True)
    _is_free(extension, session)
    if seat not in extension.conversations and seat not in extension.shown:
        if planned is not None and not _is_kept(extension, session):
            past = await asyncio.to_thread(
                stored, extension.folder, planned.session, planned.count, seals=extension.seals
            )
            extension.shown[seat] = Point(
                planned.session, planned.count, _began(past.whole if past is not None else None, planned.count)
            )
        else:
            past = await asyncio.to_thread(stored, extension.folder, session, None, seals=extension.seals)
            if past is None:
                raise ConfigError(f"The session {session} can't be read.")
            extension.shown[seat] = Point(session, len(past.messages), past.whole.began if past.whole else {})
            extension.going_on[seat] = session
    there = await asyncio.to_thread(_ways_there, extension, place, seat)
    if planned is not None:
        there = planned.ways.over(there)
        making = Making(beside=True, title=planned.name, id="" if _is_kept(extension, session) else session)
    ways = own.over(there)
    return Ground(seat, ways.applied(settings, given), ways, making=making, own=False,
                  note=f"Runs in the session {planned.name if planned and planned.name else session}, for this cell only.")  # fmt: skip


def _is_free(extension: Extension, session: str) -> None:
    """Raise `ConfigError` where a run in the background writes to a session: two would write into each other's words."""
    if (run := extension.underway.in_session(session)) is not None:
        raise ConfigError(f"The session {session} is used by “{run.who}”, which is under way. {run.how_to_end}")


def _is_kept(extension: Extension, session: str) -> bool:
    return (extension.folder / FOLDER / f"{session}.jsonl").exists()


async def _branch(extension: Extension, place: Place, settings: Settings, given: Json, own: Ways, ref: str) -> Ground:
    """Begin a branch for this cell only: from a point that is named, from where this cell's last one began, or from the end."""
    past = await branch_point(extension, place, ref)
    found = past.whole or await asyncio.to_thread(
        read_session, extension.folder / FOLDER / f"{past.session}.jsonl", extension.seals
    )
    ways = own.over(Ways.of(found.about) if found is not None and found.sealed else NO_WAYS)
    count = len(prompts(past.messages))
    note = (
        f"A branch of the session {past.session}, after {count} prompt{'s' * (count != 1)}; only this cell runs in it."
    )
    making = Making(beside=True, title=str(given.get("name") or ""))
    return Ground(f"branch of {past.session}", ways.applied(settings, given), ways, branch=past, making=making, note=note, own=False)  # fmt: skip


async def branch_point(extension: Extension, place: Place, ref: str) -> Past:
    """Return where a branch `ID[@N]` ("" for this notebook's own) leaves its parent; raises `ConfigError`."""
    name, at = split_point(ref)
    if name or at is not None:
        session = (
            (await asyncio.to_thread(find, extension.folder, name)).id
            if name
            else (await own_point(extension, place)).session
        )
        return await asyncio.to_thread(point, extension, session, at)
    cell = (place.notebook.own_cell if place.notebook is not None else None) or ""
    last = await asyncio.to_thread(next, extension.runs.of_cell(cell), None)
    if last is not None:
        past = await asyncio.to_thread(stored, extension.folder, last.session, last.first, seals=extension.seals)
        if past is not None and past.messages:
            return past
    return await own_point(extension, place)


async def own_point(extension: Extension, place: Place | None = None) -> Past:
    """Return the end of the notebook's own conversation; raises `ConfigError` where there is none yet."""
    seat = place.document if place is not None else extension.seat
    live = extension.conversations.get(seat)
    if live is not None and live.session.transcript:
        return all_of(live)
    if (shown := extension.shown.get(seat)) is not None:
        past = await asyncio.to_thread(
            stored, extension.folder, shown.session, shown.count, shown.began, seals=extension.seals
        )
        if past is not None:
            return past
    path = place.notebook.path if place is not None and place.notebook is not None else notebook_of(extension)
    last = await asyncio.to_thread(last_of, extension.folder, path)
    past = await asyncio.to_thread(stored, extension.folder, last.id, None, seals=extension.seals) if last else None
    if past is None:
        raise NothingYet(NOTHING_YET)
    return past


def notebook_of(extension: Extension) -> str:
    """Return the path of this kernel's notebook as far as it is known without asking a page, else ""."""
    if extension.last is not None and extension.last.notebook:
        return extension.last.notebook
    import os

    from nbagent.jupyter.whereabouts import notebook_path

    return notebook_path(extension.shell.user_ns, os.environ)


def point(extension: Any, session: str, at: int | None) -> Past:
    """Return a session as it was after its first `at` prompts and all that came of them (None: all of it).

    Raises `ConfigError` where it has not so many.
    """
    past = stored(extension.folder, session, None, seals=extension.seals)
    if past is None:
        raise ConfigError(f"The session {session} can't be read.")
    if at is None:
        return past
    begins = prompts(past.messages)
    if at > len(begins):
        has = f"{len(begins)} prompt{'s' * (len(begins) != 1)}"
        raise ConfigError(f"The session {session} has {has}, so there is no point after prompt {at}.")
    count = begins[at] if at < len(begins) else len(past.messages)
    cut = stored(extension.folder, session, count, _began(past.whole, count), seals=extension.seals)
    return cut or past
