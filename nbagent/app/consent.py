"""What only the notebook's own text asks for needs a person's yes: the notebook may be somebody else's.

Settings from outside the notebook (files, environment, command line) are the person's word. A wider mode, an allow rule
or another server's address that comes from inside it (%config, %agent, options of a cell) is asked about once a kernel:
a yes counts until the kernel ends, and so does a no;
where nobody is there, the run is refused.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any, TypeVar

from nbagent.app.extension import Extension
from nbagent.app.place import Place, Reins, find_place
from nbagent.config import Settings, is_wider
from nbagent.core.errors import ConfigError
from nbagent.core.events import Event, Noted, State
from nbagent.core.policy import Mode
from nbagent.core.ports import Question
from nbagent.core.questions import put
from nbagent.core.run import Stop

E = TypeVar("E", bound=Event)


def before_run(kind: type[E], /, **fields: Any) -> E:
    """Make an event of the time before a run begins."""
    return kind(state=State.THINK, turn=0, at=0.0, **fields)


async def consented(extension: Extension, settings: Settings, place: Place) -> Settings:
    """Return the settings that the run may use; raises `ConfigError` where a yes is needed and nobody can give it."""
    outside = extension.outside()
    asks = _asks(outside, settings)
    if not asks or asks in extension.agreed:
        return settings
    without = replace(settings, mode=outside.mode, allow=outside.allow, base_url=outside.base_url)
    if asks in extension.declined:
        place.view.show(before_run(Noted, text=DECLINED.format(", ".join(asks)), level="info"))
        return without
    if not place.approver.present:
        raise ConfigError(
            f"The notebook asks for {', '.join(asks)}, which needs a person's yes. Where nobody is there, say it outside the "
            f"notebook: nbagent run --mode {settings.mode} (--allow RULE), NBAGENT_MODE={settings.mode}, or your own settings file."
        )
    question = Question(
        id=f"consent-{secrets.token_hex(4)}",
        text=f"This notebook asks for {', '.join(asks)}{_meaning(outside, settings)} Use it in this kernel?",
        choices=(_YES, _NO),
    )
    answer = await put(question, place.approver, before_run, place.view.show)
    if answer == _YES:
        extension.agreed.add(asks)
        return settings
    if answer:  # "": the question was closed, and nobody said no
        extension.declined.add(asks)
    return without


async def consented_here(extension: Extension, settings: Settings) -> Settings:
    """Return the settings that work outside of any run may use; the person is asked in a card of its own, if at all.

    Raises `ConfigError` where a yes is needed and nobody can give it.
    """
    asks = _asks(extension.outside(), settings)
    if not asks or asks in extension.agreed:
        return settings
    stop = Stop()
    reins = Reins(stop.now, stop.spare, _nothing, extension.waiting)
    async with find_place(extension.shell, reins, extension.refusals, extension.silent) as place:
        return await consented(extension, settings, place)


def _nothing() -> None:
    """The cell was deleted: its task is cancelled with it."""


_YES, _NO = "Yes, in this kernel", "No, go on without"
DECLINED = "Goes on without {}: you said no to that in this kernel. You are asked again after a restart."


def _meaning(outside: Settings, settings: Settings) -> str:
    moved = settings.base_url and settings.base_url != outside.base_url
    wider = is_wider(settings.mode, outside.mode) or set(settings.allow) - set(outside.allow)
    less = "almost nothing is asked any more" if settings.mode == Mode.BYPASS else "you are asked less from then on"
    return (f": {less}." if wider else ".") + (
        " What the agent reads goes to that server, and your key with it." if moved else ""
    )


def _asks(outside: Settings, settings: Settings) -> tuple[str, ...]:
    """What `settings` allow beyond `outside`, in words."""
    asks: list[str] = []
    if is_wider(settings.mode, outside.mode):
        asks.append(f"the mode {settings.mode}")
    asks += [f"the rule allow {rule}" for rule in settings.allow if rule not in outside.allow]
    if settings.base_url and settings.base_url != outside.base_url:
        asks.append(f"the model server {settings.base_url}")
    return tuple(asks)
