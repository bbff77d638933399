"""What in a project's settings files can run or widen: hooks, MCP servers, allow rules and settings that do so, as powers.

Those who use such a thing ask `Trust.holds` for the very power that is made here of what they are about to use: so what
was shown, what was trusted and what runs are one. A command's own scripts in the project count with it. Read `survey`,
then `hook_power`.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.extend.places import Places
from nbagent.extend.scripts import PROJECT, scripts_of
from nbagent.extend.textfiles import is_inside, read_text, sha256
from nbagent.extend.trust import Power

SETTINGS = ("settings.local.json", "settings.json", "settings.local.toml", "settings.toml")
"""Names of settings files in `.claude` and `.nbagent`."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_RUNS = frozenset(
    {"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper", "statusLine", "fileSuggestion"}
)
_WIDENS = frozenset({"env", "enableAllProjectMcpServers", "enabledMcpjsonServers", "sandbox", "autoMemoryDirectory"})
NOT_HERE = _RUNS | _WIDENS
"""Settings of Claude Code's that nothing here reads from a project: they are named, and not asked about."""
_NO_NAME = frozenset({"timeout", "statusMessage", "async", "once"})
"""Fields of a hook that tell it from no other: with another value it is still the same one, changed."""
_NARROW = frozenset({"", "default", "plan", "dontAsk", "read-only", "dont-ask", "ask"})


@dataclass(frozen=True, slots=True)
class Survey:
    """All powers of a project's settings files, and what is wrong with the files, a sentence each."""

    powers: tuple[Power, ...]
    problems: tuple[str, ...]


def survey(places: Places) -> Survey:
    """Read the project's settings and MCP files, and tell what in them can run or widen; nothing is used."""
    powers: list[Power] = []
    problems: list[str] = []
    for name in SETTINGS:
        for path in places.project(name):
            if (found := read_json(path, places, problems)) is not None:
                powers += settings_powers(found, places.shown(path), places)
    for path in mcp_files(places):
        if (found := read_json(path, places, problems)) is not None:
            servers = found.get("mcpServers")
            for name, config in servers.items() if isinstance(servers, dict) else ():
                powers.append(server_power(str(name), config, places.shown(path), places))
    return Survey(tuple(dict.fromkeys(powers)), tuple(problems))


def mcp_files(places: Places) -> tuple[Path, ...]:
    """Return where a project's MCP servers are listed, the file that counts most first."""
    return tuple(path for base in places.upward() for path in (base / ".nbagent" / "mcp.json", base / ".mcp.json"))


def read_json(path: Path, places: Places, problems: list[str]) -> Json | None:
    """Return the object in a project's JSON file; None, with a sentence in `problems`, where it can't be read."""
    if not os.path.lexists(path):
        return None
    shown = places.shown(path)
    if not is_inside(path, places.root):
        problems.append(f"{shown} is not used: it leads out of the project.")
        return None
    read = read_text(path)
    if read is None or (read.problem and not read.text):
        problems.append(read.problem if read else f"{shown} can't be read.")
        return None
    try:
        found = tomllib.loads(read.text) if path.suffix == ".toml" else json.loads(read.text)
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{shown} is not used: it is not TOML ({error}).")
        return None
    except json.JSONDecodeError as error:
        problems.append(f"{shown} is not used: line {error.lineno} is not JSON ({error.msg}).")
        return None
    except (RecursionError, ValueError):
        problems.append(f"{shown} is not used: it is nested too deeply, or a number in it has too many digits.")
        return None
    if not isinstance(found, dict):
        problems.append(f"{shown} is not used: it must be an object like {{…}}.")
        return None
    return found


def settings_powers(settings: Json, file: str, places: Places) -> Iterator[Power]:
    """Yield the powers in one settings file."""
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else ():
                yield hook_power(str(event), group.get("matcher"), handler, file, places)
    permissions = settings.get("permissions")
    if isinstance(permissions, dict):
        allowed = permissions.get("allow")
        yield from (rule_power(str(rule), file) for rule in (allowed if isinstance(allowed, list) else ()))
        for key in ("additionalDirectories", "defaultMode"):
            value = permissions.get(key)
            if value and (key != "defaultMode" or value not in _NARROW):
                yield setting_power(f"permissions.{key}", value, file, places)
    for key in sorted((_RUNS | _WIDENS) & settings.keys()):
        yield setting_power(key, settings[key], file, places)
    servers = settings.get("mcpServers")
    for name, config in servers.items() if isinstance(servers, dict) else ():
        yield server_power(str(name), config, file, places)


