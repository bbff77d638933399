"""The settings that speak of instructions, skills and notes, under Claude Code's names, from settings files of all levels.

A project's file may only narrow: leave out instructions, hide skills, switch notes or commands off. Read `read_wishes`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.extend.places import Places
from nbagent.extend.survey import read_json
from nbagent.extend.textfiles import read_text

SHOWN = ("on", "name-only", "user-invocable-only", "off")
"""How a skill is shown, the widest first (`skillOverrides`)."""
NO_NOTES = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
_OWN = ("settings.json", "settings.toml")
_PROJECT = ("settings.json", "settings.toml", "settings.local.json", "settings.local.toml")
_YES = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class Wishes:
    """The settings that speak of such files.

    `excludes`: claudeMdExcludes, of which only the `own` ones reach the person's own files; `overrides`: skillOverrides; `memory`: autoMemoryEnabled; `memory_folder`:
    autoMemoryDirectory, from the person's own settings only; `commands_off`: disableSkillShellExecution.
    """

    excludes: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    memory: bool = True
    memory_folder: Path | None = None
    commands_off: bool = False


def read_wishes(places: Places, environment: Mapping[str, str]) -> Wishes:
    """Read the settings files of a folder and its person; what has another shape is left out."""
    excludes: dict[str, None] = {}
    own: dict[str, None] = {}
    overrides: dict[str, str] = {}
    memory, folder, off = True, None, False
    for found, mine in _files(places):
        excludes |= dict.fromkeys(texts := _texts(found.get("claudeMdExcludes")))
        own |= dict.fromkeys(texts if mine else ())
        for name, shown in _table(found.get("skillOverrides")).items():
            overrides[name] = shown if mine else max(shown, overrides.get(name, "on"), key=SHOWN.index)
        enabled, moved = found.get("autoMemoryEnabled"), found.get("autoMemoryDirectory")
        if isinstance(enabled, bool):
            memory = enabled if mine else memory and enabled
        if mine and isinstance(moved, str) and moved.strip():
            place = places.home / moved[2:] if moved.startswith("~/") else Path(moved)
            folder = place if place.is_absolute() else folder
        off = off or found.get("disableSkillShellExecution") is True
    memory = memory and environment.get(NO_NOTES, "").strip().lower() not in _YES
    return Wishes(tuple(excludes), tuple(own), overrides, memory, folder, off)


def _files(places: Places) -> Iterator[tuple[Json, bool]]:
    """Yield each settings file and whether it is the person's (or the administrator's), those that count least first."""
    for name in _OWN:
        for path in reversed(places.user(name)):
            yield _own(path), True
    for name in _PROJECT:
        for path in reversed(places.project(name)):
            yield read_json(path, places, []) or {}, False
    yield _own(places.managed / "managed-settings.json"), True


def _own(path: Path) -> Json:
    """Return the object in a file of the person's, {} where there is none that can be read: the rules say so."""
    read = read_text(path)
    try:
        found: Any = {} if read is None else (tomllib.loads if path.suffix == ".toml" else json.loads)(read.text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _table(value: Any) -> dict[str, str]:
    return {str(name): shown for name, shown in value.items() if shown in SHOWN} if isinstance(value, dict) else {}
