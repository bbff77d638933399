"""Settings and where they come from: defaults < the person's file < the project's file < environment < %config < options.

A project's `pyproject.toml` comes with a folder that somebody else may have written: it may set the model and narrow
what is allowed, but never the server's address, a wider mode, a higher limit or an allow rule; such keys are left out
and named in `ignored`. What a notebook itself asks for is judged in app/consent.py.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.limits import PRESETS, Limits
from nbagent.core.messages import Json
from nbagent.core.policy import WIDTH, Mode, Policy
from nbagent.core.rules import Action, Rule, Source
from nbagent.extend.places import Places
from nbagent.extend.rulefiles import RuleFiles, read_rules
from nbagent.extend.trust import Trust
from nbagent.models import catalog
from nbagent.models.endpoints import Endpoint, read_endpoints
from nbagent.teach.course_policy import NO_LESSON, Lesson

RERUN = ("replay", "live", "ask")
"""What to do with a cell that has a finished run: show it, ask the model again, or ask the person."""
STALE = ("ask", "show", "rerun")
"""What to do with a finished run whose inputs have changed; where nobody can be asked, `ask` fails the cell."""
RESUME = ("always", "ask", "never")
"""Whether a notebook goes on in its last session when its kernel was restarted."""
CHOICES = {"rerun": RERUN, "stale": STALE, "resume": RESUME}
WEB = ("search", "fetch")
"""What the model's server may do on the web."""
SERVERS = "mcp_servers"
"""The table of the person's MCP servers in their own file: no setting, `app/mcp.py` reads it."""
ENDPOINTS = "endpoints"
"""The table of the person's model servers: in their own file only, since keys and prompts go where it says."""
_LIMITS = ("max_turns", "budget", "budget_tokens", "timeout", "cell_timeout")
_FROM_A_PROJECT = frozenset(
    {
        "model",
        "fallback_model",
        "mode",
        "preset",
        *_LIMITS,
        "cell_patience",
        "system_append",
        "prompt",
        "rerun",
        "stale",
        "resume",
        "ask",
        "deny",
    }
    | {"hide", "schema_only", "secrets"}
)
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
    cell_patience: float = 60.0
    agent_depth: int = 1
    background_agents: int = 4
    compact_at: float = 0.8
    context_window: int | None = None
    base_url: str = ""
    fallback_model: str = ""
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    web: tuple[str, ...] = ()
    web_allowed_domains: tuple[str, ...] = ()
    web_blocked_domains: tuple[str, ...] = ()
    web_max_uses: int = 8
    served: tuple[Json, ...] = ()
    """Tools of the model's server that a run offers, as they are sent: no setting, app/web.py asks the person for them."""
    system_append: str = ""
    rerun: str = "replay"
    stale: str = "ask"
    resume: str = "always"
    prompt: Mapping[str, str] = field(default_factory=dict[str, str])
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    schema_only: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    lesson: Lesson = NO_LESSON
    """What a teacher has set: no setting, app/lesson.py folds it in."""
    files: RuleFiles = field(default_factory=RuleFiles)

    def limits(self) -> Limits:
        """The limits of a run; raises `ConfigError` for an unknown preset."""
        if self.preset and self.preset not in PRESETS:
            raise ConfigError(f"There is no preset {self.preset!r}. The presets are {', '.join(PRESETS)}.")
        turns = self.max_turns if self.max_turns is not None else PRESETS[self.preset or "research"]
        return Limits(max_turns=turns, tokens=self.budget_tokens, usd=self.budget, seconds=self.timeout)

    def patience(self) -> float | None:
        """Seconds after which the model may think while its code goes on; None: it waits for its code."""
        return self.cell_patience or None

    def policy(self, kept: list[Rule] | None = None) -> Policy:
        """The policy of mode and rules, and of those `kept` in this session; raises `ConfigError` for a text that is no rule."""
        by_action: dict[Action, tuple[str, ...]] = {"allow": self.allow, "ask": self.ask, "deny": self.deny}
        given = Source("option")
        rules = tuple(Rule.parse(action, text, given) for action, texts in by_action.items() for text in texts)
        return Policy(self.mode, (*self.files.rules, *rules), kept)


def is_wider(mode: Mode, other: Mode) -> bool:
    """Whether more may happen unasked in `mode` than in `other`."""
    return WIDTH[mode] > WIDTH[other]