def hook_power(event: str, matcher: Any, handler: Any, file: str, places: Places) -> Power:
    """Return the power of one handler of a hook in the settings file `file` (as shown)."""
    given = handler if isinstance(handler, dict) else {}
    after = f" on {matcher}" if matcher else ""
    known = {key: value for key, value in given.items() if key not in _NO_NAME}
    name = f"{event}{after} #{_hashed(known)[:6]}"
    handed = given.get("allowedEnvVars")
    more = f", and is given your {', '.join(map(str, handed))}" if isinstance(handed, list) and handed else ""
    does = f"{handler_does(given)}{more}"
    return Power("hook", name, file, does, _digest([event, matcher, handler], _words(given), places))


def handler_does(handler: Mapping[str, Any]) -> str:
    """Return in plain words what a handler of a hook does: by its type, whatever else is written in it."""
    match handler.get("type"):
        case "command":
            return f"runs `{' '.join(map(str, [handler.get('command'), *_arguments(handler)]))}`"
        case "http":
            return f"sends what happens to `{handler.get('url')}`"
        case "mcp_tool":
            return f"calls `{handler.get('tool')}` of the MCP server {handler.get('server')}"
        case "prompt" | "agent":
            return f"asks a model `{handler.get('prompt')}`"
        case kind:
            return f"can't run: there is no type {kind!r}"


def hook_words(tables: Mapping[str, Sequence[Json]]) -> list[str]:
    """Return the commands in hooks of a skill or an agent, and their arguments."""
    groups = [group for groups in tables.values() for group in groups]
    return [word for group in groups for handler in group.get("hooks", ()) for word in _words(handler)]


def server_power(name: str, config: Any, file: str, places: Places) -> Power:
    """Return the power of one MCP server."""
    given = config if isinstance(config, dict) else {}
    env = given["env"] if isinstance(given.get("env"), dict) else {}
    kind = str(given.get("type") or ("stdio" if "command" in given else "http")).lower()
    if kind == "stdio":
        does = f"starts `{' '.join(map(str, [given.get('command'), *_arguments(given)]))}`"
    else:
        does = f"connects to {given.get('url', 'nowhere')}"
    if env:
        does += f" with {', '.join(map(str, env))} set"
    if handed := _handed_on(given):
        does += f", and is given your {', '.join(handed)}"
    words = [*_words(given), *map(str, env.values())]
    return Power("MCP server", name, file, does, _digest([name, config], words, places))


def _handed_on(config: Any) -> list[str]:
    """Return which variables of the person's environment an entry is filled with, wherever in it they stand."""
    text = json.dumps(config, default=str)
    return [name for name in dict.fromkeys(_VARIABLE.findall(text)) if name not in PROJECT]


def rule_power(rule: str, file: str) -> Power:
    """Return the power of one allow rule."""
    return Power("rule", f"allow {rule}", file, f"allows {rule} without asking", _hashed(rule))


def setting_power(key: str, value: Any, file: str, places: Places) -> Power:
    """Return the power of a setting that runs something or widens what is allowed."""
    words = [value] if isinstance(value, str) else _words(value) if isinstance(value, dict) else []
    said = json.dumps(value, ensure_ascii=False, default=str)
    does = f"runs `{said}`" if key in _RUNS else f"sets {said}"
    leads = _leads(value, file, places) if key == "permissions.additionalDirectories" else []
    does += f", which leads to {', '.join(leads)}" if leads else ""
    return Power("setting", key, file, does, _digest([key, value, *leads], words if key in _RUNS else [], places))


def _leads(value: Any, file: str, places: Places) -> list[str]:
    """Return where folders really are that a project's file names by a link: a link can be led elsewhere later."""
    found: list[str] = []
    base = (places.root / file).parent.parent
    for text in value if isinstance(value, list) else ():
        named = str(places.home / str(text)[2:]) if str(text).startswith("~/") else str(base / str(text))
        if "\0" not in named and (real := os.path.realpath(named)) != os.path.normpath(named):
            found.append(real)
    return found


def _words(given: Mapping[str, Any]) -> list[str]:
    return [str(given.get("command") or ""), *map(str, _arguments(given))]


def _arguments(given: Mapping[str, Any]) -> Sequence[Any]:
    found = given.get("args")
    return found if isinstance(found, list) else ()


def _hashed(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode("utf-8", "replace"))


def _digest(value: Any, words: Sequence[str], places: Places) -> str:
    """Return the hash of a setting together with the project's own scripts that its command names."""
    return _hashed([value, scripts_of(words, places)])
