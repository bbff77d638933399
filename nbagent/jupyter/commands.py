"""Runs `!command` lines and `os.system` of the agent's code, and ends processes that outlive code that was stopped.

IPython's own way gives a command a terminal: `!cat` would wait for ever, and an interrupt leaves grandchildren;
`os.system` ignores interrupts while it waits. Here stdin is closed and a stopped command's whole process group ends.
Read `run_command`, then `end_processes`.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any

_LOOK = 0.05  # seconds between two looks whether the shell has ended while something else holds its output
_REST = 0.2  # seconds for which the output of what it left in the background is still shown


def run_command(shell: Any, command: str) -> None:
    """Do what `shell.system(command)` does, output live through sys.stdout; sets `_exit_code` in the namespace.

    Raises:
        OSError: for a command in the background, as IPython does.
        subprocess.CalledProcessError: for a failure, if `shell.system_raise_on_error` is set.
    """
    if command.rstrip().endswith("&"):
        raise OSError("Background processes not supported.")
    code = run_shell(command)
    shell.user_ns["_exit_code"] = code
    if getattr(shell, "system_raise_on_error", False) and code:
        raise subprocess.CalledProcessError(code, command)


def run_shell(command: str | bytes) -> int:
    """Run a shell line, output live through sys.stdout, and return its exit code (minus the signal that ended it).

    What it left in the background keeps running and is not waited for; what that prints later is not shown.
    """
    process = subprocess.Popen(  # noqa: S602  (a shell line is a shell line)
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    held = False
    try:
        held = _copy(process.stdout, process)
        return process.wait()
    finally:
        if process.poll() is None:  # stopped in the middle: nothing that it started may outlive it
            _end_group(process)
        if held:
            threading.Thread(target=_swallow, args=(process.stdout,), name="nbagent-background", daemon=True).start()
        else:
            process.stdout.close()


def os_system(command: str | bytes) -> int:
    """Do what `os.system` does; its result is coded as there. A command in the background keeps running, as there."""
    code = run_shell(os.fspath(command))
    if os.name != "posix":
        return code
    return -code if code < 0 else code << 8


def _copy(pipe: IO[bytes], process: subprocess.Popen[bytes]) -> bool:
    """Copy output until the shell has ended and nothing more comes; return whether a background process holds the pipe."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = float("inf")  # when to stop copying from a background process that prints all the time
    held = False
    while not (held := not _readable(pipe, process) or time.monotonic() > last):
        if not (piece := os.read(pipe.fileno(), 65_536)):
            break
        sys.stdout.write(decoder.decode(piece))
        if last == float("inf") and process.poll() is not None:
            last = time.monotonic() + _REST
    sys.stdout.write(decoder.decode(b"", final=True))
    return held


def _readable(pipe: IO[bytes], process: subprocess.Popen[bytes]) -> bool:
    """Wait for output or its end; False where the shell has ended and the pipe is quiet."""
    if os.name != "posix":  # pipes can't be waited for there: what is in the background is waited for too
        return True
    while True:
        ended = process.poll() is not None
        if select.select([pipe], [], [], 0 if ended else _LOOK)[0]:
            return True
        if ended:
            return False


def _swallow(pipe: IO[bytes]) -> None:
    """Read on, so that a process in the background does not end at a closed pipe when it prints."""
    with pipe:
        while os.read(pipe.fileno(), 65_536):
            pass


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def group_members() -> frozenset[int]:
    """Return the ids of the processes in our own process group, this one too; none where that can't be told (Windows).

    They are found by group and not by parent: the grandchildren of a command whose shell has been killed have lost it.
    """
    if not hasattr(os, "getpgid"):
        return frozenset()
    try:
        import psutil  # comes with ipykernel; a terminal may do without
    except ImportError:
        return frozenset()
    return frozenset(pid for pid in psutil.pids() if _group_of(pid) == os.getpgrp())


def end_processes(before: frozenset[int]) -> None:
    """Kill the processes of our group that were not there `before` (see `group_members`) and that we started.

    Those count too whose parents have ended; not those that another process of the group has started.
    """
    new = group_members() - before if before else frozenset[int]()
    others = before - {os.getpid()}
    for pid in [pid for pid in new if _first_parent(pid, new) not in others]:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _first_parent(pid: int, among: frozenset[int]) -> int:
    """Return the first ancestor of a process that is not `among` these."""
    import psutil

    for _ in range(len(among) + 1):
        if pid not in among:
            break
        try:
            pid = psutil.Process(pid).ppid()
        except psutil.Error:  # it has just ended
            return 0
    return pid


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:  # it has ended, or is not ours
        return -1
