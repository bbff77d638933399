"""The nursery's process: imports once what every run needs, stays single-threaded, and forks a child for each job.

Speaks JSON lines on the descriptors that were its standard input and output. A child lives no longer than its job, and no
longer than the nursery. Where the process that started the nursery is gone, the children end with the replies that are under
way, which are paid for, and the nursery with them. Where there is no safe fork (Windows, macOS) the process performs the one
job itself. Must not know what a job is. Read `Nursed.serve`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbagent.core.messages import Json

_LOOK, _LOOK_OFTEN = 1.0, 0.05  # seconds between two looks whether the process that started this one still lives
_GRACE = 5.0  # seconds that a child has to end after it has said what came of its job
_LINGERS = 120.0  # seconds that children have to end by themselves when who started this process is gone
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # prctl
_CHUNK = 65_536
_RUN = """
nbagent.app.cell nbagent.app.jobrun nbagent.app.answer nbagent.app.compacting nbagent.app.completion nbagent.app.hooks
nbagent.app.hooks_ask nbagent.app.magics nbagent.app.mcp nbagent.app.privacy nbagent.app.reports nbagent.extend.hooks_cells
nbagent.extend.hooks_exit nbagent.headless.file nbagent.tools.team nbagent.view.tray IPython.core.interactiveshell
IPython.core.completerlib IPython.core.magics IPython.core.oinspect anyio._backends._asyncio httpcore2 yaml
concurrent.futures.thread encodings.idna
"""
"""What a run imports at the latest when it begins."""


@dataclass(slots=True)
class _Child:
    """A child: its request, the pipe on which it answers, and the one by which it hears that it has to leave (see `Life`).

    `gone` can be read once it has ended, -1 where the system can't tell.
    """

    number: int
    pid: int
    answers: int
    life: int
    gone: int
    said: bytes = b""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """What this process is to perform: the request, and the descriptor on which to answer."""

    request: Json
    answers: int
    life: Life


def main() -> None:
    """Serve until the process that started this one is gone; in a child: perform its job."""
    wires = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    forks = sys.argv[-1] == "forks"
    began = time.monotonic()
    if forks:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # kernels interrupt what they started; a stop comes by the links
        _warm()
        gc.collect()
        gc.freeze()
        assigned = Nursed(*wires, warm=round(time.monotonic() - began, 3)).serve()
    else:
        assigned = _only_one(*wires)
    if assigned is not None:
        _perform(assigned)


def _warm() -> None:
    """Import what a run needs. Nothing here may start a thread: children are forked from this process.

    What is not installed is left out: whoever needs it says so.
    """
    from nbagent.core.errors import ConfigError
    from nbagent.models import warm_up

    with contextlib.suppress(ConfigError):
        warm_up()
    for module in _RUN.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def _perform(assigned: Assigned) -> None:
    """Perform a job and answer; what can't be told in a sentence ends the process with its traceback on stderr."""
    from nbagent.app.jobrun import run_job
    from nbagent.app.jobs import Job

    given = assigned.request
    outcome = run_job(Job.from_json(given["job"]), given.get("link") or {}, assigned.life.leaves_by)
    with contextlib.suppress(BrokenPipeError):
        _say(assigned.answers, {"id": assigned.request["id"], "outcome": outcome.to_json()})


def _say(wire: int, message: Json) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(wire, data) :]


def _only_one(control: int, answers: int) -> Assigned | None:
    """Read the one request of a process that does not fork; from then on the end of `control` ends it."""
    with os.fdopen(control, "rb", closefd=False, buffering=0) as file:
        line = b""
        while not line.endswith(b"\n"):
            if not (part := file.read(_CHUNK)):
                return None
            line += part
    return Assigned(json.loads(line), answers, Life(control))


