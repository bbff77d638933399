"""Runs the command of a hook: JSON on its stdin, bounded output, a time limit that ends all its processes.

Threads read and wait, so that any event loop will do. Must not know what an answer means. Read `argv_of`, then `Started`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from nbagent.extend.hooks_output import Failed

PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "NBAGENT_PROJECT_DIR")
LIMIT = 1_000_000
"""Bytes of each output that are kept."""
_DRAIN = 0.3  # seconds that a child in the background may go on writing after the command itself ended


def argv_of(spec: Mapping[str, Any], project: str, *, windows: bool, which: Callable[[str], str | None]) -> list[str]:
    """Return what to start for a hook's `command`, `args` and `shell`; raises `Failed` where its shell is not there.

    With `args` no shell is used. Else it is bash (sh where there is none); PowerShell where the hook asks for it, and on
    Windows without Git's bash.
    """
    command = str(spec["command"])
    if (args := spec.get("args")) is not None:
        return [_placed(command, project), *(_placed(str(arg), project) for arg in args)]
    shell = spec.get("shell")
    bash = which("bash")
    if windows and bash is not None and "system32" in bash.lower():
        bash = None  # that one is another machine (WSL), with other paths
    if shell == "powershell" or (windows and shell is None and bash is None):
        power = which("pwsh") or which("powershell")
        if power is None:
            raise Failed("PowerShell is not installed here")
        return [power, "-NoProfile", "-NonInteractive", "-Command", _for_powershell(command)]
    if bash is not None:
        return [bash, "-c", command]
    if windows:
        raise Failed("bash is not installed here")
    return ["/bin/sh", "-c", command]


def _placed(text: str, project: str) -> str:
    for name in PROJECT_VARIABLES:
        text = text.replace(f"${{{name}}}", project)
    return text


def _for_powershell(command: str) -> str:
    for name in PROJECT_VARIABLES:
        command = command.replace(f"${{{name}}}", f"${{env:{name}}}")
    return command


def environment_of(base: Mapping[str, str], project: str, effort: str, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a hook's command: the kernel's own, where the project is, and what its source adds."""
    made = {**base, **dict.fromkeys(PROJECT_VARIABLES, project), **more}
    return {**made, "CLAUDE_EFFORT": effort} if effort else made


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: exit code, output, error output."""

    code: int
    out: str
    err: str


class Started:
    """A command that was started. Whoever starts it must `kill` it in the end; that does nothing to one that has ended.

    Raises `Failed` where it can't be started.
    """

    def __init__(self, argv: Sequence[str], said: bytes, *, cwd: Path, env: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._exited, self._drained, self._line = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._kept: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
        self._open = 2
        try:
            self._process = _popen(argv, cwd, env)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Failed(f"it can't be started: {reason}") from None
        for work in (self._write, self._read_out, self._read_err, self._wait):
            threading.Thread(target=work, args=(said,) if work == self._write else (), daemon=True).start()

    async def ended(self) -> Ended:
        """Wait until it has ended; children that it left behind may go on, but are not waited for."""
        await self._exited.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                await self._drained.wait()
        return Ended(self._process.wait(), self._text("out"), self._text("err"))

    @property
    def pid(self) -> int:
        """The id of its process, and of its group."""
        return self._process.pid

    async def first_line(self) -> None:
        """Wait until its first line is there, or it has ended."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._exited, self._line)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def ended_or_async(self) -> Ended | float:
        """Wait until it has ended, or its first line says `{"async": true}`: then return its own time limit in seconds."""
        await self.first_line()
        ended = None if self._line.is_set() else await self.ended()
        if (seconds := _async_timeout(self._text("out"))) is not None:
            return seconds
        return ended or await self.ended()

    def kill(self) -> None:
        """End it with all its processes, if it still runs."""
        if self._process.poll() is None:
            end_group(self._process)

    def rest(self) -> str:
        """Return what it printed after its first line."""
        return self._text("out").partition("\n")[2]

    def _text(self, which: str) -> str:
        return bytes(self._kept[which]).decode("utf-8", "replace")

    # ── threads ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, said: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):  # it does not want to hear it
            stdin.write(said)
        with contextlib.suppress(OSError):
            stdin.close()

    def _read_out(self) -> None:
        self._read("out", self._process.stdout)

    def _read_err(self) -> None:
        self._read("err", self._process.stderr)

    def _read(self, which: str, pipe: Any) -> None:
        kept = self._kept[which]
        with pipe, contextlib.suppress(OSError):
            while data := os.read(pipe.fileno(), 65_536):
                kept += data[: LIMIT - len(kept)]
                if which == "out" and b"\n" in kept:
                    self._tell(self._line)
        self._open -= 1
        if not self._open:
            self._tell(self._drained)

    def _wait(self) -> None:
        self._process.wait()
        self._tell(self._exited)

    def _tell(self, event: asyncio.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            self._loop.call_soon_threadsafe(event.set)


def _popen(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    windows = os.name == "nt"
    return subprocess.Popen(  # noqa: S603  (running commands is what this is for; the person trusts them)
        list(argv),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=not windows,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) if windows else 0,
    )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that `Popen` started in a session of its own, and all that it started."""
    if os.name == "nt":
        subprocess.run(  # noqa: S603
            ["taskkill", "/F", "/T", "/PID", str(process.pid)],  # noqa: S607
            capture_output=True,
            check=False,
        )
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _async_timeout(out: str) -> float | None:
    """Return the seconds that a command gives itself with `{"async": true, "asyncTimeout": ms}`, None if it says no such thing."""
    try:
        said = json.loads(out.partition("\n")[0])
    except ValueError:
        return None
    if not isinstance(said, dict) or cast("dict[str, Any]", said).get("async") is not True:
        return None
    given = cast("dict[str, Any]", said).get("asyncTimeout")
    return given / 1000 if isinstance(given, int | float) and not isinstance(given, bool) and given > 0 else 600.0
