"""Hooks that are commands: what they are started with, what they get, and that nothing of them is left when time is up."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from nbagent.extend.hooks_command import LIMIT, Ended, Started, argv_of, environment_of
from nbagent.extend.hooks_exit import run_now
from nbagent.extend.hooks_output import Failed
from nbagent.extend.hooks_run import Runners
from nbagent.extend.hooks_settings import Source, read
from tests.support.turns import until

FOUND = {"bash": "/bin/bash", "pwsh": "/usr/bin/pwsh"}.get


def start(script: str, said: bytes = b"{}", **env: str) -> Started:
    return Started(["/bin/sh", "-c", script], said, cwd=Path("/"), env={"PATH": os.environ["PATH"], **env})


def test_a_command_runs_in_bash_or_in_sh_where_there_is_none():
    assert argv_of({"command": "a | b"}, "/p", windows=False, which=FOUND) == ["/bin/bash", "-c", "a | b"]
    assert argv_of({"command": "a"}, "/p", windows=False, which=lambda _: None) == ["/bin/sh", "-c", "a"]


def test_on_windows_git_s_bash_or_powershell_where_there_is_none():
    gits = {"bash": r"C:\Program Files\Git\bin\bash.exe", "powershell": r"C:\ps.exe"}.get
    wsl = {"bash": r"C:\Windows\System32\bash.exe", "powershell": r"C:\ps.exe"}.get
    assert argv_of({"command": "a"}, "/p", windows=True, which=gits)[1:] == ["-c", "a"]
    assert argv_of({"command": "a"}, "/p", windows=True, which=wsl) == [
        r"C:\ps.exe", "-NoProfile", "-NonInteractive", "-Command", "a",
    ]  # fmt: skip
    with pytest.raises(Failed, match="bash is not installed"):
        argv_of({"command": "a", "shell": "bash"}, "/p", windows=True, which=lambda _: None)


def test_powershell_is_taken_where_the_hook_asks_for_it_with_the_placeholders_in_its_own_form():
    spec = {"command": '& "${CLAUDE_PROJECT_DIR}\\x.ps1"', "shell": "powershell"}
    assert argv_of(spec, "/p", windows=True, which=FOUND)[-1] == '& "${env:CLAUDE_PROJECT_DIR}\\x.ps1"'
    with pytest.raises(Failed, match="PowerShell is not installed"):
        argv_of(spec, "/p", windows=True, which=lambda _: None)


def test_with_args_no_shell_is_used_and_placeholders_are_put_in_as_they_are():
    spec = {"command": "node", "args": ["${CLAUDE_PROJECT_DIR}/it's.js", "${NBAGENT_PROJECT_DIR}", "$HOME; rm"]}
    assert argv_of(spec, "/a b", windows=False, which=FOUND) == ["node", "/a b/it's.js", "/a b", "$HOME; rm"]


def test_the_environment_names_the_project_in_both_ways_and_the_effort():
    made = environment_of({"PATH": "/bin"}, "/p", "high", {"CLAUDE_SKILL_DIR": "/s"})
    assert made == {"PATH": "/bin", "CLAUDE_PROJECT_DIR": "/p", "NBAGENT_PROJECT_DIR": "/p", "CLAUDE_EFFORT": "high",
                    "CLAUDE_SKILL_DIR": "/s"}  # fmt: skip


async def test_the_payload_is_on_stdin_and_outputs_are_kept_apart():
    started = start('read line; echo "got $line"; echo "err $X" >&2; exit 7', b'{"a": 1}\n', X="x")
    assert await started.ended() == Ended(7, 'got {"a": 1}\n', "err x\n")


async def test_a_command_that_does_not_read_its_stdin_is_no_matter():
    ended = await start("exit 2", b"x" * 1_000_000).ended()
    assert ended.code == 2


async def test_output_is_bounded():
    ended = await start("yes | head -c 3000000").ended()
    assert len(ended.out) == LIMIT
    assert ended.code == 0


async def test_what_can_t_be_started_says_why():
    with pytest.raises(Failed, match="can't be started: No such file or directory"):
        Started(["/nowhere/hook"], b"", cwd=Path("/"), env={})


async def test_killing_ends_the_whole_group(tmp_path):
    pid = tmp_path / "pid"
    started = start(f'sleep 60 & echo $! > "{pid}.new"; mv "{pid}.new" "{pid}"; echo; wait')
    await started.first_line()
    child = int(pid.read_text())
    started.kill()
    await until(lambda: not lives(child))


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
async def test_a_child_in_the_background_is_not_waited_for():
    async with asyncio.timeout(30):
        started = start("sleep 60 & echo done")
        assert (await started.ended()).out == "done\n"
    os.killpg(started.pid, 9)


async def test_a_first_line_of_async_true_goes_on_beside_the_run():
    started = start("""echo '{"async": true, "asyncTimeout": 5000}'; read more; echo "$more" """, b"{}\n")
    assert await started.ended_or_async() == 5.0
    ended = await started.ended()
    assert ended.code == 0
    assert started.rest() == "{}\n"


async def test_another_first_line_is_waited_for_as_always():
    assert await start("echo '{\"x\": 1}'; exit 3").ended_or_async() == Ended(3, '{"x": 1}\n', "")


@pytest.mark.slow
def test_session_end_hooks_run_when_no_loop_runs_any_more_within_their_time(tmp_path):
    out = tmp_path / "out"
    handlers = [
        {"type": "command", "command": f"cat > '{out}'"},
        {"type": "command", "command": "sleep 60", "timeout": 0.1},
        {"type": "command", "command": "/nowhere/at/all", "args": []},
    ]
    hooks = read({"SessionEnd": [{"hooks": handlers}]}, Source("settings.json")).hooks
    began = time.monotonic()
    run_now(Runners(tmp_path, environment={"PATH": os.environ["PATH"]}), hooks, {"reason": "other"})
    assert json.loads(out.read_text()) == {"reason": "other"}
    assert time.monotonic() - began < 20  # and not the minute of the one that sleeps
