"""`%agent model`: which model is used and by whom, which names there are, and the switch to another one.

A name is checked against what its server lists, where that answers soon: the sentence never waits longer than `SOON`, and
a run never waits for it at all. Read `command`, then `Listings`.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.model import OPUSPLAN, fallback_of, model_of, open_named
from nbagent.app.reports import Checked
from nbagent.config import Settings
from nbagent.core.errors import ConfigError, NbagentError
from nbagent.core.ports import Model
from nbagent.core.shown import visible_plain
from nbagent.models import AnthropicModel, Endpoint, Facts, HumanModel, voice
from nbagent.models.catalog import ALIASES, DEFAULT_MODEL, nearest, resolve

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

SOON = 2.0
"""Seconds that the list of a server's models is waited for."""
KNOWN = 600.0
"""Seconds that such a list counts as known."""
_SHOWN = 12


class Listings:
    """What servers list as their models, known for a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, list[str]]] = {}

    async def of(self, model: Model) -> list[str]:
        """Return the ids that the model's server lists; raises `NbagentError`, soon, where it can't be said."""
        if not isinstance(model, AnthropicModel):
            raise ConfigError("this server has no list")
        known = self._known.get(model.place)
        if known is not None and self._clock() - known[0] < KNOWN:
            return known[1]
        try:
            async with asyncio.timeout(SOON):
                listed = await model.available()
        except TimeoutError:
            raise ConfigError(f"no answer within {SOON:g} s") from None
        finally:
            await model.aclose()
        self._known[model.place] = (self._clock(), listed)
        return listed


def command(extension: Extension, rest: str) -> str:
    """Carry out `%agent model [NAME]`; raises `ConfigError` for a name that means none."""
    settings, name = extension.settings(), rest.strip()
    if not name:
        told = report(extension, settings)
        return Checked(told, lambda: _with_list(extension, settings, told))
    if (endpoint := settings.endpoints.get(name)) is not None and not endpoint.models:
        raise_for = f"{name} is an endpoint: choose a model of it, {name}/MODEL."
        return Checked(raise_for, lambda: _models_at(extension, settings, endpoint))
    opened = open_named(settings, name)
    extension.choose(model=name)
    said = f"The model is {opened.name} from the next %%agent cell on."
    if _moves(extension, opened):
        said += (
            " It is at another server: the conversation goes on in a new session, without the model's earlier thinking."
        )
    return Checked(said, lambda: _compared(extension, opened, said))


def _moves(extension: Extension, opened: Model) -> bool:
    last = extension.last
    return last is not None and bool(last.session.transcript) and last.voice != voice(opened)


async def _compared(extension: Extension, opened: Model, said: str) -> str:
    """Return `said`, with what the server's own list says of the name."""
    try:
        listed = await extension.listings.of(opened)
    except NbagentError:
        return said
    if not listed or _is_in(opened.name, listed):
        return said
    near = nearest(opened.name, listed)
    hint = f" Did you mean {near}?" if near and near != opened.name else f" It has {_few(listed)}."
    return f"{said}\nIts server does not list {opened.name!r}.{hint}"


def _is_in(name: str, listed: Sequence[str]) -> bool:
    return any(one == name or one.startswith((f"{name}-2", f"{name}:")) for one in listed)  # with its date, or tag


async def _with_list(extension: Extension, settings: Settings, told: str) -> str:
    """Return the report with what the server lists."""
    try:
        listed = await extension.listings.of(model_of(settings))
    except NbagentError as error:
        return f"{told}\nlisted     not known: {visible_plain(str(error)).splitlines()[0]}"
    missing = [
        f"{short} ({model})"
        for short, model in ALIASES.items()
        if model.startswith("claude-") and any("claude-" in one for one in listed) and not _is_in(model, listed)
    ]
    lines = [f"listed     {visible_plain(_few(listed))}"]
    lines += [f"           not listed there: {', '.join(missing)}"] if missing else []
    return "\n".join([told, *lines])


