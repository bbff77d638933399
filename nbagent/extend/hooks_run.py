"""Runs one hook of any type to its verdict. Types that need a model or an MCP server get them from whoever composes.

Must not know which hooks there are. Read `Runners.ask`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from nbagent.core.hooks import Verdict
from nbagent.core.messages import Json
from nbagent.core.payloads import HookEvent
from nbagent.extend import hooks_command, hooks_http, hooks_output, hooks_python
from nbagent.extend.hooks_command import Ended, Started
from nbagent.extend.hooks_output import Failed
from nbagent.extend.hooks_settings import Hook

Judge = Callable[[str, str, float], Awaitable[str]]
"""Asks a model: (prompt, model or "", seconds) → its answer. An agent may look around with reading tools before it answers."""
CallMcp = Callable[[str, str, Json], Awaitable[str]]
"""Calls a tool of a connected MCP server: (server, tool, input) → its text; raises where there is none or it fails."""
Later = Callable[[Hook, Started, float], None]
"""Takes a command that goes on in the background, to be ended after some seconds."""

_ARGUMENTS = re.compile(r"(\\?)\$ARGUMENTS\b|\\\$")
_PATH = re.compile(r"\$\{([\w.\-]+)\}")


@dataclass(frozen=True)
class Runners:
    """What hooks are run with: the project's folder, and what asks a model or an MCP server (None: not possible here).

    `urls` and `variables` narrow what http hooks may ask (settings allowedHttpHookUrls, httpHookAllowedEnvVars).
    """

    project: Path
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    mcp: CallMcp | None = None
    judge: Judge | None = None
    agent: Judge | None = None
    urls: Sequence[str] | None = None
    variables: Sequence[str] | None = None
    windows: bool = os.name == "nt"
    which: Callable[[str], str | None] = shutil.which

    async def ask(self, hook: Hook, said: Json, later: Later) -> tuple[Verdict, str]:
        """Return what a hook says and what it printed; raises `Failed` where it says nothing that counts.

        `later` gets a command that goes on beside the run.
        """
        match hook.type:
            case "broken":
                raise Failed(hook.problem)
            case "command":
                return await self._command(hook, said, later)
            case "http":
                status, body = await hooks_http.post(
                    hook.spec,
                    _bytes(said),
                    environment=self.environment,
                    timeout=hook.timeout,
                    urls=self.urls,
                    variables=self.variables,
                )
                return hooks_output.of_http(hook.event, status, body, hook.name), body
            case "mcp_tool":
                return await self._mcp(hook, said)
            case "prompt" | "agent":
                return await self._judged(hook, said)
            case "python":
                answer = await hooks_python.call(hook, said)
                if answer.get("async") is True:  # an async function is the way to that here
                    return Verdict(), ""
                return hooks_output.of_json(hook.event, answer, hook.name), ""

    async def _command(self, hook: Hook, said: Json, later: Later) -> tuple[Verdict, str]:
        started = self._start(hook, said)
        if hook.spec.get("async") is True or hook.spec.get("asyncRewake") is True:
            later(hook, started, hook.timeout)
            return Verdict(), ""
        try:
            ended = await started.ended_or_async()
        except BaseException:
            started.kill()
            raise
        if not isinstance(ended, Ended):
            later(hook, started, ended)
            return Verdict(), ""
        printed = "\n".join(text for text in (ended.out.strip(), ended.err.strip()) if text)
        return hooks_output.of_command(hook.event, ended.code, ended.out, ended.err, hook.name), printed

    def _start(self, hook: Hook, said: Json) -> Started:
        cwd = Path(str(said.get("cwd") or self.project))
        argv = hooks_command.argv_of(hook.spec, str(self.project), windows=self.windows, which=self.which)
        effort = cast("Json", said.get("effort") or {}).get("level", "")
        env = hooks_command.environment_of(self.environment, str(self.project), str(effort), hook.source.environment)
        return Started(argv, _bytes(said), cwd=cwd if cwd.is_dir() else self.project, env=env)

    async def _mcp(self, hook: Hook, said: Json) -> tuple[Verdict, str]:
        if self.mcp is None:
            raise Failed("no MCP server is connected")
        server, tool = str(hook.spec.get("server", "")), str(hook.spec["tool"])
        given = cast("Json", filled(hook.spec.get("input") or {}, said))
        text = await self.mcp(server, tool, given)
        return hooks_output.of_command(hook.event, 0, text, "", hook.name), text

    async def _judged(self, hook: Hook, said: Json) -> tuple[Verdict, str]:
        judge = self.agent if hook.type == "agent" else self.judge
        if judge is None:
            raise Failed("no model can be asked here")
        text = await judge(prompted(str(hook.spec["prompt"]), said), str(hook.spec.get("model") or ""), hook.timeout)
        feeds_back = hook.type == "agent" or hook.spec.get("continueOnBlock") is True
        return hooks_output.of_judgement(hook.event, text, hook.name, feeds_back=feeds_back), text


def late_words(hook: Hook, ended: Ended, out: str) -> tuple[str, ...]:
    """Return what a command of the background says to the model when it is over: it decides nothing any more.

    A hook with `asyncRewake` that ends with exit code 2 says its error output.
    """
    if hook.spec.get("asyncRewake") is True and ended.code == 2:
        text = ended.err.strip() or out.strip()
        return (text,) if text else ()
    try:
        verdict = hooks_output.of_command(hook.event, 0, out, "", hook.name)
    except Failed:
        return ()
    return (*verdict.context, *verdict.messages)


def prompted(prompt: str, said: Json) -> str:
    """Return the prompt with the payload in the place of `$ARGUMENTS`, or after it; a backslash keeps a `$` as it is."""
    data = json.dumps(said, ensure_ascii=False, default=str)
    put = False

    def value(found: re.Match[str]) -> str:
        nonlocal put
        if found[1] or found[0] == "\\$":
            return found[0][1:]
        put = True
        return data

    text = _ARGUMENTS.sub(value, prompt)
    return text if put else f"{text}\n\n{data}"


def filled(value: Any, said: Json) -> Any:
    """Return `value` with each `${a.b}` in its texts replaced by what the payload has there ("" where it has nothing)."""
    if isinstance(value, str):
        return _PATH.sub(lambda found: _at(said, found[1]), value)
    if isinstance(value, list):
        return [filled(item, said) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: filled(item, said) for name, item in cast("Json", value).items()}
    return value


def _at(said: Json, path: str) -> str:
    found: Any = said
    for part in path.split("."):
        found = cast("Json", found).get(part) if isinstance(found, dict) else None
    if found is None:
        return ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)


def _bytes(said: Json) -> bytes:
    return json.dumps(said, ensure_ascii=False, default=str).encode("utf-8", "replace")


BACKGROUND_EVENTS = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE})
"""Events with which the words of commands that went on in the background reach the model."""
