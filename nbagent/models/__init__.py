"""Models: the Messages API and scripts, behind the core's `Model` port. Read `open_model` first.

Importing this package imports no client library.
"""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError
from nbagent.models import catalog
from nbagent.models.anthropic import AnthropicModel
from nbagent.models.catalog import DEFAULT_MODEL, Facts
from nbagent.models.clients import warm_up
from nbagent.models.credentials import HOME, server_url
from nbagent.models.endpoints import Endpoint
from nbagent.models.human import NAME as HUMAN
from nbagent.models.human import HumanModel
from nbagent.models.platforms import PlatformModel
from nbagent.models.scripted import ScriptedModel

if TYPE_CHECKING:
    from nbagent.core.ports import Model

__all__ = [
    "DEFAULT_MODEL",
    "AnthropicModel",
    "Endpoint",
    "HumanModel",
    "PlatformModel",
    "ScriptedModel",
    "at_endpoint",
    "catalog",
    "open_model",
    "voice",
    "warm_up",
    "window",
]

_SCRIPTED = "scripted:"
_LONGEST = 200
_NONE: Mapping[str, Endpoint] = MappingProxyType({})


def open_model(
    spec: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    endpoints: Mapping[str, Endpoint] = _NONE,
) -> Model:
    """Return the model that `spec` names; nothing is sent yet and no key is needed yet.

    `spec` is a short name (opus, sonnet, haiku, fable, best, default), a model id, human (a person writes the replies),
    `<endpoint>/<id>` for one of the person's `endpoints`, or `scripted:package.module:attribute`: a list of turns, a `ScriptedModel`, or a function
    without arguments that returns one of both. A script is found by importing its module, so only what is already on
    `sys.path` can be named, and nothing else is run. A server other than Anthropic's may have models of any name.

    Raises:
        ConfigError: Empty or unknown name (with the nearest spelling), a script that is not there, a bad base_url.
    """
    name = spec.strip()
    if not name:
        raise ConfigError(f"No model is named. Choose {_choices()}, or a model id.")
    if not name.isprintable() or len(name) > _LONGEST or any(char in name for char in " '\"`"):
        raise ConfigError(f"{name[:60]!r} can't be the name of a model. Choose {_choices()}, or a model id.")
    if name.startswith(_SCRIPTED):
        return _scripted(name.removeprefix(_SCRIPTED))
    if name == HUMAN:
        return HumanModel()
    where, slash, rest = name.partition("/")
    if (endpoint := endpoints.get(where)) is not None:
        return at_endpoint(endpoint, rest if slash else "")
    model = catalog.resolve(name, os.environ)
    if server_url(base_url) == HOME and not model.startswith("claude-"):
        raise ConfigError(_unknown(name, where if slash else "", endpoints))
    return AnthropicModel(model, base_url=base_url, api_key=api_key)


def at_endpoint(endpoint: Endpoint, name: str) -> Model:
    """Return the model of `endpoint` with this name; without one its only or first model. Raises `ConfigError`."""
    if not name.strip():
        if not endpoint.models:
            raise ConfigError(
                f"{endpoint.name} is an endpoint. Name a model of it, e.g. {endpoint.name}/MODEL; "
                f"%agent model {endpoint.name} lists what it has."
            )
        name = next(iter(endpoint.models))
    if endpoint.provider == "messages":
        return AnthropicModel(name.strip(), endpoint=endpoint)
    return PlatformModel(name.strip(), endpoint)


def window(model: object) -> int | None:
    """Return the context window of a model in tokens, None where it is not known."""
    found: Any = getattr(model, "facts", None)
    return found.context if isinstance(found, Facts) else None


def voice(model: object) -> str:
    """Return whose thinking a model reads: two models of one voice can go on with one transcript as it is.

    Thinking is bound to the account and to Claude: another server, or a model of others, gets it left out.
    """
    place: Any = getattr(model, "place", "")
    if not place:
        return "scripted"
    return f"{place} {'claude' if catalog.is_claude(str(getattr(model, 'name', ''))) else getattr(model, 'name', '')}"


def _unknown(name: str, where: str, endpoints: Mapping[str, Endpoint]) -> str:
    if where and (near := difflib.get_close_matches(where, endpoints, 1)):
        return f"There is no endpoint {where!r}. Did you mean {near[0]!r}? %agent model lists yours."
    near_name = catalog.nearest(name, (*endpoints, HUMAN))
    hint = f"Did you mean {near_name!r}?" if near_name else f"Choose {_choices()}, or a model id."
    return (
        f"Unknown model {name!r}. {hint} A model of another server needs its base_url, or an endpoint in your settings."
    )


def _choices() -> str:
    return ", ".join((*catalog.ALIASES, HUMAN))


def _scripted(path: str) -> ScriptedModel:
    module_name, _, attribute = path.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), attribute]):
        raise ConfigError(f"A script is named scripted:package.module:attribute, not {_SCRIPTED + path!r}.")
    try:
        value: Any = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise ConfigError(f"The script {path!r} cannot be imported: {error}. Is its folder on sys.path?") from error
    except AttributeError:
        raise ConfigError(f"The module {module_name!r} has no script {attribute!r}.") from None
    if callable(value):
        try:
            value = value()
        except TypeError as error:
            raise ConfigError(f"The script {path!r} can't be made: {error}.") from error
    if isinstance(value, ScriptedModel):
        return value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"The script {path!r} is a {type(value).__name__}; it must be a list of turns.")
    return ScriptedModel(value, name=f"{module_name.rpartition('.')[2]} (scripted)")