async def _models_at(extension: Extension, settings: Settings, endpoint: Endpoint) -> str:
    """Return which models an endpoint has, for somebody who named only the endpoint."""
    listed = await extension.listings.of(open_named(settings, f"{endpoint.name}/?"))
    shown = ", ".join(f"{endpoint.name}/{one}" for one in listed[:_SHOWN]) or "none"
    return visible_plain(f"The models of {endpoint.name}: {shown}. %agent model {endpoint.name}/MODEL chooses one.")


def _few(listed: Sequence[str]) -> str:
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"{', '.join(listed[:_SHOWN])}{more}" if listed else "no model"


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────────────


def report(extension: Extension, settings: Settings) -> str:
    """Return which model is used, by whom, which names and which endpoints there are."""
    name = settings.model or DEFAULT_MODEL
    opened = model_of(settings)
    as_named = "" if name == opened.name else f" ({name})"
    lines = [f"model      {opened.name}{as_named}", f"           {_facts(opened)}"]
    if settings.fallback_model:
        second, why = fallback_of(settings)
        lines.append(f"fallback   {settings.fallback_model if second is None else second.name}, {why or _when(opened)}")
    lines += _labelled("used by", _used(extension))
    lines += _labelled("subagents", _kinds(extension))
    names = [f"{short} = {resolve(short, os.environ)}" for short in ALIASES]
    lines += _labelled(
        "names",
        [*names, f"{OPUSPLAN} = opus in plan mode, else sonnet", "human = you write the replies", "or any model id"],
    )
    lines += _labelled("endpoints", [_endpoint(one) for one in settings.endpoints.values()] or [_NO_ENDPOINTS])
    lines.append("change     %agent model NAME, or for one cell %%agent -m NAME")
    return visible_plain("\n".join(lines))


_NO_ENDPOINTS = "none; [endpoints.NAME] in your own settings file makes one (docs/models.md)"


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    return [f"{label if not place else '':<11}{line}" for place, line in enumerate(lines)]


def _when(first: Model) -> str:
    return "where nobody is there" if isinstance(first, HumanModel) else "if overloaded"


def _facts(model: Model) -> str:
    if isinstance(model, HumanModel):
        return "you write the replies, in a card of the cell; free"
    found = getattr(model, "facts", None)
    facts = found if isinstance(found, Facts) else Facts()
    price = (
        f"{facts.price.input:g} / {facts.price.output:g} USD a million tokens in / out"
        if facts.price is not None
        else "price not known: a budget in money counts as tokens"
    )
    window = f"{facts.context:,} tokens of context" if facts.context is not None else "context window not known"
    return f"{getattr(model, 'place', '') or 'a script'}; {window}; {price}"


def _endpoint(endpoint: Endpoint) -> str:
    key = f"key in {endpoint.api_key_env}" if endpoint.api_key_env else "no key"
    models = ", ".join(f"{endpoint.name}/{name}" for name in list(endpoint.models)[:_SHOWN])
    where = endpoint.base_url or endpoint.provider
    return f"{endpoint.name}: {where} ({key}){f': {models}' if models else ''}"


def _kinds(extension: Extension) -> list[str]:
    from nbagent.app.agents import specs_of

    return [f"{name}: {spec.model}" for name, spec in specs_of(extension).items() if spec.model not in {"", "inherit"}]


def _used(extension: Extension) -> list[str]:
    """Return who has got how many replies of which model in the last conversation."""
    if extension.last is None:
        return []
    counted = Counter(_replies(extension.last.store.path))
    return [
        f"{who}: {model}, {count} {'reply' if count == 1 else 'replies'}" for (who, model), count in counted.items()
    ]


def _replies(file: Path) -> Iterator[tuple[str, str]]:
    """Yield who got a reply, and of which model, from the records of a session."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        if '"reply_started"' not in line:
            continue
        try:
            event: Any = json.loads(line).get("event")
        except (ValueError, AttributeError):
            continue
        who = "this conversation"
        while isinstance(event, dict) and isinstance(event.get("event"), dict):
            who, event = str(event.get("agent") or who), event["event"]
        if isinstance(event, dict) and event.get("type") == "reply_started" and event.get("model"):
            yield who, str(event["model"])
