"""Which MCP servers there are, read from the files that say so, in Claude's shape.

Precedence by name: local (this person, this folder) > project (`.mcp.json`) > user (this person, everywhere). Nothing is
started here, and nothing of a project's is believed: whether its servers may start is asked elsewhere, by `fingerprint`.
Must not know of clients. Read `find`, then `ServerSpec.launch`; `mcp_edit` writes the same files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json, clean_value

Scope = Literal["local", "project", "user", "session"]
Kind = Literal["stdio", "http", "sse", "sdk"]

PROJECT_FILE = ".mcp.json"
OWN_PROJECT_FILE = ".nbagent/mcp.json"
START_SECONDS = 30.0
"""How long a server may take to start; the variable MCP_TIMEOUT (milliseconds) sets another time."""
CALL_SECONDS = 600.0
"""How long a call may take without a word; `timeout` of a server or MCP_TOOL_TIMEOUT (milliseconds) sets another time."""

_KINDS: dict[str, Kind] = {
    "stdio": "stdio", "http": "http", "streamable-http": "http", "streamablehttp": "http", "sse": "sse", "sdk": "sdk",
}  # fmt: skip
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_FILE_LIMIT = 4_000_000  # bytes of a settings file, and of a program that is part of a fingerprint
# what a command needs to run at all and to reach the network; secrets of the kernel's environment are not handed on
_PASSED_ON = (
    "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
    "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """All that is needed to reach a server, its variables filled in. Times are seconds. Never show it: it holds secrets."""

    kind: Kind
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: Path = Path()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    instance: Any = None


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server as it is written down in `source`; `config` has its variables still as `${NAME}`, so it can be shown.

    `folder` is the project's. `instance` is a server object of this process (`type` sdk) and belongs to no file.
    """

    name: str
    scope: Scope
    source: str
    config: Json
    folder: Path
    instance: Any = None

    @property
    def kind(self) -> Kind:
        """How it is reached; raises `ConfigError` where the entry does not say it in a way that is known."""
        named = str(self.config.get("type") or "").lower()
        if not named:
            return "stdio" if "command" in self.config else "http"
        if named not in _KINDS:
            raise ConfigError(
                f"{self._where}: type {named!r} is not supported. The types are stdio, http (streamable HTTP) and sse."
            )
        return _KINDS[named]

    @property
    def fingerprint(self) -> str:
        """Hash of the entry and of the project's own files that its command names: what trust in it is bound to."""
        digest = hashlib.sha256(json.dumps([self.name, self.config], sort_keys=True).encode())
        for file in self.files:
            digest.update(f"\0{file.relative_to(self.folder)}\0".encode())
            digest.update(file.read_bytes()[:_FILE_LIMIT])
        return digest.hexdigest()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the project's folder that the command names: they are what would run."""
        named = [self.config.get("command"), *_items(self.config.get("args"))]
        found: dict[Path, None] = {}
        for text in named:
            written = _VARIABLE.sub(lambda m: str(self.folder) if "PROJECT_DIR" in m[1] else "", str(text or ""))
            file = Path(os.path.normpath(self.folder / written)) if written and "\0" not in written else self.folder
            if file.is_relative_to(self.folder) and file.is_file():
                found[file] = None
        return tuple(sorted(found))

    @property
    def line(self) -> str:
        """What would be started or reached, for people: as it is written, without values that may be secret."""
        if self.instance is not None:
            return "a server in this kernel"
        if "url" in self.config:
            return str(self.config["url"])
        return " ".join([str(self.config.get("command", "")), *map(str, _items(self.config.get("args")))])

    @property
    def _where(self) -> str:
        return f"{self.source}: the MCP server “{self.name}”"

    def launch(self, environment: Mapping[str, str]) -> Launch:
        """Fill in the variables of `environment`; raises `ConfigError` that names what is missing or wrong."""
        if self.instance is not None:
            return Launch("sdk", folder=self.folder, instance=self.instance)
        known = {"CLAUDE_PROJECT_DIR": str(self.folder), "NBAGENT_PROJECT_DIR": str(self.folder), **environment}
        times = (
            _seconds(environment.get("MCP_TIMEOUT"), START_SECONDS),
            _seconds(self.config.get("timeout") or environment.get("MCP_TOOL_TIMEOUT"), CALL_SECONDS),
        )
        kind = self.kind
        if kind == "stdio":
            command = self._text("command", self.config.get("command"), known)
            args = self.config.get("args") or []
            if not isinstance(args, list):
                raise ConfigError(f"{self._where}: args = {args!r} must be a list, e.g. ['-y', 'some-server'].")
            passed = {name: environment[name] for name in _PASSED_ON if name in environment}
            own = {"CLAUDE_PROJECT_DIR": str(self.folder), "NBAGENT_PROJECT_DIR": str(self.folder)}
            env = {**passed, **own, **self._table("env", known)}
            filled = tuple(self._filled(str(arg), known) for arg in args)
            return Launch(kind, command, filled, env, self.folder, start_seconds=times[0], call_seconds=times[1])
        if kind == "sdk":
            raise ConfigError(f"{self._where}: type 'sdk' is for servers that Python code hands over, not for a file.")
        url = self._text("url", self.config.get("url"), known)
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"{self._where}: url = {self.config.get('url')!r} must begin with http:// or https://.")
        headers = self._table("headers", known)
        return Launch(kind, url=url, headers=headers, folder=self.folder, start_seconds=times[0], call_seconds=times[1])

    def _text(self, key: str, value: Any, known: Mapping[str, str]) -> str:
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(
                f"{self._where} has no {key}. A server needs a command (stdio) or a url with type http or sse."
            )
        return self._filled(value, known)

    def _table(self, key: str, known: Mapping[str, str]) -> dict[str, str]:
        table = self.config.get(key) or {}
        if not isinstance(table, dict):
            raise ConfigError(f"{self._where}: {key} must be a table of names and texts.")
        return {str(name): self._filled(str(value), known) for name, value in table.items()}

    def _filled(self, text: str, known: Mapping[str, str]) -> str:
        def put(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name in known:
                return known[name]
            if default is None:
                raise ConfigError(
                    f"{self._where} needs the variable {name}, which is not set. Set it before the kernel starts, "
                    f"or write ${{{name}:-default}}."
                )
            return default

        return _VARIABLE.sub(put, text)


@dataclass(frozen=True, slots=True)
class Found:
    """The servers in force, by name, and what could not be read, as sentences. `disabled` are names switched off.

    `under` are the person's own servers in whose place the project has put one of the same name.
    """

    specs: Mapping[str, ServerSpec]
    problems: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    under: Mapping[str, ServerSpec] = field(default_factory=dict[str, ServerSpec])


@dataclass(frozen=True, slots=True)
class Files:
    """Where servers are written down. `own` is nbagent's file of this person, `claude` Claude Code's."""

    folder: Path
    own: Path
    claude: Path | None = None

    @classmethod
    def of(cls, folder: Path, environment: Mapping[str, str]) -> Files:
        """The files of this person and of the project `folder`."""
        import platformdirs

        home = Path(environment.get("CLAUDE_CONFIG_DIR") or Path.home())
        return cls(folder, Path(platformdirs.user_config_dir("nbagent")) / "mcp.json", home / ".claude.json")

    def project(self) -> tuple[Path, ...]:
        """The project's files, nearest last: those of `folder` and of its parents within the same repository."""
        folder = self.folder.resolve()
        places = [folder]
        root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)
        while places[-1] != root:
            places.append(places[-1].parent)
        return tuple(place / name for place in reversed(places) for name in (PROJECT_FILE, OWN_PROJECT_FILE))


