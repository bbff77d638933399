"""Models: the Messages API and scripts, behind the core's `Model` port. Read `open_model` first.

Importing this package imports no client library.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ConfigError
from nbagent.models import catalog
from nbagent.models.anthropic import AnthropicModel, warm_up
from nbagent.models.catalog import DEFAULT_MODEL
from nbagent.models.credentials import HOME, server_url
from nbagent.models.scripted import ScriptedModel

if TYPE_CHECKING:
    from nbagent.core.ports import Model

__all__ = ["DEFAULT_MODEL", "AnthropicModel", "ScriptedModel", "open_model", "warm_up"]

_SCRIPTED = "scripted:"


def open_model(spec: str, *, base_url: str | None = None, api_key: str | None = None) -> Model:
    """Return the model that `spec` names; nothing is sent yet and no key is needed yet.

    `spec` is a short name (opus, sonnet, haiku, fable), a model id, or `scripted:package.module:attribute`: a list of
    turns, a `ScriptedModel`, or a function without arguments that returns one of both. A script is found by importing
    its module, so only what is already on `sys.path` can be named, and nothing else is run. A server other than
    Anthropic's may have models of any name.

    Raises:
        ConfigError: Empty or unknown name (with the nearest spelling), a script that is not there, a bad base_url.
    """
    name = spec.strip()
    if not name:
        raise ConfigError(f"No model is named. Choose {_choices()}, or a model id.")
    if name.startswith(_SCRIPTED):
        return _scripted(name.removeprefix(_SCRIPTED))
    model = catalog.resolve(name)
    if server_url(base_url) == HOME and not model.startswith("claude-"):
        near = catalog.nearest(name)
        hint = f"Did you mean {near!r}?" if near else f"Choose {_choices()}, or a model id."
        raise ConfigError(f"Unknown model {name!r}. {hint} A model of another server needs its base_url.")
    return AnthropicModel(model, base_url=base_url, api_key=api_key)


def _choices() -> str:
    return ", ".join(catalog.ALIASES)


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
        value = value()
    if isinstance(value, ScriptedModel):
        return value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"The script {path!r} is a {type(value).__name__}; it must be a list of turns.")
    return ScriptedModel(value, name=f"{module_name.rpartition('.')[2]} (scripted)")
