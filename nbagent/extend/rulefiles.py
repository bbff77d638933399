"""Permission rules from settings files: the person's, the project's, the local ones, and those of the machine's administrator.

Each is a `permissions` object as Claude Code has it, in `settings.json` (or `settings.toml`) of `.claude` and `.nbagent`.
What a project's files widen (allow rules, folders, a wider mode) is left out until it was trusted; what they narrow counts
at once. A rule that denies in any file is never taken back by another. Read `RuleFiles`, then `read_rules`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.core.policy import MODES, WIDTH, Mode
from nbagent.core.rules import ACTIONS, Action, Rule, Source
from nbagent.extend.places import Places
from nbagent.extend.survey import read_json, rule_power, setting_power
from nbagent.extend.textfiles import read_text
from nbagent.extend.trust import Power

AUTO = "{file}: the mode auto lets a classifier decide; there is none here, so it is read as default"
_NAMES = ("settings.json", "settings.toml")
_LOCAL = ("settings.local.json", "settings.local.toml")
_MOST = 1000


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """What all settings files say about permissions.

    `mode` is the person's own, `project_mode` that of the project (None: not said;
    `project_trusted`: a wider one was trusted); `directories` count as inside of the
    workspace; `model` and `project_model` are what the person's and the project's name as model; `no_bypass` is the file that forbids the mode bypass ("" none); `inert` tells what waits for trust and
    `problems` what is wrong, a sentence each.
    """

    rules: tuple[Rule, ...] = ()
    mode: Mode | None = None
    project_mode: Mode | None = None
    project_trusted: bool = False
    directories: tuple[Path, ...] = ()
    no_bypass: str = ""
    inert: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    model: str = ""
    project_model: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """One settings file: its object, who wrote it, its path as shown, and the folder that `/x` counts from."""

    found: Json
    scope: str
    shown: str
    base: Path


@dataclass(slots=True)
class _Gathering:
    """What was gathered so far."""

    places: Places
    holds: Callable[[Power], bool]
    rules: list[Rule] = field(default_factory=list[Rule])
    mode: Mode | None = None
    project_mode: Mode | None = None
    project_trusted: bool = False
    directories: list[Path] = field(default_factory=list[Path])
    no_bypass: str = ""
    inert: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    model: str = ""
    project_model: str = ""


def read_rules(places: Places, holds: Callable[[Power], bool]) -> RuleFiles:
    """Read all settings files that count in a folder; `holds` says whether a power of the project was trusted."""
    made = _Gathering(places, holds)
    files = list(_files(places, made.problems))
    if any(file.scope == "managed" and file.found.get("allowManagedPermissionRulesOnly") is True for file in files):
        files = [file for file in files if file.scope == "managed" or _narrowed(file)]
    for file in files:
        if isinstance(model := file.found.get("model"), str) and model.strip():
            if file.scope in {"user", "managed"}:
                made.model = model.strip()
            else:
                made.project_model = model.strip()
        permissions = file.found.get("permissions")
        if permissions is None:
            continue
        if not isinstance(permissions, dict):
            made.problems.append(f"{file.shown}: permissions must be an object, so it is not used")
            continue
        _take_rules(made, file, permissions)
        _take_mode(made, file, permissions)
        _take_directories(made, file, permissions)
        if permissions.get("disableBypassPermissionsMode") == "disable":
            made.no_bypass = made.no_bypass or file.shown
    return RuleFiles(
        tuple(made.rules), made.mode, made.project_mode, made.project_trusted, tuple(dict.fromkeys(made.directories)),
        made.no_bypass, tuple(made.inert), tuple(dict.fromkeys(made.problems)),
        made.model, made.project_model,
    )  # fmt: skip


def _narrowed(file: _File) -> bool:
    """Leave in a file only what narrows: the administrator's rules are the only ones that may allow."""
    permissions = file.found.get("permissions")
    if isinstance(permissions, dict):
        for key in ("allow", "additionalDirectories", "defaultMode"):
            permissions.pop(key, None)
    return True