_TYPES: dict[str, type] = {
    "model": str, "fallback_model": str, "preset": str, "rerun": str, "stale": str, "resume": str, "base_url": str, "system_append": str, "mode": Mode,
    "max_turns": int, "web_max_uses": int, "budget_tokens": int, "agent_depth": int, "background_agents": int, "context_window": int, "compact_at": float, "budget": float, "timeout": float, "cell_timeout": float, "cell_patience": float,
}  # fmt: skip
_MAY_BE_0 = ("cell_patience",)
_RULES = ("allow", "ask", "deny")
_ADDED = (*_RULES, "hide", "schema_only", "secrets")
"""Settings of which those of all sources count."""
_LISTS = ("web", "web_allowed_domains", "web_blocked_domains")
_DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w./~*-]*)?", re.IGNORECASE | re.ASCII)
NAMES = tuple(f.name for f in fields(Settings) if f.name not in {"ignored", "files", "served", "lesson", ENDPOINTS})
"""The names of all settings."""


def load(
    folder: Path, environment: Mapping[str, str], *more: Mapping[str, Any], files: RuleFiles | None = None
) -> Settings:
    """Return the settings in force in `folder`; later sources win, rules of all sources add up.

    `files`: the rules of settings files (None: they are read).

    Raises `ConfigError` that names the source, the key, its value and what is expected.
    """
    files = files or _rule_files(folder, environment)
    settings = Settings(model=_claudes(files.model), mode=files.mode or Mode.DEFAULT, files=files)
    if (own := own_file()).is_file():
        table = _toml(own)
        settings = _merge(settings, {k: v for k, v in table.items() if k not in {SERVERS, ENDPOINTS}}, str(own))
        settings = replace(settings, endpoints=read_endpoints(table.get(ENDPOINTS, {}), str(own)))
    settings = replace(settings, model=_claudes(files.project_model) or settings.model)
    if (project := _project_file(folder)) is not None:
        tool = _toml(project).get("tool", {})
        table = tool.get("nbagent", {}) if isinstance(tool, dict) else {}
        if not isinstance(table, dict):
            raise ConfigError(f"{project}: [tool.nbagent] must be a table of settings, not {table!r}.")
        ignored = _too_wide(table, settings, str(project))
        allowed = {key: value for key, value in table.items() if _key(key) not in ignored}
        named = tuple(f"{project}: {_key(key)} = {table[key]!r}" for key in table if _key(key) in ignored)
        settings = replace(_merge(settings, allowed, str(project)), ignored=named)
    if files.project_mode and (files.project_trusted or not is_wider(files.project_mode, settings.mode)):
        settings = replace(settings, mode=files.project_mode)
    settings = _merge(settings, _from_environment(environment), "environment")
    for source in more:
        settings = _merge(settings, source, "option")
    if files.no_bypass and settings.mode is Mode.BYPASS:
        said = f"mode = bypass: {files.no_bypass} forbids it, so the mode is default"
        settings = replace(settings, mode=Mode.DEFAULT, ignored=(*settings.ignored, said))
    return settings


def _claudes(name: str) -> str:
    """Return the model that a settings file for Claude Code names, "" where only Claude Code would know it."""
    return (
        name if name.startswith("claude-") or catalog.resolve(name).startswith("claude-") or name == "opusplan" else ""
    )


def _rule_files(folder: Path, environment: Mapping[str, str]) -> RuleFiles:
    places = Places.of(folder, environment)
    return read_rules(places, Trust(places.root, places.own / "trust").holds)


def own_file() -> Path:
    """Return the path of the person's own settings file, in the platform's configuration folder."""
    import platformdirs  # noqa: PLC0415  (only when settings are read)

    return Path(platformdirs.user_config_dir("nbagent")) / "config.toml"


def own_servers() -> Mapping[str, Any]:
    """Return the MCP servers in the person's own file, by name; raises `ConfigError` where it can't be read."""
    table = _toml(own).get(SERVERS, {}) if (own := own_file()).is_file() else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{own}: [{SERVERS}] must be a table of servers.")
    return table


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


def _key(name: str) -> str:
    return name.replace("-", "_")


