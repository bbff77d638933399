"""Keeps a warm process beside an executor's worker, in which each job gets a process of its own without importing anew.

The process is a plain subprocess, so that it can be started in a thread and in a daemonic worker (Dask's); what it does is
`nursed`. Must not know what a job is. Read `Nursery.perform`.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import IO, Any

from nbagent.core.errors import NbagentError
from nbagent.core.messages import Json

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from nbagent.app.nursed import main; main()"

_NEW_GROUP = (
    0x200 if os.name == "nt" else 0
)  # CREATE_NEW_PROCESS_GROUP: Windows has no sessions that keep a Ctrl-C away


class ProcessDied(NbagentError):
    """The process that performed a job ended before the job did."""


def can_fork() -> bool:
    """Whether processes may be forked here: on macOS system libraries break in a forked child, Windows has none."""
    return sys.platform == "linux"


class Nursery:
    """One warm process and the jobs in it; `perform` may be called from any number of threads.

    `forks`: whether children are forked from it; else each job gets a new interpreter. Where this process is killed, forked
    ones outlive it until the replies that are under way have come whole.
    """

    def __init__(self, *, forks: bool | None = None) -> None:
        self._forks = can_fork() if forks is None else forks
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._warm: _Process | None = None
        self._busy = 0

    @property
    def busy(self) -> int:
        """How many jobs are performed now."""
        return self._busy

    @property
    def pid(self) -> int | None:
        """The process id of the warm process, None where none runs."""
        return self._warm.pid if self._warm is not None else None

    def warm(self) -> Json:
        """Have the process ready; returns its word: seconds that its imports took, and its threads."""
        return self._ready().ready()

    def perform(self, request: Json) -> Json:
        """Have a request performed in a process of its own and return its outcome; blocks until then.

        Raises `ProcessDied` with a sentence that says how the process ended.
        """
        number = next(self._numbers)
        with self._lock:
            self._busy += 1
        try:
            if not self._forks:
                return _Process("once").perform({**request, "id": number}, alone=True)
            return self._ready().perform({**request, "id": number})
        finally:
            with self._lock:
                self._busy -= 1

    def close(self) -> None:
        """End the warm process once what runs in it has ended."""
        with self._lock:
            warm, self._warm = self._warm, None
        if warm is not None:
            warm.close()

    def kill(self) -> None:
        """End the warm process and all that runs in it at once, whatever is under way."""
        with self._lock:
            warm, self._warm = self._warm, None
        if warm is not None:
            warm.kill()

    def _ready(self) -> _Process:
        with self._lock:
            if self._warm is None or not self._warm.alive:
                self._warm = _Process("forks")
            return self._warm


class _Process:
    """A started `nursed` and the line on which it answers."""

    def __init__(self, how: str) -> None:
        command = [sys.executable, "-c", _BOOT, json.dumps(sys.path), how]
        self._process = subprocess.Popen(  # noqa: S603  (our own interpreter)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, creationflags=_NEW_GROUP
        )
        self._write = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[Json]] = {}
        self._is_ready: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self._hello: Json | None = None
        self._gone = False
        threading.Thread(target=self._read, name="nbagent-nursery", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._gone and self._process.poll() is None

    def ready(self) -> Json:
        with self._write:
            if self._hello is None:  # {} is one, too: that of a process that died before it said a word
                self._hello = self._is_ready.get()
            return self._hello

    def perform(self, request: Json, *, alone: bool = False) -> Json:
        number = int(request["id"])
        answer = self._waiting[number] = queue.SimpleQueue()
        try:
            self._send(request)
            found: Json = {"died": None} if self._gone else answer.get()
        except BaseException:  # an interrupt of who waits: nobody wants the job any more
            self._send({"kill": number})
            if alone:
                self._process.kill()
            raise
        finally:
            self._waiting.pop(number, None)
            if alone:
                self._pipe().close()
        if "outcome" not in found:
            raise ProcessDied(_died(found["died"] if found["died"] is not None else self._process.wait()))
        if alone:
            self._process.wait()
        return found["outcome"]

    def close(self) -> None:
        self._pipe().close()
        self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _pipe(self) -> IO[Any]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _send(self, message: Json) -> None:
        try:
            with self._write:
                self._pipe().write(json.dumps(message).encode() + b"\n")
                self._pipe().flush()
        except (OSError, ValueError):
            self._gone = True

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                message = json.loads(line)
                if "ready" in message:
                    self._is_ready.put(message)
                elif (waiting := self._waiting.get(message["id"])) is not None:
                    waiting.put(message)
        self._gone = True
        self._is_ready.put({})
        for waiting in list(self._waiting.values()):
            waiting.put({"died": None})


def _died(status: int) -> str:
    """Return in words how a process ended."""
    if status < 0:
        name = signal.Signals(-status).name if -status in signal.valid_signals() else str(-status)
        return f"The process that performed this job was killed ({name})."
    return f"The process that performed this job ended before it was done (exit code {status}); the worker's output may say why."


@functools.cache
def _of_process(_: int) -> Nursery:
    return Nursery()


def nursery() -> Nursery:
    """Return this process' nursery: one for all that is performed in it."""
    return _of_process(os.getpid())
