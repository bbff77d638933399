"""Writes MCP servers down and takes them out again, in the files that `mcp_config` reads; all else in them stays.

Claude Code's own file is read, never written. Read `put`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.extend.mcp_config import PROJECT_FILE, Files, Scope, read_json


def file_of(files: Files, scope: Scope) -> Path:
    """Return the file in which servers of a scope are written."""
    return files.folder / PROJECT_FILE if scope == "project" else files.own


def put(files: Files, scope: Scope, name: str, config: Json) -> Path:
    """Write a server down, in place of one of the same name and scope; return the file. Raises `ConfigError`."""
    path = file_of(files, scope)
    data = _whole(path)
    _table(data, files, scope)[name] = config
    _write(path, data, private=scope != "project")
    return path


def drop(files: Files, scope: Scope, name: str) -> Path | None:
    """Take a server out of a scope's file; return the file, or None where it was not there. Raises `ConfigError`."""
    path = file_of(files, scope)
    data = _whole(path)
    if _table(data, files, scope).pop(name, None) is None:
        return None
    _write(path, data, private=scope != "project")
    return path


def switch(files: Files, name: str, *, on: bool) -> None:
    """Switch a server on or off for this person in this folder. Raises `ConfigError`."""
    data = _whole(files.own)
    entry = _entry(data, files)
    off = [str(item) for item in entry.get("disabledMcpServers") or [] if item != name]
    entry["disabledMcpServers"] = off if on else [*off, name]
    _write(files.own, data, private=True)


def _whole(path: Path) -> Json:
    """The file as it is; one that cannot be read must not be written over."""
    problems: list[str] = []
    data = read_json(path, problems)
    if problems:
        raise ConfigError(problems[0])
    return data


def _entry(data: Json, files: Files) -> Json:
    return _object(_object(data, "projects"), str(files.folder.resolve()))


def _table(data: Json, files: Files, scope: Scope) -> Json:
    return _object(_entry(data, files) if scope == "local" else data, "mcpServers")


def _object(data: Json, key: str) -> Json:
    value: Any = data.setdefault(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a JSON object, so nothing was written.")
    return value


def _write(path: Path, data: Json, *, private: bool) -> None:
    """Replace the file in one step; a private one may hold tokens, so nobody else may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o600 if private else (path.stat().st_mode & 0o777 if path.exists() else 0o644)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=2, ensure_ascii=False)
            file.write("\n")
        with contextlib.suppress(OSError):
            Path(name).chmod(mode)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise ConfigError(f"{path} can't be written: {error}.") from error
