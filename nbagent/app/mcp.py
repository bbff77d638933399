"""MCP servers in a notebook: which files count, whether the person trusts them, and `%agent mcp`.

Read `servers_of`, then `command`. What a server is and how it is reached is told in extend/mcp*.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbagent.app.consent import before_run
from nbagent.app.forks import past_of
from nbagent.core.errors import ConfigError
from nbagent.core.events import Noted
from nbagent.core.messages import Json
from nbagent.core.session import Session
from nbagent.core.shown import visible_plain
from nbagent.core.tools import Tool
from nbagent.extend.mcp import Servers
from nbagent.extend.mcp_client import Connection, State
from nbagent.extend.mcp_config import Files, Found, Scope, ServerSpec, find, read_json
from nbagent.extend.mcp_edit import drop, put, switch

if TYPE_CHECKING:
    from nbagent.app.extension import Extension
    from nbagent.app.place import Place
    from nbagent.app.starts import Ground
    from nbagent.extend.trust import Trust

USAGE = """\
%agent mcp                          the MCP servers, and how they are
%agent mcp status [NAME]            more of them: tools, what they said, why one does not run
%agent mcp restart [NAME]           start one anew, or all of them
%agent mcp add NAME COMMAND [ARG …] a program on this machine; -e KEY=VALUE before it sets a variable
%agent mcp add NAME URL             a server on the network; --transport sse for older ones, --header "Key: value"
%agent mcp add-json NAME {…}        an entry as it stands in .mcp.json
    --scope local (you, this folder; the default), project (.mcp.json, for everybody), user (you, everywhere)
%agent mcp remove NAME              take one out again; --scope as above
%agent mcp disable NAME             do not start it in this folder; enable NAME does again"""

_PATIENCE = 1.0  # seconds without a word while servers start
_SCOPES = ("local", "project", "user")
_HELD = "Tools of a conversation are fixed when it begins: a new one (%%agent --new) has those of now."


# ── which servers ────────────────────────────────────────────────────────────────────────────────────────────────────


def servers_of(folder: Path, trust: Callable[[], Trust] | None = None) -> Servers:
    """Return the MCP servers of a folder; none of them runs yet. Those of project files wait for the person's trust."""
    from nbagent.tools.results import scaled_image

    return Servers(
        folder,
        lambda: found_in(folder),
        environment=os.environ,
        trusted=lambda spec: is_trusted(spec, folder, trust() if trust is not None else None),
        picture=scaled_image,
    )


def found_in(folder: Path) -> Found:
    """Read the files of this person and of this project that name servers: Claude's, and ours."""
    from nbagent.config import own_file, own_servers
    from nbagent.extend.places import Places
    from nbagent.extend.survey import SETTINGS
    from nbagent.extend.survey import read_json as project_json

    places, problems = Places.of(folder, os.environ), list[str]()
    tables: list[tuple[Scope, str, Any]] = []
    off: set[str] = set()

    def take(scope: Scope, path: Path) -> None:
        inside = scope == "project"
        settings = (project_json(path, places, problems) if inside else read_json(path, problems)) or {}
        tables.append((scope, str(path), settings.get("mcpServers")))
        named = settings.get("disabledMcpjsonServers")
        off.update(map(str, named) if isinstance(named, list) else ())

    for holder in (places.claude, places.own):
        take("user", holder / "settings.json")
    try:
        tables.append(("user", str(own_file()), own_servers()))
    except ConfigError as error:
        problems.append(str(error))
    for name in reversed(SETTINGS):
        for path in reversed(places.project(name)):
            take("project", path)
    found = find(Files.of(folder, os.environ), [table for table in tables if table[2] is not None])
    named_off = {name for name in off if name in found.specs and found.specs[name].scope == "project"}
    return Found(found.specs, (*problems, *found.problems), found.disabled | named_off, found.under)


def is_trusted(spec: ServerSpec, folder: Path, trust: Trust | None = None) -> bool:
    """Whether the person said yes to this very server of the project's files (`trust` None: as it is on disk)."""
    from nbagent.extend.places import Places
    from nbagent.extend.survey import server_power
    from nbagent.extend.trust import Trust

    places = Places.of(folder, os.environ)
    power = server_power(spec.name, spec.config, places.shown(Path(spec.source)), places)
    return (trust or Trust(places.root, places.own / "trust")).holds(power)


# ── for a run ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def tools_of_run(extension: Extension, place: Place, ground: Ground) -> list[Tool]:
    """Start the servers and return their tools: those that this cell's conversation was begun with, or those of now."""

    def tell(text: str) -> None:
        place.view.show(before_run(Noted, text=text))

    await ready(extension.mcp, tell)
    past = ground.branch
    if past is None and not ground.new:
        past = await asyncio.to_thread(past_of, extension, place, ground.seat)
    found = None if ground.new else extension.conversations.get(ground.seat)
    if past is not None:
        return extension.mcp.tools(past.tools)
    return extension.mcp.tools(None if found is None else found.session.tools)


