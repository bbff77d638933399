"""`%%agent --dry-run`: the first request that a cell would send, put together and shown, and nothing else.

No session begins, no hook runs, no server is started or asked, no count goes up. Made of the same parts as a run's first
message (assembly.py), each on a copy of what it would change. Read `dry_run`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbagent.app.agents import Subagents
from nbagent.app.conversation import Conversation
from nbagent.app.files import RunFiles, said_in
from nbagent.app.forks import Past, all_of, past_of
from nbagent.app.goingon import live_of
from nbagent.app.lesson import tools_under
from nbagent.app.mentions import given_with
from nbagent.app.model import model_of, voice_of
from nbagent.app.privacy import PLACEHOLDERS
from nbagent.app.restarts import gone_with
from nbagent.app.runtools import tools_of
from nbagent.app.sent import Sent, display_requests
from nbagent.app.starts import Ground, ground_of
from nbagent.config import Settings
from nbagent.core.messages import Json
from nbagent.core.seeding import seed
from nbagent.core.session import NoStore, Session
from nbagent.core.think import host_of
from nbagent.core.tools import Toolset
from nbagent.extend.invoking import names_a_call
from nbagent.extend.sessions import JsonlStore
from nbagent.prompt import compose
from nbagent.tools import todo
from nbagent.tools.lasting import LastingCode
from nbagent.tools.results import ResultStore

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place

HEAD = "Nothing was sent, and nothing ran. This is the first request that this cell would send."
NO_ERRAND = "--dry-run can't show what a subagent would be sent. Nothing was sent; leave it out to run this."
MAY_ADD = (
    "Hooks, MCP servers that are not running yet, and web search where you would be asked about it, may add to it."
)
CALLED = "The text of what {} calls is put together when the cell runs, and then stands in its place."


async def dry_run(extension: Extension, settings: Settings, place: Place, words: str, given: Json) -> None:
    """Show what a cell with the options `given` would send first; raises `ConfigError` as its run would."""
    privacy = extension.privacy
    ground, past = await _ground(extension, place, settings, given)
    settings = ground.settings
    await asyncio.to_thread(extension.files.load)
    subagents = Subagents(extension, settings, place, stands_in=False)
    files = RunFiles(extension)
    notebook = privacy.notebook(place.notebook)
    timeout = None if place.patient else settings.cell_timeout
    found = None if ground.new else extension.conversations.get(ground.seat)
    before = past or (all_of(found) if found is not None else None)
    more = [*extension.mcp.tools(before.tools if before is not None else None), *subagents.tools, *files.tools]
    make = tools_of(extension, notebook, timeout, more, LastingCode(settings.patience()))
    make = tools_under(make, ground.ways.tools, settings.lesson)
    conversation = _conversation(extension, settings, place, Toolset(make(ResultStore())).params(), before)
    session = conversation.session
    news = await files.news(conversation)
    if not conversation.told_restart:
        news.append((await gone_with(place.notebook, extension.shell, ())).told)
    errands = extension.errands
    news += subagents.news(conversation)
    extension.errands = errands  # they are told with the next prompt that is really sent
    if todo.is_open(todos := todo.of_messages(session.transcript)):
        news.append(todo.reminder(todos))
    blocks = await conversation.opening(privacy.vault.mask(words), notebook, settings.mode, [n for n in news if n])
    blocks += (await given_with(extension, words, notebook)).blocks
    known = PLACEHOLDERS in said_in(session.transcript)
    mask = privacy.vault.masked if known else privacy.masking()
    messages = (*session.transcript, mask({"role": "user", "content": blocks}))
    model = model_of(settings)
    one = Sent(1, "", model.name, host_of(model), session.system, session.tools, messages, 1)
    head = [HEAD, MAY_ADD, *([CALLED.format(words.split(maxsplit=1)[0])] if names_a_call(words) else [])]
    display_requests([one], " ".join(head))


async def _ground(extension: Extension, place: Place, settings: Settings, given: Json) -> tuple[Ground, Past | None]:
    """Return what the run would stand on, and from where it would go on; what is noted for a run is put back."""
    move, seat, shown, going_on = extension.move, extension.seat, dict(extension.shown), dict(extension.going_on)
    seats = dict(extension.conversations)
    try:
        ground = await ground_of(extension, place, settings, given)
        past = ground.branch
        if past is None and not ground.new:
            past = await asyncio.to_thread(past_of, extension, place, ground.seat)
    finally:
        extension.move, extension.seat, extension.shown, extension.going_on = move, seat, shown, going_on
        extension.conversations = seats
    return ground, past


def _conversation(
    extension: Extension, settings: Settings, place: Place, tools: Sequence[Json], before: Past | None
) -> Conversation:
    """Return a conversation like the one that the run would have, which is kept nowhere."""
    served = [tool for tool in before.tools if "type" in tool] if before is not None and settings.web else []
    session = Session(
        "dry-run", system=compose(settings.prompt, settings.system_append), tools=(*tools, *served), store=NoStore()
    )
    path = place.notebook.path if place.notebook is not None else ""
    made = Conversation(session, JsonlStore(extension.folder / "never-written"), path)
    if before is None:
        return made
    same = json.dumps([before.system, before.tools]) == json.dumps([session.system, session.tools])
    as_it_was = same and before.voice in {"", voice_of(settings)}
    kept = [str(tool["name"]) for tool in served]
    session.transcript.take_over(before.messages if as_it_was else seed(before.messages, kept))
    session.transcript.answer(before.closing)
    parent = live_of(extension, before.session)
    if parent is not None:
        made.told_restart = parent.told_restart
        if parent.session.id == before.session and len(before.messages) == len(parent.session.transcript):
            made.know_as(parent)
    return made
