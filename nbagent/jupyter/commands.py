"""Runs `!command` lines of the agent's code with stdin closed, and ends the whole process group when it is stopped.

IPython's own way gives the command a terminal: `!cat` would wait for ever, and an interrupt leaves grandchildren.
Read `run_command`.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import subprocess
import sys
from typing import IO, Any


def run_command(shell: Any, command: str) -> None:
    """Do what `shell.system(command)` does, output live through sys.stdout; sets `_exit_code` in the namespace.

    Raises:
        OSError: for a command in the background, as IPython does.
        subprocess.CalledProcessError: for a failure, if `shell.system_raise_on_error` is set.
    """
    if command.rstrip().endswith("&"):
        raise OSError("Background processes not supported.")
    with subprocess.Popen(  # noqa: S602  (a shell line is a shell line)
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            if process.stdout is not None:
                _copy(process.stdout)
            code = process.wait()
        finally:
            if process.poll() is None:  # stopped in the middle: nothing that it started may outlive it
                _end_group(process)
    shell.user_ns["_exit_code"] = code
    if getattr(shell, "system_raise_on_error", False) and code:
        raise subprocess.CalledProcessError(code, command)


def _copy(pipe: IO[bytes]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while piece := os.read(pipe.fileno(), 65_536):
        sys.stdout.write(decoder.decode(piece))
    sys.stdout.write(decoder.decode(b"", final=True))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