def news_of_run(extension: Extension, session: Session) -> list[str]:
    """Return what to tell the model of the servers before its session goes on, each thing once."""
    return extension.mcp.news(session.id, session.tools if session.transcript else None)


async def ready(servers: Servers, tell: Callable[[str], None]) -> None:
    """Before a run: start the servers that are meant, and `tell` the person of those that take long or do not run."""
    starting = asyncio.ensure_future(servers.prepare())
    try:
        done, _ = await asyncio.wait({starting}, timeout=_PATIENCE)
        if not done and (names := servers.starting()):
            tell(f"Waiting for MCP servers to start: {', '.join(map(_shown, names))} …")
        await starting
    finally:
        starting.cancel()
    for text in servers.complaints():
        tell(_shown(text))


# ── %agent mcp ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def command(extension: Extension, line: str) -> str:
    """Carry out `%agent mcp …` and return what it says; raises `ConfigError` that says how it is written."""
    verb, _, rest = line.strip().partition(" ")
    servers = extension.mcp
    match verb or "list":
        case "list":
            return await _list(servers)
        case "status":
            return await _status(servers, rest.strip())
        case "restart":
            return await _restart(servers, rest.strip())
        case "add" | "add-json":
            return await _add(extension, rest, as_json=verb == "add-json")
        case "remove":
            return await _remove(extension, rest)
        case "enable" | "disable":
            return await _switch(extension, rest.strip(), on=verb == "enable")
        case _:
            raise ConfigError(f"%agent mcp: there is no {verb!r}. It goes like this:\n{USAGE}")


async def _list(servers: Servers) -> str:
    await servers.look()
    lines = [_line(name, c) for name, c in servers.connections.items()]
    for name, spec in servers.untrusted.items():
        lines.append(f"{name}  waits for your trust in {spec.source} (%agent trust): {_shown(spec.line)}")
    lines += [f"{name}  switched off (%agent mcp enable {name})" for name in sorted(servers.disabled)]
    lines += [f"! {_shown(problem)}" for problem in servers.problems]
    return "\n".join(lines) or f"There are no MCP servers.\n\n{USAGE}"


def _line(name: str, connection: Connection) -> str:
    if connection.state is State.CONNECTED:
        count = len(connection.offers.tools)
        how = f"{connection.state}, {count} tool{'' if count == 1 else 's'}"
    else:
        how = f"{connection.state}{f': {connection.why}' if connection.why else ''}"
    return f"{_shown(name)}  {how}  ({connection.spec.scope}: {_shown(connection.spec.line)})"


async def _status(servers: Servers, name: str) -> str:
    await servers.look()
    if name and name not in servers.connections:
        raise ConfigError(servers.why_not(name))
    chosen = [name] if name else list(servers.connections)
    return "\n\n".join(_about(servers, key) for key in chosen) or await _list(servers)


def _about(servers: Servers, name: str) -> str:
    connection = servers.connections[name]
    offers, spec = connection.offers, connection.spec
    lines = [_line(name, connection), f"  written in   {spec.source}"]
    if offers.version:
        lines.append(f"  server       {_shown(offers.version)}")
    for tool in offers.tools:
        reads = "reads" if servers.read_only(name, tool.name) else "asks first"
        about = (tool.description or "").strip().splitlines()
        lines.append(f"  tool         {_shown(tool.name)} ({reads}) {_shown(about[0][:80]) if about else ''}".rstrip())
    lines += [f"  prompt       /{c.name} {c.hint}".rstrip() for c in servers.prompts() if c.server == name]
    if offers.has_resources:
        lines.append(f"  resources    {len(offers.resources)}, and {len(offers.templates)} with names to fill in")
    if offers.instructions:
        lines.append(f"  says of itself  {_shown(offers.instructions.strip()[:300])}")
    lines += [f"  it wrote     {text}" for text in connection.lines.last(20)]
    return "\n".join(lines)


async def _restart(servers: Servers, name: str) -> str:
    await servers.restart(name)
    return await _list(servers)


async def _add(extension: Extension, rest: str, *, as_json: bool) -> str:
    scope, name, config = _json_entry(rest) if as_json else _entry(rest)
    files = Files.of(extension.folder, os.environ)
    spec = ServerSpec(name, scope, "this line", config, extension.folder)
    spec.launch(os.environ)  # what is wrong with it is told before it is written
    path = put(files, scope, name, config)
    if scope == "project":
        return (
            f"Written into {path}. It starts after you have said yes to this folder's files, at the next %%agent cell."
        )
    await extension.mcp.look()
    await extension.mcp.restart(name)
    return f"Written into {path}.\n{await _list(extension.mcp)}\n{_HELD}"


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise ConfigError(f"%agent mcp: {error} in {rest!r}.") from None


