"""Hooks of a session's end when the kernel itself ends: no loop runs any more, and threads may not be started.

Each is asked in turn, and all together have as long as the longest of them. What they say does not count. Read `run_now`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nbagent.core.messages import Json
from nbagent.extend import hooks_command
from nbagent.extend.hooks_output import Failed
from nbagent.extend.hooks_run import Runners
from nbagent.extend.hooks_settings import Hook


def run_now(runners: Runners, hooks: Sequence[Hook], said: Json) -> None:
    """Run the commands among `hooks` with the payload `said`, within their time; nothing of it is raised."""
    deadline = time.monotonic() + max((hook.timeout for hook in hooks), default=0.0)
    for hook in hooks:
        left = deadline - time.monotonic()
        if hook.type == "command" and left > 0 and hook.is_allowed:
            with suppress(Failed, OSError, ValueError, RuntimeError):
                _command(runners, hook, said, min(left, hook.timeout))


def _command(runners: Runners, hook: Hook, said: Json, seconds: float) -> None:
    project = str(runners.project)
    argv = hooks_command.argv_of(hook.spec, project, windows=runners.windows, which=runners.which)
    env = hooks_command.environment_of(runners.environment, project, "", hook.source.environment)
    cwd = Path(str(said.get("cwd") or project))
    process = subprocess.Popen(  # noqa: S603  (the person trusts it)
        argv,
        cwd=cwd if cwd.is_dir() else runners.project,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=os.name != "nt",
    )
    try:
        process.communicate(json.dumps(said, default=str).encode("utf-8", "replace"), timeout=seconds)
    except subprocess.TimeoutExpired:
        hooks_command.end_group(process)
        process.wait()
