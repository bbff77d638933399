"""`nbagent.fork_session`: a branch of a conversation from a cell's own code, with tools, a model or words of its own.

The branch begins with the parent's messages as they are; where tools, system prompt or model differ, without thinking.
It runs beside the notebook's conversation. Read `fork_session`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbagent.app.finding import find, last_of, outlines
from nbagent.app.starts import NOTHING_YET, Planned, notebook_of, point
from nbagent.app.ways import Ways
from nbagent.core.errors import ConfigError
from nbagent.extend.sessions import new_session_id
from nbagent.extend.sessions_read import prompts

if TYPE_CHECKING:
    from nbagent.app.answer import Answer
    from nbagent.app.extension import Extension


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: `id` is its session's, `parent` and `messages` say where it begins. `%%agent --session NAME` runs in it."""

    id: str
    name: str
    parent: str
    messages: int

    @property
    def session_id(self) -> str:
        """The id of its session, as an `Answer` has it."""
        return self.id

    async def ask(self, prompt: str, options: str = "") -> Answer:
        """Run the agent in this branch and return its answer: `await branch.ask("How many?")`.

        `options` as in a `%%agent` line. Raises `ConfigError` for what must be changed first, and while an agent runs.
        """
        from nbagent.app.cell import run_agent_cell

        return await run_agent_cell(_current(), f"--session {self.id} {options}".strip(), prompt)


def fork_session(
    session: str = "",
    *,
    at: int | None = None,
    name: str = "",
    model: str = "",
    tools: Sequence[str] = (),
    system_append: str = "",
) -> Branch:
    """Make a branch of this notebook's conversation, or of `session` (an id, its beginning, or a name).

    `at`: after that many prompts (None: all). `tools`: only these, `*` may stand in a name; `model`: as for `-m`;
    `system_append`: more words in its system prompt. With `name` it is found again: `%%agent --session NAME`. The parent
    never changes, and no branch sees what is said in another; variables, files and cells are the kernel's, and shared.
    Nothing is sent before its first run. Raises `ConfigError` where there is no such point, and while an agent runs.
    """
    extension = _current()
    parent = find(extension.folder, session).id if session else _own(extension)
    shown = extension.shown.get(extension.seat)
    past = point(extension, parent, at)
    count = len(past.messages)
    if (
        not session
        and at is None
        and shown is not None
        and shown.session == parent
        and extension.seat not in extension.conversations
    ):
        count = shown.count
    named = [one for one in outlines(extension.folder) if name and one.title == name and not one.about.get("beside")]
    if named or len(name) > 80 or not name.isprintable() or any(c in " @" for c in name):
        raise ConfigError(
            f"{name!r} can't be the name of a branch: one word of 80 characters at most that no session has."
        )
    if count == 0 or not prompts(past.messages):
        raise ConfigError(NOTHING_YET)
    planned = Planned(new_session_id(), parent, count, Ways(tuple(tools), model, system_append), name)
    extension.planned = [one for one in extension.planned if not name or one.name != name] + [planned]
    return Branch(planned.id, name, parent, count)


def _own(extension: Extension) -> str:
    """Return the session that this notebook is in."""
    if (live := extension.conversations.get(extension.seat)) is not None:
        return live.session.id
    if (shown := extension.shown.get(extension.seat)) is not None:
        return shown.session
    path = notebook_of(extension)
    found = last_of(extension.folder, path)
    if found is None:
        raise ConfigError(NOTHING_YET)
    return found.id


def _current() -> Any:
    from IPython.core.getipython import get_ipython

    from nbagent.app.extension import current

    extension = current(get_ipython())
    if extension.stop is not None or not extension.persons.speaks():  # what runs then is the agent's code
        raise ConfigError("A branch can't be made or asked while an agent runs. Run that cell yourself, afterwards.")
    return extension
