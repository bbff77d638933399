"""Stops the agent's code: a person's interrupt and the time limit, on the main thread, and never anything else.

A notebook kernel that awaits a cell has SIGINT cancel that cell, which leaves nested synchronous code running. So while
the agent's code runs, SIGINT belongs to a `Gate`: the code itself gets KeyboardInterrupt; what is not the agent's code
gets what it would have got. The time limit uses the same way: a helper thread signals the main thread, and the handler
decides there, where nothing can move meanwhile, whose turn it is; a late signal is swallowed.
This module knows nothing of IPython. Read `Gate._handle` first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextvars import ContextVar
from types import FrameType
from typing import Any, Self

from nbagent.core.errors import Interrupted

OWNER: ContextVar[object | None] = ContextVar("nbagent_owner", default=None)
"""The `Gate` whose code the current context runs: set in the task of the agent's code, inherited by what it starts."""

_OURS = os.path.dirname(__file__) + os.sep  # noqa: PTH120
_REPEAT = 0.5  # seconds between signals to code that catches the first
_GRACE = 2.0  # seconds that code may take to clean up after a person's interrupt
_ESCALATE = 3  # from this signal on the code gets SystemExit: `except KeyboardInterrupt: continue` does not hold it


class Gate:
    """Owns SIGINT while one piece of the agent's code runs, with a time limit in seconds (None: none).

    Afterwards `person` tells whether a person interrupted it, `timed_out` whether the limit did.
    Off the main thread no signal arrives: there only awaiting code can be stopped.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.person = False
        self.timed_out = False
        self._person_at = 0.0
        self.task: asyncio.Task[Any] | None = None
        self._armed = False
        self._expected = 0  # signals of ours that are on their way
        self._sent = 0
        self._hold = 0
        self._deferred = False
        self._passed_on = False
        self._pid = os.getpid()
        self._main = threading.main_thread().ident
        self._old: Any = None
        self._owns_signal = False
        self._ended = threading.Event()
        self._watchdog: threading.Thread | None = None
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._old = signal.getsignal(signal.SIGINT)
        if self._old is None:  # installed from C: it could not be put back
            return self
        signal.signal(signal.SIGINT, self._handle)
        self._owns_signal = True
        self._watchdog = threading.Thread(target=self._watch, name="nbagent-time-limit", daemon=True)
        self._watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._armed = False
        self._ended.set()
        if self._watchdog is not None and os.getpid() == self._pid:
            self._watchdog.join()
        if self._owns_signal:
            # signal.signal first runs handlers that are due, so a signal of ours still ends in _handle
            signal.signal(signal.SIGINT, self._old)

    @property
    def old(self) -> Any:
        """Who gets the interrupts that are not for this code, and has SIGINT again at the end."""
        return self._old

    def retake(self, old: Any) -> None:
        """Take SIGINT again, which somebody else took meanwhile; from now on `old` is whose it is otherwise."""
        if self._owns_signal:
            self._old = old if old != self._handle else self._old
            signal.signal(signal.SIGINT, self._handle)

    def left(self) -> float | None:
        """Return the seconds until the time limit, None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @contextlib.contextmanager
    def armed(self) -> Generator[None]:
        """Let signals raise in the task that runs this block; the block must catch KeyboardInterrupt outside of it."""
        self.task = _current_task()
        if self._passed_on:  # it came before the code did: what it cancelled can't be heard once the code runs
            self.person, self._person_at = True, time.monotonic()
            raise KeyboardInterrupt
        try:
            self._armed = True
            yield
        finally:
            self._armed = False

    def surfaced(self, error: BaseException | None) -> None:
        """Say that `error` has come out of the code: if it is ours, what follows is bookkeeping, not to be hit again."""
        if self._sent and isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
            self._armed = False
            _cut_own_frames(error)

    def hold(self) -> None:
        """Put off a signal until `release`, so that outputs are not torn apart."""
        if threading.get_ident() == self._main:
            self._hold += 1

    def release(self) -> None:
        """End a `hold`; a signal that came meanwhile takes effect now."""
        if threading.get_ident() == self._main:
            self._hold -= 1
            if self._deferred and not self._hold:
                self._deferred = False
                self._raise()

    def _watch(self) -> None:
        """Signal when the time is up, and again code that goes on after a signal, of ours or of a person's."""
        while not self._ended.wait(_REPEAT if (left := self.left()) is None else min(left, _REPEAT)):
            over = self.left() == 0.0 or self.timed_out
            if over or (self.person and time.monotonic() - self._person_at > _GRACE):
                self._expected += 1
                _signal_main_thread()
            if over:
                self._ended.wait(_REPEAT)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True  # IPython leaves such frames out of tracebacks
        if os.getpid() != self._pid:  # a forked child: as in any program
            signal.default_int_handler(signum, frame)
        ours = self._expected > 0
        if ours:
            self._expected -= 1
        if OWNER.get() is not self or (self.task is not None and _current_task() is None):
            # The loop is idle or runs somebody else's code: awaiting code is stopped through its task instead,
            # by `old` (ipykernel's cancels the cell) or, at the time limit, by who awaits it.
            if not ours and callable(self._old) and not self._old(signum, frame):
                self._passed_on = True  # unless it was for somebody else, who says so: then this code goes on
            return
        if ours and not self._armed and _current_task() is self.task:
            return  # it had just ended
        self.timed_out = self.timed_out or (ours and not self.person)
        if not ours:
            self.person, self._person_at = True, time.monotonic()
        if self._hold:
            self._deferred = self._deferred or not self._sent
        else:
            self._raise()

    def _raise(self) -> None:
        __tracebackhide__ = True
        current = _current_task()
        if current is not None and current is not self.task:
            # A task or callback that the code left on the loop: KeyboardInterrupt there would end the kernel's loop.
            self._sent += 1
            raise asyncio.CancelledError
        if not self._armed:
            return
        self._sent += 1
        if self._sent >= _ESCALATE:
            raise SystemExit("stopped: the code caught KeyboardInterrupt")
        raise KeyboardInterrupt