def _too_wide(table: Mapping[str, Any], mine: Settings, where: str) -> set[str]:
    """Return the keys of a project's settings that it may not make: what widens, and what reaches somewhere else."""
    wide: set[str] = set()
    for raw, value in table.items():
        key = _key(raw)
        if key == "web" and not _listed(key, value, where):
            continue  # off is narrower
        if (
            key == ENDPOINTS
            or (key in NAMES and key not in _FROM_A_PROJECT)
            or (key == "mode" and is_wider(_typed(key, value, where), mine.mode))
        ):
            wide.add(key)
        elif key in {"model", "fallback_model"} and any(w in str(value) for w in ("scripted:", "replay:")):
            wide.add(key)  # it would import a module of the project's
        elif key == "secrets" and "re:" in str(value):
            wide.add(key)  # an expression of somebody else's could keep the kernel busy for ever
        elif key in _LIMITS and (limit := getattr(mine, key)) is not None and _typed(key, value, where) > limit:
            wide.add(key)
    return wide


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in NAMES:
        if (value := environment.get(_ENVIRONMENT + name.upper(), "").strip()) and name != "prompt":
            found[name] = (
                value.split("\n") if name in _ADDED else value.replace(",", " ").split() if name in _LISTS else value
            )
    if "model" not in found and (model := environment.get("ANTHROPIC_MODEL", "").strip()):
        found["model"] = model
    return found


def _merge(settings: Settings, source: Mapping[str, Any], where: str) -> Settings:
    changes: dict[str, Any] = {}
    for raw, value in source.items():
        key = _key(raw)
        if value is None:
            continue
        if key in _ADDED:
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
                of = "rules, e.g. ['shell']" if key in _RULES else "texts, e.g. ['patients', 'df.ssn']"
                raise ConfigError(f"{where}: {key} = {value!r} must be a list of {of}.")
            changes[key] = (*getattr(settings, key), *texts)
        elif key in _LISTS:
            changes[key] = _listed(key, value, where)
        elif key == "prompt":
            if not isinstance(value, Mapping):
                raise ConfigError(f"{where}: prompt = {value!r} must be a table of parts, e.g. prompt.cells = '…'.")
            changes[key] = {**settings.prompt, **{str(k): str(v) for k, v in value.items()}}
        elif key in _TYPES:
            changes[key] = _typed(key, value, where)
        else:
            near = difflib.get_close_matches(key, NAMES, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" The settings are {', '.join(NAMES)}."
            raise ConfigError(f"{where}: there is no setting {raw!r}.{hint}")
    if "preset" in changes and "max_turns" not in changes:
        changes["max_turns"] = None  # the later word counts
    return replace(settings, **changes)


def _listed(key: str, value: Any, where: str) -> tuple[str, ...]:
    """Return what of the web a setting names: what may be done there, or domains."""
    if key == "web" and (value in (True, False) or value in ("on", "off", ["on"], ["off"])):
        return WEB if value in (True, "on", ["on"]) else ()
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{where}: {key} = {value!r} must be a list of texts.")
    if key != "web":
        texts = [text.strip().removeprefix("https://").removeprefix("http://").rstrip("/").lower() for text in texts]
    for text in texts:
        if key == "web" and text not in WEB:
            raise ConfigError(f"{where}: web = {value!r} is not a list of {', '.join(WEB)}.")
        if key != "web" and not _DOMAIN.fullmatch(text):
            raise ConfigError(f"{where}: {key}: {text!r} is not a domain such as docs.python.org.")
    return tuple(dict.fromkeys(texts))


def _typed(key: str, value: Any, where: str) -> Any:
    kind = _TYPES[key]
    if kind is Mode and value == "auto":  # a classifier decides: there is none here
        return Mode.DEFAULT
    if kind is str and not isinstance(value, str):
        raise ConfigError(f"{where}: {key} = {value!r} is not text.")
    if key in CHOICES and value not in CHOICES[key]:
        raise ConfigError(f"{where}: {key} = {value!r} is not one of {', '.join(CHOICES[key])}.")
    made: Any
    try:
        made = kind(value)
    except (TypeError, ValueError):
        numbers = "a whole number" if kind is int else "a number"
        expected = f"one of {', '.join(Mode)}" if kind is Mode else numbers
        raise ConfigError(f"{where}: {key} = {value!r} is not {expected}.") from None
    if kind in {int, float} and not (0 < made < math.inf or (key in _MAY_BE_0 and made == 0)):
        raise ConfigError(f"{where}: {key} = {value!r} must be a number above 0.")
    return made
