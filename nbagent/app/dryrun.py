"""`%%agent --dry-run`: the first request that a cell would send, put together and shown, and nothing else.

No session begins, no hook runs, no server is started or asked, no count goes up. Read `dry_run`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nbagent.app.agents import Team
from nbagent.app.conversation import Conversation
from nbagent.app.forks import past_of
from nbagent.app.model import model_of
from nbagent.app.restarts import gone_with
from nbagent.app.runtools import tools_of
from nbagent.app.sent import Sent, display_requests
from nbagent.config import Settings
from nbagent.core.messages import Message
from nbagent.core.session import NoStore, Session
from nbagent.core.think import host_of
from nbagent.core.tools import Toolset
from nbagent.extend.sessions import JsonlStore
from nbagent.prompt import compose
from nbagent.tools.results import ResultStore
from nbagent.tools.seen import Seen

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place

HEAD = "Nothing was sent, and nothing ran. This is the first request that this cell would send."
NOT_ASKED = "Hooks and MCP servers that are not running yet may add to it."


async def dry_run(extension: Extension, settings: Settings, place: Place, words: str, *, new: bool) -> None:
    """Show what the cell would send first."""
    privacy = extension.privacy
    team = Team(extension, settings, place, stands_in=False)
    notebook = privacy.notebook(place.notebook)
    make = tools_of(extension, notebook, None, [*extension.mcp.tools(None), *team.tools])
    tools = privacy.vault.masked(Toolset(make(ResultStore())).params())
    conversation, messages = _conversation(extension, settings, place, tools, new=new)
    news = [(await gone_with(place.notebook, extension.shell, ())).told] if not messages else []
    errands = extension.errands
    news += team.news(conversation)
    extension.errands = errands  # they are told with the next prompt that is really sent
    blocks = await conversation.opening(privacy.vault.mask(words), notebook, settings.mode, [n for n in news if n])
    message: Message = privacy.masking()({"role": "user", "content": blocks})
    model = model_of(settings)
    session = conversation.session
    one = Sent(1, "", model.name, host_of(model), session.system, session.tools, (*messages, message), 1)
    display_requests([one], f"{HEAD} {NOT_ASKED}" if extension.mcp else HEAD)


def _conversation(
    extension: Extension, settings: Settings, place: Place, tools: Sequence[object], *, new: bool
) -> tuple[Conversation, Sequence[Message]]:
    """Return a copy of the conversation that the cell would go on with, or one like a new one, and its messages."""
    found = None if new else extension.conversations.get(place.document)
    past = None if new else past_of(extension, place, place.document)
    if found is not None and found.session.tools == tools:
        messages: Sequence[Message] = found.session.transcript[:] if past is None else past.messages
        untouched = replace(found, memory=copy.deepcopy(found.memory), seen=Seen())
        return untouched, messages
    mask = extension.privacy.vault.masked
    session = Session(
        "dry-run",
        system=compose(settings.prompt, settings.system_append),
        tools=tuple(tools),  # type: ignore[arg-type]  # JSON objects
        store=NoStore(),
        mask=mask,
    )
    path = place.notebook.path if place.notebook is not None else ""
    return Conversation(
        session, JsonlStore(extension.folder / "never-written"), path
    ), [] if past is None else past.messages
