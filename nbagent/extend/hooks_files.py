"""Which hooks a folder and its person have: settings files of all levels, read with trust in the project's own.

Those of a project are inert until the person said yes to them (`holds`); those that are not stay named, so that the
person can be told. One whose script has changed since the yes stays in its place and fails each time, so that its gate
is shut: else changing a guard would be a way past it. Must not know how a hook runs. Read `load`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.extend.hooks_names import Dialect
from nbagent.extend.hooks_settings import Allowed, Hook, Scope, Source, read
from nbagent.extend.places import OURS, Places
from nbagent.extend.survey import hook_power, read_json
from nbagent.extend.textfiles import read_text
from nbagent.extend.trust import Power

MANAGED = "managed-settings.json"
USER = "settings.json"
LOCAL = "settings.local.json"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The hooks in force, in the order managed, user, project, local; what has no effect; and what waits for trust.

    `urls` and `variables` narrow http hooks, None where no settings do.
    """

    hooks: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()
    inert: tuple[Power, ...] = ()
    urls: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None


def load(places: Places, holds: Callable[[Power], bool], changed: Callable[[Power], bool] = lambda _: False) -> Loaded:
    """Read all settings files for the working folder of `places`; `holds` tells whether the person trusts a power.

    `changed` tells whether they trusted it with another content.

    Raises `ConfigError` for one of the person's own files, or a trusted table, that has another shape: a run without its
    guards must not begin.
    """
    found = _Found(places, holds, changed)
    found.take(_own(places.managed / MANAGED), places.managed / MANAGED, "managed")
    only_managed = found.said.get("allowManagedHooksOnly") is True
    for path in reversed(places.user(USER)):
        found.take(_own(path), path, "user")
    for name, scope in ((USER, "project"), (LOCAL, "local")):
        for path in reversed(places.project(name)):
            found.take(read_json(path, places, found.problems), path, cast("Scope", scope))
    hooks = [hook for hook in found.hooks if not only_managed or hook.source.scope == "managed"]
    return Loaded(
        tuple(hooks), tuple(found.problems), tuple(dict.fromkeys(found.inert)), found.listed("allowedHttpHookUrls"),
        found.listed("httpHookAllowedEnvVars"),
    )  # fmt: skip


def of_skill(
    table: object,
    name: str,
    *,
    trusted: bool,
    environment: Mapping[str, str],
    allowed: Allowed | None = None,
    own: bool = True,
) -> tuple[Hook, ...]:
    """Return the hooks of a skill as its frontmatter has them; none of them where it is not `trusted`.

    `allowed` tells at each call whether its files are still those that were trusted (None: they are the person's own).
    `own`: the run itself called it; what a subagent calls may hold back, and opens nothing for its parent.
    """
    source = Source(f"skill {name}", "skill" if own else "agent", "claude", environment, allowed)
    return read(table, source).hooks if trusted else ()


def of_agent(table: object, name: str, *, trusted: bool) -> tuple[Hook, ...]:
    """Return the hooks of a subagent's frontmatter; none of them where it is not `trusted`."""
    return read(table, Source(f"agent {name}", "agent", "claude")).hooks if trusted else ()


class _Found:
    """What was found so far."""

    def __init__(self, places: Places, holds: Callable[[Power], bool], changed: Callable[[Power], bool]) -> None:
        self.hooks: list[Hook] = []
        self.problems: list[str] = []
        self.inert: list[Power] = []
        self.said: Json = {}
        self._places, self._holds, self._changed = places, holds, changed
        self._lists: dict[str, tuple[str, ...]] = {}
        self._off: set[Scope] = set()

    def take(self, settings: Json | None, path: Path, scope: Scope) -> None:
        """Take what one settings file says."""
        if settings is None or scope in self._off:
            return
        mine = scope in {"managed", "user"}
        if mine:
            self._narrow(settings)
        if settings.get("disableAllHooks") is True:
            self._disable(scope)
            return
        shown = self._places.shown(path)
        dialect: Dialect = "nbagent" if OURS in path.parts or path.parent == self._places.own else "claude"

        def allowed(event: str, matcher: Any, handler: Json) -> bool:
            return self._holds(hook_power(event, matcher, handler, shown, self._places))

        source = Source(shown, scope, dialect, allowed=None if mine else allowed)
        try:
            found = read(settings.get("hooks"), source)
        except ConfigError as error:
            if mine:
                raise
            self.problems.append(f"{error} None of its hooks is used.")
            return
        self.problems += found.problems
        for hook in found.hooks:
            if hook.is_allowed:
                self.hooks.append(hook)
                continue
            power = hook_power(*hook.written, dict(hook.spec), shown, self._places)
            self.inert.append(power)
            if self._changed(power):
                self.hooks.append(hook)

    def _disable(self, scope: Scope) -> None:
        """Switch hooks off: the administrator all, the person all but the administrator's, a project only its own."""
        reach: dict[Scope, tuple[Scope, ...]] = {
            "managed": ("managed", "user", "project", "local"),
            "user": ("user", "project", "local"),
        }
        self._off.update(reach.get(scope, ("project", "local")))
        self.hooks = [hook for hook in self.hooks if hook.source.scope not in self._off]

    def _narrow(self, settings: Json) -> None:
        self.said |= {key: value for key, value in settings.items() if key == "allowManagedHooksOnly"}
        for key in ("allowedHttpHookUrls", "httpHookAllowedEnvVars"):
            if isinstance(value := settings.get(key), list):
                self._lists[key] = (*self._lists.get(key, ()), *map(str, cast("list[Any]", value)))

    def listed(self, key: str) -> tuple[str, ...] | None:
        """Return a list that the person's settings have, None where they have none."""
        return self._lists.get(key)


def _own(path: Path) -> Json | None:
    """Return the object in one of the person's own settings files; raise `ConfigError` where it is none."""
    found = read_text(path)
    if found is None:
        return None
    if found.problem and not found.text:
        raise ConfigError(found.problem)
    try:
        data = json.loads(found.text or "{}")
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON: {error}.") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must be an object like {{…}}.")
    return cast("Json", data)
