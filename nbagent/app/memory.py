"""`%agent memory`: the notes that the agent keeps on this project, for a person to read, to take away and to switch off.

What a note is is told in extend/memory.py. Read `command`.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.messages import Json
from nbagent.core.shown import visible_plain
from nbagent.extend.memory import INDEX, Memory, memory_folder
from nbagent.extend.textfiles import read_text
from nbagent.extend.wishes import NO_NOTES

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

SETTING = "autoMemoryEnabled"
USAGE = """\
%agent memory               the notes on this project, and where they lie
%agent memory TOPIC         the notes on a topic
%agent memory forget TOPIC  take the notes on a topic away (MEMORY: the main list)
%agent memory off           keep and tell no notes, in all projects; on does again"""


def command(extension: Extension, rest: str) -> str:
    """Carry out `%agent memory …` and return what it says; raises `ConfigError` that says how it is written."""
    files, words = extension.files, rest.split()
    files.load()
    match words:
        case []:
            return _shown(files.memory) if files.memory is not None else _off(extension)
        case ["off" | "on" as word]:
            return _switch(extension, on=word == "on")
        case ["forget", topic]:
            return _forget(extension, topic)
        case [topic]:
            try:
                return visible_plain((files.memory or Memory(memory_folder(files.places))).read(topic))
            except ToolError as error:
                raise ConfigError(f"%agent memory: {error}.") from None
        case _:
            raise ConfigError(f"%agent memory goes like this:\n{USAGE}")


def _shown(memory: Memory) -> str:
    text = memory.text("Notes on this project that the agent keeps:", "By topic (%agent memory TOPIC shows one):")
    text = text or "No notes yet. The agent asks you before it keeps one."
    return visible_plain(f"{text}\n\nThey are files that you can edit: {memory.folder / INDEX}")


def _off(extension: Extension) -> str:
    by = f" by the variable {NO_NOTES}" if os.environ.get(NO_NOTES) else ""
    folder = memory_folder(extension.files.places)
    return f"Notes are switched off{by}; %agent memory on switches them on. Those that there are stay in {folder}."


def _forget(extension: Extension, topic: str) -> str:
    memory = extension.files.memory or Memory(memory_folder(extension.files.places))
    try:
        return f"{memory.forget(topic)} in {memory.folder}."
    except ToolError as error:
        raise ConfigError(f"%agent memory: {error}.") from None


def _switch(extension: Extension, *, on: bool) -> str:
    path = extension.files.places.own / "settings.json"
    try:
        _write(path, {**_settings(path), SETTING: on})
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from None
    extension.files.load()
    if (extension.files.memory is not None) is not on:
        return f"Written into {path}, but another settings file or the variable {NO_NOTES} says otherwise, and counts."
    word = "on" if on else "off"
    return (
        f"Notes are switched {word} ({SETTING} in {path}). It counts from the next %%agent cell on, in a new session."
    )


def _settings(path: Path) -> Json:
    read = read_text(path)
    try:
        found = json.loads(read.text) if read is not None and read.text.strip() else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is no JSON object, so nothing was written into it.")
    return found


def _write(path: Path, settings: Json) -> None:
    """Write the person's settings file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        part.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
