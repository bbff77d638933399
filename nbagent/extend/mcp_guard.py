"""A small program that runs one MCP server and ends it, with all that it started, when the kernel is gone.

A kernel that is killed closes its pipes, but a server may not care; nothing that a kernel started may outlive it. Run as
a file: `python -I -S mcp_guard.py KERNEL_PID COMMAND [ARGUMENT …]` in a session of its own. It hands its input and output
to the server and keeps none of them. POSIX only: on Windows the SDK puts a server into a job that ends with the kernel.
Standard library only. Read `main`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

LOOK = 1.0
"""Seconds between two looks whether the kernel is still there."""
GRACE = 2.0
"""Seconds for a server to end by itself: first after its input has ended, then after it was told."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code, 128 + the signal's number where one ended it, as shells do."""
    kernel, command = int(arguments[0]), list(arguments[1:])
    try:
        server = subprocess.Popen(command)  # noqa: S603  (the person named it)
    except OSError as error:
        say(f"can't start {command[0]}: {error.strerror or error}")
        return 127
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # else the kernel would not see that the server has closed them
        os.dup2(nothing, stream)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is meant for the server; this program ends after it
    while (code := _wait(server, LOOK)) is None:
        if os.getppid() != kernel:
            _end(server)
    code = code if code >= 0 else 128 - code
    say(f"ended with exit code {code}")
    os.killpg(0, signal.SIGTERM)  # what the server left behind
    return code


def say(text: str) -> None:
    """Say what happened where the kernel keeps what the server itself says."""
    sys.stderr.write(f"[{text}]\n")
    sys.stderr.flush()


def _wait(server: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return server.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the whole group: the server, what it started, and this program."""
    if _wait(server, GRACE) is None:
        os.killpg(0, signal.SIGTERM)
        _wait(server, GRACE)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