def _cut_own_frames(error: BaseException) -> None:
    """Take the frames of ours off the end of a traceback: an interrupt is raised in a handler on top of the code that it hits.

    IPython heeds `__tracebackhide__` in its debugger only.
    """
    place = last = error.__traceback__
    while place is not None:
        if not place.tb_frame.f_code.co_filename.startswith(_OURS):
            last = place
        place = place.tb_next
    if last is not None:
        last.tb_next = None


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _signal_main_thread() -> None:
    """Send SIGINT to the main thread itself, so that a blocking system call (time.sleep, read) returns."""
    ident = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and ident is not None:
        signal.pthread_kill(ident, signal.SIGINT)
    else:  # Windows: wakes Python code, not a blocking call
        import _thread

        _thread.interrupt_main()


@contextlib.contextmanager
def stopping(stop: Callable[[], object]) -> Generator[None]:
    """On a terminal, have an interrupt call `stop` on the running loop; else it would end the loop around the run.

    A `Gate` inside takes the interrupts of its code.
    """
    loop = asyncio.get_running_loop()
    with _handler(lambda *_: loop.call_soon_threadsafe(stop)):
        yield


@contextlib.contextmanager
def reading() -> Generator[None]:
    """Let an interrupt end the blocking read of this block: it raises Interrupted."""
    with _handler(signal.default_int_handler):
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted from None


@contextlib.contextmanager
def _handler(handle: Callable[[int, FrameType | None], object]) -> Generator[None]:
    old = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or old is None:
        yield
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)


async def end_task(task: asyncio.Task[Any], *, tries: int = 5, wait: float = 1.0) -> bool:
    """Cancel `task` and await its end, at most `tries` times `wait` seconds; tell whether it ended."""
    for _ in range(tries):
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=wait)
        except asyncio.CancelledError:
            continue  # a second interrupt: the caller raises the first; this wait must not leave a task behind
        if task.done():
            break
    return task.done()
