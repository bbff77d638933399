"""Kinds of subagents in files: `agents/*.md` of the project and of the person, and where each keeps its own notes.

The administrator's count first, then the nearest folder's before those above it, a project's before the person's. One that names tools, a mode, hooks or
servers is not there until the folder was trusted. Read `load_agents`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nbagent.core.agents import AgentSpec
from nbagent.core.messages import Json
from nbagent.core.policy import MODES
from nbagent.extend.frontmatter import Fields, parse
from nbagent.extend.instructions import WAITS
from nbagent.extend.places import Places
from nbagent.extend.scripts import scripts_of
from nbagent.extend.skills import EFFORTS, hook_tables, safe_model
from nbagent.extend.survey import handler_does, hook_words
from nbagent.extend.textfiles import TextFile, files_below, is_inside, read_text, sha256
from nbagent.extend.trust import Power, Trust

_FIELDS = (
    *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills", "mcpServers"),
    *("hooks", "memory", "background", "effort", "isolation", "color", "initialPrompt", "omitClaudeMd"),
)
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Agents:
    """The kinds of subagents by name; what must be trusted before more are there; what is wrong with files."""

    specs: dict[str, AgentSpec]
    powers: tuple[Power, ...]
    problems: tuple[str, ...]


def load_agents(places: Places, trust: Trust) -> Agents:
    """Read all agent files, anew."""
    specs: dict[str, AgentSpec] = {}
    taken: dict[str, Path] = {}
    powers: list[Power] = []
    problems: list[str] = []
    for path, source in _files(places, problems):
        shown = places.shown(path)
        read = read_text(path, _LIMIT)
        spec = _spec(read, source, shown, problems) if read is not None else None
        if read is None or spec is None:
            continue
        if spec.name in taken:
            problems.append(f"{shown} is not used: {places.shown(taken[spec.name])} has the same name and comes first.")
            continue
        taken[spec.name] = path
        if source == "project" and spec.widens:
            named = scripts_of(hook_words(spec.hooks), places)
            digest = sha256("\n".join([read.digest, *named]).encode("utf-8", "replace"))
            powers.append(Power("agent", spec.name, shown, _does(spec), digest))
            if not trust.holds(powers[-1]):
                problems.append(f"The agent {spec.name} ({shown}) is not there {WAITS}")
                continue
        specs[spec.name] = spec
    return Agents(specs, tuple(powers), tuple(problems))


def notes_folder(places: Places, spec: AgentSpec) -> Path | None:
    """Return the folder in which subagents of this kind keep notes of their own (for `Memory`); None where they keep none."""
    if not spec.memory or not _NAME.fullmatch(spec.name):
        return None
    base = places.own if spec.memory == "user" else places.root / ".nbagent"
    return base / ("agent-memory-local" if spec.memory == "local" else "agent-memory") / spec.name / "memories"


def _files(places: Places, problems: list[str]) -> Iterator[tuple[Path, Literal["project", "user"]]]:
    for path in files_below(places.administrators("agents"), ".md"):
        yield path, "user"
    for folder in places.project("agents"):
        for path in files_below(folder, ".md"):
            if is_inside(path, places.root):
                yield path, "project"
            else:
                problems.append(f"{places.shown(path)} is not used: it leads out of the project.")
    for folder in places.user("agents"):
        for path in files_below(folder, ".md"):
            yield path, "user"


def _spec(read: TextFile, source: Literal["project", "user"], shown: str, problems: list[str]) -> AgentSpec | None:
    """Return the agent in a file; None, with the reason in `problems`, where there is none."""
    front = parse(read.text)
    fields = Fields(front.fields, _FIELDS)
    name, description = fields.text("name"), fields.text("description")
    wrong = read.problem if not read.text else ""
    if not wrong and front.problem:
        wrong = f"{shown} is not used: {front.problem}."
    elif not wrong and not front.fields:
        return None  # a README beside them
    elif not wrong and not (_NAME.fullmatch(name) and description):
        wrong = f"{shown} is not used: an agent needs a name (letters, digits and hyphens) and a description."
    if wrong:
        problems.append(wrong)
        return None
    tools, hooks = fields.names("tools"), hook_tables(fields)
    spec = AgentSpec(
        name,
        description,
        front.body.strip(),
        tools=None if tools is not None and "*" in tools else tools,
        disallowed_tools=fields.names("disallowedTools") or (),
        model=safe_model(fields, source),
        permission_mode=fields.choice("permissionMode", tuple(MODES)),
        max_turns=fields.number("maxTurns"),
        skills=fields.names("skills") or (),
        mcp_servers=_servers(fields),
        hooks=_as_subagent(hooks or {}),
        memory=fields.choice("memory", ("user", "project", "local")),  # type: ignore[arg-type]  # one of these
        background=fields.flag("background"),
        effort=fields.choice("effort", EFFORTS),
        isolation="worktree" if fields.choice("isolation", ("worktree",)) else "",
        color=fields.text("color"),
        initial_prompt=fields.text("initialPrompt"),
        with_instructions=not fields.flag("omitClaudeMd"),
        source=source,
    )
    problems += [read.problem] if read.problem else []
    problems += [f"{shown}: {one}." for one in fields.problems]
    return spec if hooks is not None else None


def _servers(fields: Fields) -> dict[str, Json | None]:
    """Return MCP servers, written as a list of names and `name: configuration`, or as one table."""
    value = fields.values.get("mcpServers")
    given: list[Any] = value if isinstance(value, list) else [value] if value else []
    servers: dict[str, Json | None] = {}
    for one in given:
        if isinstance(one, str):
            servers |= dict.fromkeys(part.strip() for part in one.split(",") if part.strip())
        elif isinstance(one, dict) and all(isinstance(config, dict) for config in one.values()):
            servers |= {str(name): config for name, config in one.items()}
        else:
            fields.problems.append(
                "mcpServers has an entry that is no name and no `name: configuration`; it is left out"
            )
    return servers


def _as_subagent(hooks: Mapping[str, tuple[Json, ...]]) -> dict[str, tuple[Json, ...]]:
    """Return the hooks of an agent; its Stop is the end of a subagent."""
    stop = hooks.get("Stop", ())
    others = {event: groups for event, groups in hooks.items() if event != "Stop"}
    return {**others, "SubagentStop": (*hooks.get("SubagentStop", ()), *stop)} if stop else others


def _does(spec: AgentSpec) -> str:
    said = [f"may use {', '.join(spec.tools)}"] if spec.tools else []
    said += [f"works in the mode {spec.permission_mode}"] if spec.permission_mode else []
    said += [
        f"has a hook for {event}, which {', '.join(handler_does(one) for group in groups for one in group['hooks'])}"
        for event, groups in spec.hooks.items()
    ]
    said += [f"uses the MCP server {name}" for name in spec.mcp_servers]
    return "; ".join(said)