class Life:
    """Ends this process when nobody holds the other end of `pipe` any more; a byte from there asks it to leave."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._leave: Callable[[], object] = _exit
        threading.Thread(target=self._watch, name="nbagent-life", daemon=True).start()

    def leaves_by(self, leave: Callable[[], object]) -> None:
        """Say what is called, on a thread, when this process is to leave; until this is said it ends at once."""
        self._leave = leave

    def _watch(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._pipe, 1):
                self._leave()
        _exit()


def _exit() -> None:
    os._exit(1)


class Nursed:
    """The nursery's loop. `control` brings requests, `answers` takes outcomes; `warm`: seconds that its imports took."""

    def __init__(self, control: int, answers: int, *, warm: float) -> None:
        self._control, self._answers = control, answers
        self._parent = os.getppid()
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._part = b""
        self._requests: deque[Json] = deque()
        self._prctl = _prctl()
        self._prctl(_SUBREAPER, 1)
        _say(answers, {"ready": warm, "threads": threading.active_count()})

    def serve(self) -> Assigned | None:
        """Fork a child for each request; returns in the child what it is to perform, here None at the end."""
        with contextlib.suppress(BrokenPipeError):
            while os.getppid() == self._parent:
                blind = any(child.gone < 0 for child in self._children.values())
                for key, _ in self._selector.select(_LOOK_OFTEN if blind else _LOOK):
                    if key.fd == self._control:
                        data = os.read(self._control, _CHUNK)
                        if not data:
                            return self._end()
                        *lines, self._part = (self._part + data).split(b"\n")
                        self._requests += map(json.loads, lines)
                    elif key.data is not None:
                        self._hear(key.data)
                while self._requests:
                    assigned = self._take(self._requests.popleft())
                    if assigned is not None:
                        return assigned
                self._look()
        return self._end()

    def _take(self, request: Json) -> Assigned | None:
        if "kill" in request:
            for child in self._children.values():
                if child.number == request["kill"]:
                    _kill(child.pid)
            return None
        answers, write = os.pipe()
        life, hold = os.pipe()
        pid = os.fork()
        if pid == 0:
            return self._child(request, write, life, (answers, hold))
        os.close(write)
        os.close(life)
        os.set_blocking(answers, False)
        child = self._children[pid] = _Child(request["id"], pid, answers, hold, _pidfd(pid))
        self._selector.register(answers, selectors.EVENT_READ, child)
        if child.gone >= 0:
            self._selector.register(child.gone, selectors.EVENT_READ)
        return None

    def _child(self, request: Json, write: int, life: int, others: tuple[int, ...]) -> Assigned:
        """Become a child: a group of its own, nothing of the nursery's or of another child's open, and mortal."""
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._prctl(_DEATH_SIGNAL, signal.SIGKILL)
        self._selector.close()
        for one in (self._control, self._answers, *others):
            os.close(one)
        for child in self._children.values():
            os.close(child.answers)
            os.close(child.life)
            if child.gone >= 0:
                os.close(child.gone)
        os.environ[_MARK] = _mark(os.getpid())
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed()  # the standard library's has been seeded anew by the fork
        return Assigned(request, write, Life(life))

    def _hear(self, child: _Child) -> None:
        """Take what a child says. Who waits for it need not wait for the end of the process."""
        try:
            data = os.read(child.answers, _CHUNK)
        except BlockingIOError:
            return
        child.said += data
        if not data:
            with contextlib.suppress(KeyError):
                self._selector.unregister(child.answers)
        elif child.until is None and child.said.endswith(b"\n"):
            _write(self._answers, child.said)
            child.until = time.monotonic() + _GRACE

    def _look(self) -> None:
        """Bury children that have ended, and end those that have said what came of their jobs and do not end."""
        for child in list(self._children.values()):
            if child.until is not None and time.monotonic() > child.until:
                _kill(child.pid)
                child.until = float("inf")
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._hear(child)
                self._bury(child, os.waitstatus_to_exitcode(status))

    def _bury(self, child: _Child, status: int) -> None:
        """Take a child out that has ended; what it left behind ends with it."""
        del self._children[child.pid]
        for one in (child.answers, child.gone):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(one)
        for one in (child.answers, child.life, child.gone):
            if one >= 0:
                os.close(one)
        _kill(child.pid, group_only=True)
        _end_orphans(_mark(child.pid))
        if child.until is None:
            _say(self._answers, {"id": child.number, "died": status})

    def _end(self) -> None:
        self._linger()
        for child in self._children.values():
            _kill(child.pid)
        for child in self._children.values():
            os.waitpid(child.pid, 0)
            _end_orphans(_mark(child.pid))
        _end_orphans("")

    def _linger(self) -> None:
        """Let children finish the replies that are under way: they are paid for, and end in their sessions' files."""
        self._selector.unregister(self._control)
        until, told = time.monotonic() + _LINGERS, False
        while self._children and time.monotonic() < until:
            if not told and os.getppid() != self._parent:  # it did not close this end by itself: it was killed
                told = True
                for child in self._children.values():
                    with contextlib.suppress(BrokenPipeError):
                        os.write(child.life, b".")
            for key, _ in self._selector.select(_LOOK_OFTEN):
                if key.data is not None:
                    with contextlib.suppress(BrokenPipeError):
                        self._hear(key.data)
            with contextlib.suppress(BrokenPipeError):
                self._look()


_MARK = "NBAGENT_WORKER"


def _mark(pid: int) -> str:
    """What the environment of a child's own children says, also once they are nobody's."""
    return f"child-{pid}"


def _kill(pid: int, *, group_only: bool = False) -> None:
    """End a child and its group."""
    for end in (os.killpg, *(() if group_only else (os.kill,))):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _pidfd(pid: int) -> int:
    """Return a descriptor that can be read once a process has ended, -1 where the system has none."""
    opens: Any = getattr(os, "pidfd_open", None)
    try:
        return -1 if opens is None else opens(pid)
    except OSError:
        return -1


def _write(wire: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(wire, rest) :]


def _end_orphans(mark: str) -> None:
    """End the processes that a child started and that outlived it: Linux gives them to this one. "" for all of them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
            pids = [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                mine = f"{_MARK}={mark}".encode() in file.read().split(b"\0") if mark else True
            if mine:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        except OSError:
            continue


def _prctl() -> Any:
    """Return Linux' prctl, elsewhere what does nothing."""
    if sys.platform != "linux":
        return lambda *_: None
    import ctypes

    return ctypes.CDLL(None).prctl