def find(files: Files, tables: Iterable[tuple[Scope, str, Any]] = ()) -> Found:
    """Return the servers in force in a folder; a file that cannot be read takes nothing away from the others.

    `tables` are `mcpServers` tables of settings, later ones first in force within a scope: scope, source, table. A table
    that came with the project has the scope `project`, whatever it says of itself. Files win over tables.
    """
    problems: list[str] = []
    specs: dict[str, ServerSpec] = {}

    def take(table: Any, scope: Scope, source: str, folder: Path) -> None:
        if table is None:
            return
        if not isinstance(table, Mapping):
            problems.append(f"{source}: mcpServers must be a table of servers.")
            return
        for name, config in table.items():
            if isinstance(config, Mapping):
                specs[str(name)] = ServerSpec(str(name), scope, source, clean_value(dict(config)), folder)
            else:
                problems.append(f"{source}: the MCP server “{name}” must be a table, not {config!r}.")

    folder = files.folder.resolve()
    people = [(path, read_json(path, problems)) for path in (files.claude, files.own) if path is not None]
    for path, data in people:
        take(data.get("mcpServers"), "user", str(path), folder)
    given = list(tables)
    for scope, source, table in given:
        if scope == "user":
            take(table, scope, source, folder)
    mine = dict(specs)
    for scope, source, table in given:
        if scope == "project":
            take(table, scope, source, folder)
    for path in files.project():
        take(read_json(path, problems).get("mcpServers"), "project", str(path), _project_of(path))
    for scope, source, table in given:
        if scope == "local":
            take(table, scope, source, folder)
    disabled: set[str] = set()
    for path, data in people:
        for entry in _entries(data, folder):
            take(entry.get("mcpServers"), "local", str(path), folder)
            for key in ("disabledMcpServers", "disabledMcpjsonServers"):
                disabled.update(map(str, _items(entry.get(key))))
    under = {name: spec for name, spec in mine.items() if specs[name].scope == "project"}
    return Found(specs, tuple(problems), frozenset(disabled), under)


def read_json(path: Path, problems: list[str]) -> Json:
    """Return the object in a JSON file, {} where there is none; what is wrong with it goes to `problems`."""
    try:
        if path.stat().st_size > _FILE_LIMIT * 10:
            problems.append(f"{path} is too large to be read for MCP servers.")
            return {}
        data = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path} can't be read, so the MCP servers in it are left out: {error}.")
        return {}
    if not isinstance(data, dict):
        problems.append(f"{path} must hold a JSON object; the MCP servers in it are left out.")
        return {}
    return data


def _entries(data: Json, folder: Path) -> list[Json]:
    """What a person's file says of this project: of its folder, or of the repository that it is in, nearest last."""
    projects = data.get("projects")
    if not isinstance(projects, dict):
        return []
    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)
    places = [place for place in (folder, *folder.parents) if place.is_relative_to(root)]
    found = [projects.get(str(place)) for place in reversed(places)]
    return [entry for entry in found if isinstance(entry, dict)]


def _project_of(file: Path) -> Path:
    return file.parent.parent if file.parent.name == ".nbagent" else file.parent


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _seconds(milliseconds: Any, default: float) -> float:
    try:
        seconds = float(milliseconds) / 1000
    except (TypeError, ValueError):
        return default
    return seconds if 0 < seconds < 1e9 else default
