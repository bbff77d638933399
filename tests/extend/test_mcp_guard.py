"""No process of an MCP server outlives the kernel, however the kernel ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from nbagent.extend.mcp_connect import guarded
from tests.extend.mcp_rig import SCRIPT
from tests.support.turns import until

KERNEL = """
import asyncio, os, sys
from pathlib import Path
from tests.extend.mcp_rig import script, servers, use, text
async def main():
    of = servers(Path(sys.argv[1]), script(Path(sys.argv[1]), "--stubborn"))
    await of.prepare()
    import json
    print(json.loads(text(await use(of, "mcp__s__environment")))["pid"], flush=True)
    if sys.argv[2] == "wait":
        await asyncio.Event().wait()
    os._exit(0) if sys.argv[2] == "exit" else None
asyncio.run(main())
"""


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "exit", "forgotten"])
async def test_a_server_that_ignores_the_end_of_its_input_ends_with_the_kernel(tmp_path, how):
    """Row 46: nothing that a kernel started survives it."""
    kernel = subprocess.Popen(  # noqa: ASYNC220  (it stands for a kernel, which nothing here waits for)
        [sys.executable, "-c", KERNEL, str(tmp_path), "wait" if how == "killed" else how],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert kernel.stdout is not None
    server = int(kernel.stdout.readline())
    assert lives(server)
    if how == "killed":
        kernel.send_signal(signal.SIGKILL)
    kernel.wait()
    kernel.stdout.close()
    await until(lambda: not lives(server), within=15)


def test_the_guard_hands_on_input_output_and_the_exit_code():
    command = guarded([sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); sys.exit(5)"])
    done = subprocess.run(command, input="hi", capture_output=True, text=True, check=False, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr) == (5, "HI\n", "[ended with exit code 5]\n")


def test_the_guard_says_what_it_cannot_start():
    done = subprocess.run(
        guarded([str(SCRIPT)]), capture_output=True, text=True, check=False, start_new_session=True, input=""
    )
    assert done.returncode == 127
    assert "can't start" in done.stderr
