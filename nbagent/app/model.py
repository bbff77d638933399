"""Opens the model that the settings choose: one place, so that a name means the same wherever it is looked up.

A run's model is a `RunModel`: it may be changed between two turns (a skill's own model, a fallback for an overloaded
one), never inside a reply. Must not know of cells. Read `open_named`, then `RunModel`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from nbagent.app.lesson import model_under
from nbagent.app.recording import REPLAY, opened
from nbagent.config import Settings
from nbagent.core.errors import ConfigError, Overloaded
from nbagent.core.messages import Json
from nbagent.core.policy import Mode
from nbagent.core.ports import Model, Request
from nbagent.models import at_endpoint, catalog, open_model, voice
from nbagent.models.catalog import DEFAULT_MODEL
from nbagent.models.human import NOBODY, Ask, HumanModel
from nbagent.models.passing import Passing, close

PATIENCE = 2
"""Tries of one request that the model may be overloaded for, until the fallback is asked."""

BROKEN = "broken:"
OPUSPLAN = "opusplan"
"""Claude Code's name for: opus in plan mode, else sonnet."""


def open_named(settings: Settings, name: str) -> Model:
    """Return the model `name` as the settings understand it: short name, id, or `<endpoint>/<id>` of the person's own.

    `broken:KIND` is one that misbehaves on purpose, for lessons. For whoever names a model: a cell, a kind of subagent, a
    skill, a hook, a role of a team. Raises `ConfigError`.
    """
    name = model_under(settings.lesson, name)
    if name.strip().startswith(BROKEN):
        from nbagent.teach.misbehaving import open_broken

        return open_broken(name, lambda inner: open_named(settings, inner))
    if name.strip().lower() == OPUSPLAN:
        name = "opus" if settings.mode is Mode.PLAN else "sonnet"
    return open_model(name, base_url=settings.base_url or None, endpoints=settings.endpoints)


def open_beside(settings: Settings, name: str, beside: Model) -> Model:
    """Return the model `name` for work beside `beside`, whose server a short name (opus, haiku …) is looked for at first.

    A server of others that has no such model is asked for `beside` itself. Raises `ConfigError`.
    """
    endpoint = settings.endpoints.get(str(getattr(beside, "place", ""))) if not settings.lesson.model else None
    short = name.strip().lower()
    if endpoint is None or short not in catalog.ALIASES:
        return open_named(settings, name)
    if short in endpoint.models or (endpoint.provider == "messages" and catalog.is_claude(beside.name)):
        return at_endpoint(endpoint, short)
    return beside


def model_of(settings: Settings) -> Model:
    """Return the model of `settings`; raise `ConfigError` for a name that means none. `replay:FILE` is a recording."""
    if settings.model.startswith(REPLAY):  # here only: no call and no project's agent may name a file
        return opened(settings.model.removeprefix(REPLAY))
    return open_named(settings, settings.model or DEFAULT_MODEL)


def voice_of(settings: Settings) -> str:
    """Return whose thinking the model of `settings` reads: fixed for a session, as its tools are. Raises `ConfigError`."""
    return voice(model_of(settings))


def fallback_of(settings: Settings) -> tuple[Model | None, str]:
    """Return the model that stands in for an overloaded one, or None and why there is none; raises `ConfigError`.

    It must read what the other has thought: one of the same server.
    """
    if not settings.fallback_model:
        return None, ""
    first = model_of(settings)
    second = open_beside(settings, settings.fallback_model, first)
    if voice(first) != voice(second):
        return None, f"not used: {settings.fallback_model} is not at the server of {first.name}"
    return (second, "") if second.name != first.name else (None, "not used: it is the same model")


Metered = Callable[[Model], Model]
"""Wraps a model so that its requests are counted beside those of others."""


def _as_it_is(model: Model) -> Model:
    return model


def run_model(settings: Settings, metered: Metered = _as_it_is, ask: Ask | None = None) -> RunModel:
    """Return the model of one run; `ask` asks a person who is the model. Raises `ConfigError`."""
    first, fallback = model_of(settings), fallback_of(settings)[0]
    if isinstance(first, HumanModel):
        if ask is not None:
            first = first.asking(ask)
        elif fallback is not None:
            first, fallback = fallback, None
        else:
            raise ConfigError(NOBODY)
    return RunModel(first, settings, fallback, metered)


def stands_in(settings: Settings, ask: Ask | None) -> str:
    """Say who is asked in the place of a person who is not there, "" where nobody is; raises `ConfigError` where nobody can be."""
    if ask is not None or not isinstance(model_of(settings), HumanModel):
        return ""
    return f"Nobody is there to be the model, so {run_model(settings).name} answers instead."


class RunModel(Passing):
    """The model of one run, which may change between two replies; it begins with `first`."""

    def __init__(
        self, first: Model, settings: Settings, fallback: Model | None = None, metered: Metered = _as_it_is
    ) -> None:
        super().__init__(first)
        self._settings, self._fallback, self._metered = settings, fallback, metered
        self._first = first
        self._overloads = 0

    def use(self, name: str) -> str:
        """Ask the model `name` from the next reply on ("" and "inherit": the run's own) and return what to tell people.

        For a skill that names a model: for the rest of the run. Raises `ConfigError`: an unknown name, or a model that
        can't read what was thought so far.
        """
        model = self._first if name.strip() in {"", "inherit"} else open_beside(self._settings, name, self._first)
        if voice(model) != voice(self._first):
            raise ConfigError(
                f"{name} is not at the server of {self._first.name}, and a run can't move to another one. "
                f"Choose it for a whole cell: %%agent -m {name}"
            )
        self._asked = model
        return f"The model is {model.name} for the rest of this run."

    async def aclose(self) -> None:
        """Close idle connections: the run is over."""
        for model in {id(one): one for one in (self._first, self._asked, self._fallback) if one is not None}.values():
            await close(model)

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the events of one reply. A broken reply is thrown away whole, so the next try may ask another model."""
        try:
            async with aclosing(self._metered(self._asked).stream(request)) as events:
                async for event in events:
                    yield event
        except Overloaded as error:
            self._overloads += 1
            if self._fallback is None or self._asked is self._fallback or self._overloads < PATIENCE:
                raise
            self._asked = self._fallback
            raise Overloaded(
                f"{error} {self._fallback.name} is asked for the rest of this run.", retry_after=0.0
            ) from error
        self._overloads = 0
