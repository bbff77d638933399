"""Opens the conversation of a run: the one of this kernel, one on disk that goes on, a fork, or a new one.

Tells the person where it is not simply the last one. Must not know how a run goes. Read `conversation_of`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from nbagent.app.consent import before_run
from nbagent.app.conversation import Conversation
from nbagent.app.forks import Past, all_of, fork, past_of
from nbagent.app.model import model_of, voice_of
from nbagent.config import Settings
from nbagent.core.events import Noted
from nbagent.core.messages import Json
from nbagent.core.tools import Toolset

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.app.runtools import MakeTools
    from nbagent.app.starts import Ground
    from nbagent.app.underway import LiveRun

IN_USE = "The session {} is in use by another kernel, so a copy of it goes on here."
NOT_OURS = (
    "The session {} was not written by your nbagent on this machine, or was changed since: a copy of it goes on, with this "
    "notebook's own system prompt and rules."
)


async def conversation_of(
    extension: Extension, settings: Settings, make: MakeTools, place: Place, ground: Ground, live: LiveRun
) -> Conversation:
    """Go on with the conversation of `ground`, or from the point that it names; or begin one.

    One begins where it is asked for and where there is none yet. Where the tools or the system prompt are others than
    it was begun with, it goes on in a new session, without what was thought.
    """
    path, found = path_of(place), extension.conversations.get(ground.seat)
    if found is not None:
        found.rename(path)
    past = ground.branch
    if past is None and not ground.new:
        past = await asyncio.to_thread(past_of, extension, place, ground.seat)
    said = [ground.note] if ground.note else []
    if past is not None:
        found, more = await asyncio.to_thread(_from, extension, settings, make, path, ground, past, found)
        said += more
    elif found is not None and not ground.new:
        moved = found.voice != voice_of(settings)
        if moved or found.session.tools != (*Toolset(make(found.results)).params(), *settings.served):
            making = replace(ground.making, ways=ground.ways, title=found.title, seals=extension.seals)
            making = replace(making, kernel=extension.kernel_id)
            found, lost = await asyncio.to_thread(
                fork, all_of(found), settings, make, extension.folder, path, before=found, new=making
            )
            said += [lost] if lost else []
    else:
        found = _begun(extension, settings, make, path, ground)
    for text in said:
        place.view.show(before_run(Noted, text=text, level="info" if text in {ground.note, *said[:1]} else "warning"))
    extension.holds.take(found.session.id)
    if ground.lasts:
        extension.conversations[ground.seat] = found
        extension.going_on.pop(ground.seat, None)
    if not live.background or extension.last is None:
        extension.last = found
    live.session = found.session.id
    return found


def _begun(extension: Extension, settings: Settings, make: MakeTools, path: str, ground: Ground) -> Conversation:
    about: Json = {"kernel": extension.kernel_id} | ({"ways": ways} if (ways := ground.ways.to_json()) else {})
    session, extension.next_session = extension.next_session, ""
    new = ground.making
    about |= {"beside": True} if new.beside else {}
    about |= {"title": new.title} if new.title else {}
    made = Conversation.begin(
        settings, make, extension.folder, path, seals=extension.seals, session_id=session, **about
    )
    made.ways, made.beside, made.title = ground.ways, new.beside, new.title
    return made


def _from(
    extension: Extension,
    settings: Settings,
    make: MakeTools,
    path: str,
    ground: Ground,
    past: Past,
    found: Conversation | None,
) -> tuple[Conversation, list[str]]:
    """Go on from `past`: in its own session where that is wanted and can be, else in a fork; and what to say of it."""
    said: list[str] = []
    whole = past.whole
    if ground.branch is None and whole is not None and extension.going_on.get(ground.seat) == past.session:
        if not whole.sealed:
            said.append(NOT_OURS.format(past.session))
        elif not extension.holds.take(past.session):
            said.append(IN_USE.format(past.session))
        elif made := Conversation.reopen(whole, settings, make, extension.folder, path, seals=extension.seals):
            made.elsewhere = past.kernel != extension.kernel_id
            made.moved(own=ground.own, kernel=extension.kernel_id)
            return made, said
    parent = found if found is not None else live_of(extension, past.session)
    title = ground.making.title or (found.title if found is not None and ground.branch is None else "")
    making = replace(ground.making, ways=ground.ways, seals=extension.seals, title=title)
    making = replace(making, model=_model(settings), kernel=extension.kernel_id)
    if not ground.making.beside:
        making = replace(making, model="")  # another model in mid-session: the server drops what it can't read
    made, lost = fork(past, settings, make, extension.folder, path, before=parent, new=making)
    made.elsewhere = past.kernel not in {"", extension.kernel_id}
    return made, [*said, *([lost] if lost else [])]


def live_of(extension: Extension, session: str) -> Conversation | None:
    """Return this kernel's conversation of a session, if it has one."""
    return next((one for one in extension.conversations.values() if one.session.id == session), None)


def _model(settings: Settings) -> str:
    return model_of(settings).name


def path_of(place: Place) -> str:
    """Return the path of the run's notebook, "" where there is none."""
    return place.notebook.path if place.notebook is not None else ""