def _entry(rest: str) -> tuple[Scope, str, Json]:
    """Read `NAME COMMAND …` or `NAME URL` with Claude's options; options of the command itself stay its own."""
    words, given, env, headers = _words(rest), {"scope": "local", "transport": ""}, dict[str, str](), dict[str, str]()
    plain: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            plain += words
            break
        if len(plain) >= 2 or not word.startswith("-"):
            plain.append(word)
            continue
        if not words:
            raise ConfigError(f"%agent mcp add: {word} needs a value.\n{USAGE}")
        value = words.pop(0)
        match word:
            case "-s" | "--scope":
                given["scope"] = value
            case "-t" | "--transport":
                given["transport"] = value
            case "-e" | "--env":
                _pair(value, "=", env, "-e KEY=VALUE")
            case "-H" | "--header":
                _pair(value, ":", headers, '--header "Key: value"')
            case _:
                raise ConfigError(f"%agent mcp add: there is no option {word}.\n{USAGE}")
    if len(plain) < 2:
        raise ConfigError(f"%agent mcp add needs a name, and a command or an address.\n{USAGE}")
    return _scope(given["scope"]), _name(plain[0]), _config(plain[1:], given["transport"], env, headers)


def _config(target: Sequence[str], transport: str, env: Json, headers: Json) -> Json:
    if transport in ("", "http", "sse") and target[0].startswith(("http://", "https://")):
        return {"type": transport or "http", "url": target[0], **({"headers": headers} if headers else {})}
    if transport not in ("", "stdio"):
        raise ConfigError(
            f"%agent mcp add: --transport {transport} needs an address that begins with http:// or https://."
        )
    return {"type": "stdio", "command": target[0], "args": list(target[1:]), **({"env": env} if env else {})}


def _json_entry(rest: str) -> tuple[Scope, str, Json]:
    scope: str = "local"
    words = rest.split(maxsplit=2)
    if len(words) == 3 and words[0] in ("-s", "--scope"):
        scope, words = words[1], words[2].split(maxsplit=1)
        words = [words[0], words[1] if len(words) > 1 else ""]
    else:
        words = rest.split(maxsplit=1)
    text = words[1].strip().strip("'") if len(words) > 1 else ""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"%agent mcp add-json: {text[:80]!r} is not JSON ({error}).\n{USAGE}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"%agent mcp add-json needs a JSON object.\n{USAGE}")
    return _scope(scope), _name(words[0]), config


def _pair(text: str, mark: str, into: dict[str, str], form: str) -> None:
    key, found, value = text.partition(mark)
    if not found or not key.strip():
        raise ConfigError(f"%agent mcp add: {text!r} is not written as {form}.")
    into[key.strip()] = value.strip() if mark == ":" else value


def _scope(text: str) -> Scope:
    for scope in ("local", "project", "user"):
        if text == scope:
            return scope
    raise ConfigError(f"%agent mcp: there is no scope {text!r}. The scopes are {', '.join(_SCOPES)}.")


def _name(text: str) -> str:
    if not text or not all(c.isalnum() or c in "-_" for c in text):
        raise ConfigError(f"%agent mcp: {text!r} is no name of a server. Use letters, digits, - and _.")
    return text


async def _remove(extension: Extension, rest: str) -> str:
    words = _words(rest)
    scopes: Sequence[Scope] = ("local", "project", "user")
    if len(words) == 3 and words[0] in ("-s", "--scope"):
        scopes = (_scope(words[1]),)
        words = words[2:]
    if len(words) != 1:
        raise ConfigError(f"%agent mcp remove needs one name.\n{USAGE}")
    files, name = Files.of(extension.folder, os.environ), words[0]
    for scope in scopes:
        if (path := drop(files, scope, name)) is not None:
            await extension.mcp.look()
            return f"“{name}” was taken out of {path}. {_HELD}"
    known = found_in(extension.folder).specs.get(name)
    where = f" It is written in {known.source}: take it out there." if known is not None else ""
    raise ConfigError(f"nbagent has written no MCP server “{name}”.{where}")


async def _switch(extension: Extension, name: str, *, on: bool) -> str:
    if name not in found_in(extension.folder).specs:
        raise ConfigError(extension.mcp.why_not(name))
    switch(Files.of(extension.folder, os.environ), name, on=on)
    await extension.mcp.look()
    return f"“{name}” is switched {'on; it starts at the next %%agent cell' if on else 'off in this folder'}."


def close_later(servers: Servers) -> None:
    """Stop the servers from where nothing can be awaited; without a loop their guards end them with this process."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    task = loop.create_task(servers.close())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _shown(text: str) -> str:
    return visible_plain(text.replace("\n", " "), spaces=False)
