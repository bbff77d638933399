"""Reads hooks as they stand in settings files and in the frontmatter of skills and agents, in Claude Code's shape.

`{"hooks": {Event: [{"matcher": …, "hooks": [{"type": "command", …}]}]}}`. A table that has another shape is a
`ConfigError`; one hook that can't run is kept as one that fails, so that a mistyped guard does not leave its gate open.
Must not know how a hook runs. Read `read`, then `Hook`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from nbagent.core.errors import ConfigError
from nbagent.core.messages import Json
from nbagent.core.payloads import TOOL_EVENTS, HookEvent
from nbagent.extend.hooks_names import Dialect

Scope = Literal["managed", "user", "project", "local", "skill", "agent", "python"]
Allowed = Callable[[str, Any, Json], bool]
"""Whether the person trusts a handler: event, matcher and handler as they are written."""
Type = Literal["command", "http", "mcp_tool", "prompt", "agent", "python", "broken"]
OnFailure = Literal["", "continue", "block"]

NEVER_HERE = frozenset({
    "PostToolBatch", "UserPromptExpansion", "StopFailure", "PreModelSwitch", "PostModelSwitch", "PermissionDenied",
    "Setup", "Elicitation", "ElicitationResult", "ConfigChange", "WorktreeCreate", "WorktreeRemove",
    "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay", "PreSkillShellCommand",
})  # fmt: skip
"""Events of Claude Code that do not happen in a notebook: their hooks are read and never run."""

_SECONDS = {"command": 600.0, "http": 600.0, "mcp_tool": 600.0, "prompt": 30.0, "agent": 60.0, "python": 60.0}
_NEEDS = {"command": "command", "http": "url", "mcp_tool": "tool", "prompt": "prompt", "agent": "prompt"}
_EXACT = re.compile(r"[A-Za-z0-9_\-|, ]+\Z")
_JS_GROUP = re.compile(r"\(\?<([A-Za-z_]\w*)>")
_LONGEST = 24 * 3600.0


@dataclass(frozen=True)
class Source:
    """Where hooks come from: `name` as people know it, whose words they speak, and what their commands get as environment.

    `allowed` tells of an event, a matcher and a handler, as they are written, whether this may run with the content that
    its files have now (None: it is the person's own).
    """

    name: str
    scope: Scope = "user"
    dialect: Dialect = "claude"
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed: Allowed | None = None


@dataclass(frozen=True)
class Hook:
    """One handler of one event. `rule` is its `if`; `spec` the rest of the handler as it was written.

    A `broken` one says in `problem` why it can't run; a Python hook has its `function`.
    """

    event: HookEvent
    type: Type
    spec: Mapping[str, Any]
    source: Source
    matcher: str = ""
    rule: str = ""
    timeout: float = 600.0
    message: str = ""
    once: bool = False
    on_failure: OnFailure = ""
    problem: str = ""
    function: Callable[..., Any] | None = None
    written: tuple[str, Any] = ("", None)

    @property
    def is_allowed(self) -> bool:
        """Whether it may run now: its files can have changed since it was read."""
        return self.source.allowed is None or self.source.allowed(*self.written, dict(self.spec))

    @cached_property
    def fits(self) -> Callable[[str], bool]:
        """Whether the matcher fits a value."""
        return matching(self.matcher)

    @cached_property
    def name(self) -> str:
        """How people know the hook: short, one line."""
        text = {
            "command": _command_name(self.spec),
            "http": _url_name(str(self.spec.get("url", ""))),
            "mcp_tool": f"{self.spec.get('server', '?')} {self.spec.get('tool', '?')}",
            "python": str(getattr(self.function, "__qualname__", "")).rpartition("<locals>.")[2],
        }.get(self.type, f"{self.spec.get('type', 'a hook')} hook of {self.source.name}")
        line = " ".join(text.split())
        return line if len(line) <= _NAME else line[: _NAME - 1] + "…"

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """What makes two hooks of settings files the same handler: it runs once. Those of skills and code stay apart."""
        apart = self.source.name if self.source.scope in {"skill", "agent", "python"} else ""
        if self.type in {"broken", "python"}:
            return (apart, self.source.name, self.name, self.problem, self.matcher)
        names = ("type", "command", "args", "shell", "url", "headers", "server", "tool", "input", "prompt", "model")
        return (apart, *(repr(self.spec.get(name)) for name in names))


_NAME = 48


@dataclass(frozen=True, slots=True)
class Read:
    """What a table holds: its hooks in order, and sentences about what in it has no effect."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()


def read(table: object, source: Source) -> Read:
    """Read the value of `hooks`; raise `ConfigError` where it has another shape."""
    if table is None:
        return Read()
    hooks: list[Hook] = []
    problems: list[str] = []
    for name, groups in _mapping(table, f"{source.name}: hooks").items():
        event = _event(name, source, problems)
        for group in _list(groups, f"{source.name}: hooks.{name}"):
            found = _mapping(group, f"{source.name}: hooks.{name}: each entry")
            matcher = found.get("matcher") or ""
            if not isinstance(matcher, str):
                raise ConfigError(f"{source.name}: hooks.{name}: matcher = {matcher!r} is not text.")
            handlers = _list(found.get("hooks"), f"{source.name}: hooks.{name}: hooks of an entry")
            for handler in handlers:
                spec = _mapping(handler, f"{source.name}: hooks.{name}: each hook")
                if event is not None:
                    made = _hook(event, matcher, spec, source, problems)
                    hooks.append(replace(made, written=(name, found.get("matcher"))))
    return Read(tuple(hooks), tuple(problems))


def as_subagent(hooks: Sequence[Hook]) -> tuple[Hook, ...]:
    """Return hooks of an agent's frontmatter as they count while it runs: its Stop is a SubagentStop."""
    return tuple(replace(h, event=HookEvent.SUBAGENT_STOP) if h.event is HookEvent.STOP else h for h in hooks)


def matching(matcher: str) -> Callable[[str], bool]:
    """Return what tells whether a value fits: all, one of some names, or an unanchored regular expression.

    Raises `ConfigError` for what is none.
    """
    if matcher in {"", "*"}:
        return lambda _: True
    if _EXACT.match(matcher):
        wanted = {name.strip() for name in re.split(r"[|,]", matcher)}
        return lambda value: value in wanted
    try:
        pattern = re.compile(_JS_GROUP.sub(r"(?P<\1>", matcher))
    except re.error as error:
        raise ConfigError(f"the matcher {matcher!r} is no regular expression: {error}") from None
    return lambda value: pattern.search(value) is not None


# ── one handler ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _hook(event: HookEvent, matcher: str, spec: Json, source: Source, problems: list[str]) -> Hook:
    kind, problem = spec.get("type"), ""
    if not isinstance(kind, str) or kind not in _NEEDS:
        problem = f"its type {kind!r} is none of {', '.join(_NEEDS)}"
    elif not isinstance(spec.get(_NEEDS[kind]), str) or not spec[_NEEDS[kind]].strip():
        problem = f"a hook of type {kind} needs {_NEEDS[kind]!r}"
    problem = problem or _problem(matcher, spec)
    once = spec.get("once") is True
    if once and source.scope not in {"skill", "python"}:
        problems.append(f"{source.name}: hooks.{event}: once counts in skills only.")
        once = False
    return Hook(
        event=event,
        type="broken" if problem else cast("Type", kind),
        spec=spec,
        source=source,
        matcher="" if problem else matcher,
        rule="" if problem else str(spec.get("if") or ""),
        timeout=_timeout(spec, event, str(kind)),
        message=str(spec.get("statusMessage") or ""),
        once=once,
        on_failure=cast("OnFailure", spec.get("onFailure") or "") if not problem else "",
        problem=problem,
    )


def _problem(matcher: str, spec: Json) -> str:
    """Return what is wrong with a handler's common fields, "" where nothing is."""
    timeout, args = spec.get("timeout"), spec.get("args")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0):
        return f"its timeout {timeout!r} is no number of seconds above 0"
    if spec.get("onFailure") not in (None, "", "continue", "block"):
        return f"its onFailure {spec['onFailure']!r} is neither 'continue' nor 'block'"
    if args is not None and not (isinstance(args, list) and all(isinstance(arg, str) for arg in args)):
        return f"its args {args!r} is no list of texts"
    if spec.get("shell") not in (None, "bash", "powershell"):
        return f"its shell {spec['shell']!r} is neither 'bash' nor 'powershell'"
    if not isinstance(spec.get("if") or "", str):
        return f"its if {spec['if']!r} is no rule"
    if not isinstance(spec.get("headers") or {}, dict):
        return f"its headers {spec['headers']!r} is no table"
    try:
        matching(matcher)
    except ConfigError as error:
        return str(error)
    return ""


