"""Named model servers of the person: `[endpoints.NAME]` in their own settings file, as values.

Keys and prompts go where an endpoint says, so a project's file may name one and never make one (config.py sees to it).
Reads the environment when a key or a header is needed, and keeps neither. Knows nothing of any client library.
Read `read_endpoints`, then `Endpoint`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from nbagent.core.errors import ConfigError
from nbagent.models import catalog
from nbagent.models.catalog import Facts, Price
from nbagent.models.credentials import Key, checked_key, server_url
from nbagent.models.dialect import Auth

PROVIDERS = ("messages", "bedrock", "vertex", "foundry")
"""How a server is reached: the Messages API over HTTP, or one of the SDK's own clients for a cloud."""

AUTHS = (*get_args(Auth), "none")

_FIELDS = ("base_url", "api_key_env", "auth", "headers", "models", "provider", "region", "project")
_FACTS = ("id", "input", "output", "cache_read", "context", "max_output")
_NAME = re.compile(r"[A-Za-z][\w-]{0,39}", re.ASCII)
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}", re.ASCII)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of an endpoint: its id there, and what the person wrote of its price and sizes."""

    id: str
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model server with a name.

    `api_key_env` names the variable that holds its key: without it no key is sent, and never ANTHROPIC_API_KEY, which is
    not for others. `headers` may hold `${NAME}` or `${NAME:-default}` of the environment. `models`: short name → model.
    """

    name: str
    base_url: str = ""
    provider: str = "messages"
    api_key_env: str = ""
    auth: str = "auto"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    models: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    region: str = ""
    project: str = ""

    def entry(self, name: str) -> Entry:
        """Return the model that `name` means here: one of `models`, by name or id, else a short name, else an id."""
        if name in self.models:
            return self.models[name]
        wanted = catalog.resolve(name, os.environ) if self.provider == "messages" else name
        listed = next((entry for entry in self.models.values() if entry.id == wanted), None)
        return listed or Entry(wanted)

    def key(self) -> Key:
        """Return the key, read now; raise `ConfigError` where its variable is not set or holds none."""
        if self.auth == "none" or not self.api_key_env:
            return Key()
        found = checked_key(self.api_key_env, os.environ.get(self.api_key_env))
        if found is None:
            raise ConfigError(f"The endpoint {self.name} wants its key in {self.api_key_env}, which is not set.")
        return Key(found, is_token=False)

    def sent_headers(self) -> dict[str, str]:
        """Return the headers with the environment's values; raise `ConfigError` for a variable that is not set."""
        return {name: self._filled(name, text) for name, text in self.headers.items()}

    def _filled(self, header: str, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            known = os.environ.get(found[1]) or found[2]
            if known is None:
                raise ConfigError(
                    f"The header {header} of the endpoint {self.name} needs {found[1]}, which is not set."
                )
            return known

        filled = _VARIABLE.sub(value, text)
        if not all(" " <= char <= "~" for char in filled):
            raise ConfigError(f"The header {header} of the endpoint {self.name} holds a character that none may have.")
        return filled


def read_endpoints(table: Any, where: str) -> dict[str, Endpoint]:
    """Read the table `endpoints` of the file `where`; raise `ConfigError` that names the key, its value and the fix."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: endpoints must be tables, e.g. [endpoints.work] with base_url = 'https://…'.")
    return {str(name): _endpoint(str(name), value, f"{where}: endpoints.{name}") for name, value in table.items()}


def _endpoint(name: str, given: Any, where: str) -> Endpoint:
    if not _NAME.fullmatch(name) or name in catalog.ALIASES or name in {"scripted", "anthropic"}:
        raise ConfigError(f"{where}: an endpoint's name is a word of its own, e.g. work, not {name!r}.")
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a table with base_url, not {given!r}.")
    for key in given:
        if key not in _FIELDS:
            near = difflib.get_close_matches(str(key), _FIELDS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_FIELDS)}."
            raise ConfigError(f"{where}: there is no {key!r}. {hint}")
    texts = {key: _text(given.get(key, ""), f"{where}.{key}") for key in _FIELDS if key not in {"headers", "models"}}
    provider, auth = texts["provider"] or "messages", texts["auth"] or "auto"
    _one_of(provider, PROVIDERS, f"{where}.provider")
    _one_of(auth, AUTHS, f"{where}.auth")
    if provider == "messages" and not texts["base_url"]:
        raise ConfigError(f"{where} needs its address: base_url = 'http://localhost:11434'.")
    return Endpoint(
        name=name,
        base_url=server_url(texts["base_url"]) if texts["base_url"] else "",
        provider=provider,
        api_key_env=_variable(texts["api_key_env"], where),
        auth=auth,
        headers=_headers(given.get("headers", {}), f"{where}.headers"),
        models=_models(given.get("models", {}), f"{where}.models"),
        region=texts["region"],
        project=texts["project"],
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where} = {value!r} is not text.")
    return value.strip()


def _one_of(value: str, choices: tuple[str, ...], where: str) -> None:
    if value not in choices:
        raise ConfigError(f"{where} = {value!r} is not one of {', '.join(choices)}.")


def _variable(name: str, where: str) -> str:
    if name and not name.isidentifier():
        raise ConfigError(f"{where}.api_key_env is the NAME of a variable that holds the key, not the key itself.")
    return name


def _headers(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a table of texts, e.g. {{'x-team' = 'data'}}.")
    for name in given:
        if not _HEADER.fullmatch(str(name)):
            raise ConfigError(f"{where}: {name!r} is not the name of a header.")
    return {str(name).lower(): _text(value, f"{where}.{name}") for name, value in given.items()}


def _models(given: Any, where: str) -> dict[str, Entry]:
    if isinstance(given, list):
        return {_text(name, where): Entry(_text(name, where)) for name in given}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} is a list of ids, or a table: {{small = 'qwen3:4b'}}.")
    return {str(name): _entry(str(name), value, f"{where}.{name}") for name, value in given.items()}


def _entry(name: str, given: Any, where: str) -> Entry:
    if isinstance(given, str):
        return Entry(given.strip() or name)
    if not isinstance(given, Mapping) or not set(given) <= set(_FACTS):
        raise ConfigError(f"{where} is an id, or a table of {', '.join(_FACTS)} (prices: US dollars a million tokens).")
    numbers = {key: _number(given[key], f"{where}.{key}") for key in _FACTS[1:] if key in given}
    price = None
    if "input" in numbers and "output" in numbers:
        price = Price(numbers["input"], numbers["output"], cache_read=numbers.get("cache_read"))
    context, longest = (int(numbers[key]) if key in numbers else None for key in ("context", "max_output"))
    return Entry(_text(given.get("id", name), f"{where}.id"), Facts(price, context=context, max_output=longest))


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ConfigError(f"{where} = {value!r} must be a number, 0 or more.")
    return float(value)
