"""Settings and where they come from: defaults < the person's file < the project's file < environment < %config < options.

A project's `pyproject.toml` comes with a folder that somebody else may have written: it may set the model and narrow
what is allowed, but never the server's address, a wider mode or an allow rule; such keys are left out and named in
`ignored`. Nothing is ever read from a notebook.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.limits import PRESETS, Limits
from nbagent.core.policy import Action, Mode, Policy, Rule

WIDER_MODES = frozenset({Mode.ACCEPT_EDITS, Mode.BYPASS})
_NOT_FROM_A_PROJECT = ("base_url", "allow")
_ENVIRONMENT = "NBAGENT_"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; None or "" means that nothing was set. Budgets: US dollars, tokens; times: seconds."""

    model: str = ""
    mode: Mode = Mode.DEFAULT
    preset: str = ""
    max_turns: int | None = None
    budget: float | None = None
    budget_tokens: int | None = None
    timeout: float | None = None
    cell_timeout: float | None = 600.0
    base_url: str = ""
    system_append: str = ""
    prompt: Mapping[str, str] = field(default_factory=dict[str, str])
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def limits(self) -> Limits:
        """The limits of a run; raises `ConfigError` for an unknown preset."""
        if self.preset and self.preset not in PRESETS:
            raise ConfigError(f"There is no preset {self.preset!r}. The presets are {', '.join(PRESETS)}.")
        turns = self.max_turns if self.max_turns is not None else PRESETS[self.preset or "research"]
        return Limits(max_turns=turns, tokens=self.budget_tokens, usd=self.budget, seconds=self.timeout)

    def policy(self) -> Policy:
        """The policy of mode and rules; raises `ConfigError` for a text that is no rule."""
        by_action: dict[Action, tuple[str, ...]] = {"allow": self.allow, "ask": self.ask, "deny": self.deny}
        rules = tuple(Rule.parse(action, text) for action, texts in by_action.items() for text in texts)
        return Policy(self.mode, rules)


_TYPES: dict[str, type] = {
    "model": str, "preset": str, "base_url": str, "system_append": str, "mode": Mode,
    "max_turns": int, "budget_tokens": int, "budget": float, "timeout": float, "cell_timeout": float,
}  # fmt: skip
_RULES = ("allow", "ask", "deny")
NAMES = tuple(f.name for f in fields(Settings) if f.name != "ignored")
"""The names of all settings."""


def load(folder: Path, environment: Mapping[str, str], *more: Mapping[str, Any]) -> Settings:
    """Return the settings in force in `folder`; later sources win, rules of all sources add up.

    Raises `ConfigError` that names the source, the key, its value and what is expected.
    """
    settings = Settings()
    if (own := own_file()).is_file():
        settings = _merge(settings, _toml(own), str(own))
    if (project := _project_file(folder)) is not None:
        table = _toml(project).get("tool", {}).get("nbagent", {})
        allowed, ignored = _narrowing(table, settings.mode)
        settings = replace(_merge(settings, allowed, str(project)), ignored=tuple(f"{project}: {k}" for k in ignored))
    settings = _merge(settings, _from_environment(environment), "environment")
    for source in more:
        settings = _merge(settings, source, "option")
    return settings


def own_file() -> Path:
    """Return the path of the person's own settings file, in the platform's configuration folder."""
    import platformdirs  # noqa: PLC0415  (only when settings are read)

    return Path(platformdirs.user_config_dir("nbagent")) / "config.toml"


def _project_file(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        if (file := place / "pyproject.toml").is_file():
            return file
    return None


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} can't be read: {error}.") from error


def _narrowing(table: Mapping[str, Any], mode: Mode) -> tuple[dict[str, Any], list[str]]:
    """Split a project's settings into those that it may make and the names of those that it may not."""
    allowed, ignored = dict(table), list[str]()
    for key in _NOT_FROM_A_PROJECT:
        if allowed.pop(key, None) is not None:
            ignored.append(key)
    if "mode" in allowed and allowed["mode"] != mode and allowed["mode"] in {str(m) for m in WIDER_MODES}:
        ignored.append(f"mode = {allowed.pop('mode')!r}")
    return allowed, ignored


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in NAMES:
        if (value := environment.get(_ENVIRONMENT + name.upper(), "").strip()) and name != "prompt":
            found[name] = value.split("\n") if name in _RULES else value
    return found


def _merge(settings: Settings, source: Mapping[str, Any], where: str) -> Settings:
    changes: dict[str, Any] = {}
    for raw, value in source.items():
        key = raw.replace("-", "_")
        if value is None:
            continue
        if key in _RULES:
            texts = [value] if isinstance(value, str) else list(value)
            changes[key] = (*getattr(settings, key), *texts)
        elif key == "prompt" and isinstance(value, Mapping):
            changes[key] = {**settings.prompt, **{str(k): str(v) for k, v in value.items()}}
        elif key in _TYPES:
            changes[key] = _typed(key, value, where)
        else:
            near = difflib.get_close_matches(key, NAMES, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" The settings are {', '.join(NAMES)}."
            raise ConfigError(f"{where}: there is no setting {raw!r}.{hint}")
    return replace(settings, **changes)


def _typed(key: str, value: Any, where: str) -> Any:
    kind = _TYPES[key]
    try:
        made = kind(value)
    except (TypeError, ValueError):
        expected = (
            f"one of {', '.join(Mode)}"
            if kind is Mode
            else {int: "a whole number", float: "a number"}.get(kind, "text")
        )
        raise ConfigError(f"{where}: {key} = {value!r} is not {expected}.") from None
    if kind in {int, float} and made <= 0:
        raise ConfigError(f"{where}: {key} = {value!r} must be more than 0.")
    return made