def _timeout(spec: Json, event: HookEvent, kind: str) -> float:
    given = spec.get("timeout")
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
        return min(float(given), 60.0 if event is HookEvent.SESSION_END else _LONGEST)
    if event is HookEvent.SESSION_END:
        return 1.5
    if event is HookEvent.USER_PROMPT_SUBMIT and kind in {"command", "http", "mcp_tool"}:
        return 30.0
    return _SECONDS.get(kind, 60.0)


def _event(name: str, source: Source, problems: list[str]) -> HookEvent | None:
    if (event := HookEvent.named(name)) is not None:
        return event
    if name in NEVER_HERE:
        problems.append(f"{source.name}: hooks.{name} has no effect: that does not happen in a notebook.")
    else:
        near = difflib.get_close_matches(name, [*HookEvent, *NEVER_HERE], 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        problems.append(f"{source.name}: hooks.{name} has no effect: there is no such event.{hint}")
    return None


def _mapping(value: object, what: str) -> Json:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what} must be a table, not {value!r}.")
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{what} must be a list, not {value!r}.")
    return list(cast("Sequence[Any]", value))


def _command_name(spec: Mapping[str, Any]) -> str:
    """Return the script of a command, or its beginning: what people know it by."""
    words = [*str(spec.get("command", "")).split(), *(str(arg) for arg in spec.get("args") or ())]
    scripts = (word.strip("'\"").replace("\\", "/") for word in words)
    script = next((word for word in scripts if re.search(r"/[^/]+\.\w{1,4}\Z", word)), "")
    return script.rpartition("/")[2] if script else " ".join(words)


def _url_name(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address"
    return f"{parts.hostname or url}{parts.path}"


def tool_hooks(hooks: Sequence[Hook]) -> Iterator[Hook]:
    """Yield those that are about calls of tools."""
    return (hook for hook in hooks if hook.event in TOOL_EVENTS)
