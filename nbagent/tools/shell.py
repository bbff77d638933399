"""The shell tool: one command, in the workspace, with no keys in its environment and nothing left running.

What a command may do is for a person to say: `kind` only knows the plain commands that can do nothing but look
(`readonly`) and what is protected (`commandplaces`); rules are read by `commandrules`. This module must not know how a process is run (`processes`). Read `tools` first.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from nbagent.core.errors import ToolError
from nbagent.core.messages import Json, clean, text_block
from nbagent.core.ports import Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools.commandline import read_line
from nbagent.tools.commandplaces import endangers
from nbagent.tools.commandrules import CommandRules
from nbagent.tools.processes import Finished, run_command
from nbagent.tools.readonly import only_looks
from nbagent.tools.results import fold_terminal

_LONGEST = 3600.0
_SECRET = re.compile(
    r"\AANTHROPIC_|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKENS?(?:_|\Z)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL",
    re.IGNORECASE,
)
_KILLS = re.compile(r"\b(?:kill|pkill|killall|taskkill|skill|shutdown|reboot|halt|poweroff)\b")
_ANSWERS = re.compile(r"\bnbagent(?:\.exe)?['\"]?\s[^\n;&|]*?\b(?:trust|run|ask|mcp-serve)\b")
"""An nbagent of its own: it would say yes to this folder's files, or work under another mode, in the person's place."""
_STARTS_CODE = re.compile(r"\A(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|BASH_FUNC_.*)\Z")
_QUIET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def tools(root: Path) -> list[Tool]:
    """Return the shell tool, at home in the folder `root`."""

    def kind(given: Json) -> Kind:
        if _KILLS.search(given["command"]):
            return Kind.PROTECTED  # the kernel is the shell's parent
        if _ANSWERS.search(given["command"]):
            return Kind.PROTECTED
        if endangers(read_line(given["command"]), root):
            return Kind.PROTECTED
        return Kind.SHELL_READ if only_looks(given["command"], root) else Kind.SHELL

    @tool(
        kind=kind,
        subject="command",
        title=lambda given: f"run {given['command'].strip().splitlines()[0][:80] if given['command'].strip() else ''}",
        preview=lambda given: Preview("command", given["command"], language="bash"),
        exact=True,
        grammar=CommandRules(root),
    )
    async def shell(call: Call, command: str, timeout: float = 120) -> Result:
        """Run a shell command in the working folder and get its output (stdout and stderr together).

        Nothing can be typed into it, and it is stopped with all its children when it ends or its time is up. Use cells,
        not the shell, for Python work on data; use the file tools to read and write files.

        Args:
            command: the command, e.g. "git status".
            timeout: how many seconds it may take.
        """
        if not command.strip():
            raise ToolError("the command is empty")
        if "\0" in command:
            raise ToolError("the command contains a NUL character")
        if not timeout > 0:
            raise ToolError(f"timeout is {timeout}: give a number of seconds above 0")
        seconds = min(timeout, _LONGEST)
        call.progress("running")
        try:
            done = await run_command(
                _shell_argv(clean(command)), cwd=root, env=child_environment(os.environ), timeout=seconds
            )
        except OSError as error:
            raise ToolError(f"the command could not be started: {error.strerror or error}") from None
        return _result(done, seconds)

    return [shell]


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without keys, tokens and passwords and without what makes a shell run more than its command."""
    kept = {
        name: value for name, value in environment.items() if not _SECRET.search(name) and not _STARTS_CODE.match(name)
    }
    return kept | _QUIET


def _shell_argv(command: str) -> list[str]:
    if os.name == "nt":  # a bash on Windows is another machine (WSL) or a guest with other paths
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c", command]
    if bash := shutil.which("bash"):
        return [bash, "--noprofile", "--norc", "-c", command]
    return ["/bin/sh", "-c", command]


def _result(done: Finished, timeout: float) -> Result:
    if done.code is None:
        head = f"stopped by the time limit of {timeout:g} s; what it did until then has happened"
        summary = "time limit"
    elif done.code < 0:
        head, summary = f"killed by signal {-done.code} after {done.seconds:.1f} s", f"signal {-done.code}"
    else:
        head, summary = f"exit code {done.code} after {done.seconds:.1f} s", f"exit {done.code}"
    if done.escaped:
        head += "; a process that left the command's group still runs"
    elif done.background:
        head += "; processes that it had left in the background were stopped"
    if done.survivors:
        head += f"; these processes could not be stopped: {', '.join(map(str, done.survivors))}"
    output = fold_terminal(done.output).strip("\n") or "(no output)"
    return Result((text_block(f"{head}\n{output}"),), summary, is_error=done.code != 0)
