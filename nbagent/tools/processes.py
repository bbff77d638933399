"""One command in a child process: bounded output, a time limit, and no child left behind.

A thread reads and a thread waits, so that any event loop will do (Windows' selector loop has no subprocesses, and a
kernel's loop may be anything). It must not know what a command means. Read `run_command`, then `_end_group`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_DRAIN = 0.3  # seconds that a child in the background may go on writing after the command itself ended
_REAP = 2.0  # seconds in which killed processes must be gone


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `code` is None if it was stopped by the time limit.

    `left_out` is how many bytes in the middle were not kept; `background` says that children still held the output when
    the command ended; `survivors` are processes of its group that could not be killed, and `escaped` says that one
    outside of the group (setsid) goes on and still holds the output.
    """

    output: str
    code: int | None
    seconds: float
    left_out: int = 0
    background: bool = False
    survivors: tuple[int, ...] = ()
    escaped: bool = False


class _Kept:
    """The first and the last bytes of a stream, and how many between them were let go; memory stays bounded."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.left_out = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0] if self._tail else b"") > self._half:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self.left_out += gone

    def text(self) -> str:
        tail = b"".join(self._tail)
        gap = f"\n… {self.left_out} bytes left out …\n".encode() if self.left_out else b""
        return (bytes(self._head) + gap + tail).decode("utf-8", "replace")


async def run_command(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float | None, limit: int = 1_000_000
) -> Finished:
    """Run `argv` with stdin closed, stdout and stderr merged, and return how it ended.

    `timeout` is in seconds, `limit` the bytes of output that are kept. On a timeout, on cancellation and at the end the
    command's whole process group is killed and reaped. Raises `OSError` if it can't be started.
    """
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    exited, drained = asyncio.Event(), asyncio.Event()
    process = _start(argv, cwd, env)
    kept = _Kept(limit)
    threads = [
        threading.Thread(target=_read, args=(process, kept, _teller(loop, drained)), daemon=True),
        threading.Thread(target=_wait, args=(process, _teller(loop, exited)), daemon=True),
    ]
    for thread in threads:
        thread.start()
    timed_out = background = False
    survivors: tuple[int, ...] = ()
    try:
        async with asyncio.timeout(timeout):
            await exited.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                await drained.wait()
        background = not drained.is_set()
    except TimeoutError:
        timed_out = True
    finally:
        survivors = _end_group(process)
        for thread in threads:
            thread.join(_DRAIN)
    return Finished(
        output=kept.text(),
        code=None if timed_out else process.returncode,
        seconds=time.monotonic() - started,
        left_out=kept.left_out,
        background=background,
        survivors=survivors,
        escaped=threads[0].is_alive(),
    )


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    windows = os.name == "nt"
    return subprocess.Popen(  # noqa: S603  (running commands is what this is for; the policy has decided)
        list(argv),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=not windows,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) if windows else 0,
    )


def _teller(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], None]:
    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(event.set)

    return tell


def _read(process: subprocess.Popen[bytes], kept: _Kept, tell: Callable[[], None]) -> None:
    assert process.stdout is not None
    with process.stdout, contextlib.suppress(OSError):  # what was read until then counts
        while data := os.read(process.stdout.fileno(), 65_536):
            kept.add(data)
    tell()


def _wait(process: subprocess.Popen[bytes], tell: Callable[[], None]) -> None:
    """Wait until the process ends without reaping it: while it is there, nobody else can get its group's number."""
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    except (AttributeError, OSError):  # no waitid here, or somebody else has reaped it
        process.wait()
    tell()


def _end_group(process: subprocess.Popen[bytes]) -> tuple[int, ...]:
    """Kill what is left of the process and its group, reap it, and return the processes that are still alive."""
    if os.name == "nt":
        subprocess.run(  # noqa: S603
            ["taskkill", "/F", "/T", "/PID", str(process.pid)],  # noqa: S607
            capture_output=True,
            check=False,
        )
        process.wait(_REAP)
        return ()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + _REAP
    try:
        process.wait(_REAP)
    except subprocess.TimeoutExpired:
        return (process.pid,)
    while (alive := _members(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return alive


def _members(group: int) -> tuple[int, ...]:
    """Return the living processes of a group (zombies that nobody reaps don't count); () where that can't be seen."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, member = entry.read_text("utf-8", "replace").rpartition(") ")[2].split()[:3]
        except (OSError, ValueError):  # gone meanwhile
            continue
        if int(member) == group and state not in "ZX":
            found.append(int(entry.parent.name))
    return tuple(found)