def _files(places: Places, problems: list[str]) -> Iterator[_File]:
    """Yield the files that are there, those that count least first."""
    for name in _NAMES:
        for path in reversed(places.user(name)):
            if (found := _own(path, problems)) is not None:
                yield _File(found, "user", places.shown(path), path.parent)
    for scope, names in (("project", _NAMES), ("local", _LOCAL)):
        for name in names:
            for path in reversed(places.project(name)):
                if (found := read_json(path, places, problems)) is not None:
                    yield _File(found, scope, places.shown(path), path.parent.parent)
    more = places.managed / "managed-settings.d"
    try:
        listed = sorted(more.glob("*.json"))
    except OSError:
        listed = []
    for path in (places.managed / "managed-settings.json", *listed):
        if (found := _own(path, problems)) is not None:
            yield _File(found, "managed", str(path), path.parent)


def _own(path: Path, problems: list[str]) -> Json | None:
    """Return the object in a file of the person's or the administrator's; None, with a sentence, where there is none."""
    read = read_text(path)
    if read is None:
        return None
    try:
        found: Any = tomllib.loads(read.text) if path.suffix == ".toml" else json.loads(read.text)
    except (ValueError, RecursionError) as error:
        problems.append(f"{path} is not used, with all rules in it: {read.problem or error}.")
        return None
    if isinstance(found, dict):
        return found
    problems.append(f"{path} is not used: it must be an object.")
    return None


def _take_rules(made: _Gathering, file: _File, permissions: Json) -> None:
    for action in ACTIONS:
        texts = permissions.get(action, [])
        if not isinstance(texts, list):
            made.problems.append(f"{file.shown}: permissions.{action} must be a list of rules, so it is not used")
            continue
        if len(texts) > _MOST:
            made.problems.append(f"{file.shown}: only the first {_MOST} of permissions.{action} are used")
        for text in texts[:_MOST]:
            _take_rule(made, file, action, text)


def _take_rule(made: _Gathering, file: _File, action: Action, text: Any) -> None:
    try:
        rule = Rule.parse(action, str(text), Source(file.scope, file.shown, str(file.base)))
    except ConfigError as error:
        made.problems.append(f"{file.shown}: {error}")
        return
    if action == "allow" and _waits(made, file, rule_power(str(text), file.shown), f"allow {rule}"):
        return
    made.rules.append(rule)


def _take_mode(made: _Gathering, file: _File, permissions: Json) -> None:
    value = permissions.get("defaultMode")
    if value is None:
        return
    mode = MODES.get(value) if isinstance(value, str) else None
    if mode is None:
        made.problems.append(
            f"{file.shown}: there is no mode {value!r}, so it is not used. The modes are {', '.join(Mode)}"
        )
        return
    if value == "auto":
        made.problems.append(AUTO.format(file=file.shown))
    if file.scope in {"user", "managed"}:
        made.mode = mode
        return
    now = made.project_mode or made.mode or Mode.DEFAULT
    power = setting_power("permissions.defaultMode", value, file.shown, made.places)
    wider = WIDTH[mode] > WIDTH[now]
    if wider and _waits(made, file, power, f"the mode {mode}"):
        return
    made.project_mode, made.project_trusted = mode, made.project_trusted or wider


def _take_directories(made: _Gathering, file: _File, permissions: Json) -> None:
    value = permissions.get("additionalDirectories")
    if not value:
        return
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        made.problems.append(f"{file.shown}: additionalDirectories must be a list of folders, so it is not used")
        return
    power = setting_power("permissions.additionalDirectories", value, file.shown, made.places)
    if _waits(made, file, power, f"the folders {', '.join(value)}"):
        return
    base = file.base if file.scope in {"project", "local"} else made.places.folder
    made.directories += [_folder(one, base, made.places.home) for one in value]


def _folder(text: str, base: Path, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return base / text


def _waits(made: _Gathering, file: _File, power: Power, what: str) -> bool:
    """Whether what widens comes from the project and was not trusted yet; this is then said."""
    if file.scope in {"user", "managed"} or made.holds(power):
        return False
    made.inert.append(f"{what} in {file.shown}")
    return True
