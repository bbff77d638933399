"""Hears which files Python code opens, and that it reaches beyond them, through the one audit hook of the process.

An audit hook can't be removed again, so there is at most one a process, which does nothing while nobody listens. It is
kept with the interpreter (`sys`), as an extension that is loaded anew must find it. Several may listen at a time. Libraries that open files in C++
(pyarrow, duckdb) are not heard. Read `heard`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any

_KEPT = "_nbagent_opens"
_LISTINGS = {"os.listdir", "os.scandir"}
_GLOBS = {"glob.glob/2", "pathlib.Path.glob", "pathlib.Path.rglob"}
_NOT_THE_PERSONS = (
    "importlib.",
    "_frozen_importlib",
    "glob",
    "pathlib",
    "linecache",
    "tokenize",
    "inspect",
    "nbagent.",
)
_IMPORTING = {"importlib._bootstrap", "_frozen_importlib"}
_MODULE_OPENERS = ("linecache", "tokenize", "inspect", "nbagent.")

_PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.forkpty"}
_HEARD = {"open", "socket.connect", "sqlite3.connect"} | _LISTINGS | _GLOBS | _PROGRAMS

Hear = Callable[[str, str, str], None]
"""Called with what happens (read, write, glob; network, database, program), the path as it was given (of the last three
""), and of a glob its pattern."""


class _Opens:
    """The state of the process's hook: who listens, and which threads are inside of a listener."""

    def __init__(self) -> None:
        self.listeners: tuple[Hear, ...] = ()
        self.busy: set[int] = set()

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        listeners = self.listeners
        if not listeners or event not in _HEARD:
            return
        thread = threading.get_ident()
        if thread in self.busy:  # what a listener opens itself
            return
        self.busy.add(thread)
        try:
            for hear in listeners:
                _report(hear, event, args)
        finally:
            self.busy.discard(thread)


def _report(hear: Hear, event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = args
        if (text := _text(path)) and not _caller().startswith(_MODULE_OPENERS):
            hear("write" if _writes(mode, flags) else "read", text, "")
    elif event in _PROGRAMS:
        _beyond(hear, "program")
    elif event == "socket.connect":
        if type(args[1]) is tuple:  # else it is a socket of this machine, as workers talk to one another
            _beyond(hear, "network")
    elif event == "sqlite3.connect":
        _beyond(hear, "database")
    elif event in _LISTINGS:
        if (text := _text(args[0] if args[0] is not None else ".")) and not _caller().startswith(_NOT_THE_PERSONS):
            hear("glob", text, "*")
    elif event == "glob.glob/2":
        if pattern := _text(args[0]):
            hear("glob", _text(args[2]) or ".", pattern)
    elif (folder := _text(args[0])) and type(args[1]) is str:
        hear("glob", folder, args[1] if event.endswith("Path.glob") else f"**/{args[1]}")


def _beyond(hear: Hear, what: str) -> None:
    """Say that code reaches beyond files; what a module does while it is imported (look for fonts) is no input."""
    frame = sys._getframe(3)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (the one way to ask who calls)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")) in _IMPORTING:
            return
        frame = frame.f_back
    hear(what, "", "")


def _text(path: Any) -> str:
    """The path as text, "" for what is none; a path of a class of the person's would run their code."""
    if type(path) is bytes:
        return os.fsdecode(path)
    if type(path) is str:
        return path
    return os.fspath(path) if type(path).__module__.partition(".")[0] == "pathlib" else ""


def _writes(mode: Any, flags: Any) -> bool:
    """Whether what was in the file does not matter: it is begun anew or only added to."""
    if type(mode) is str:
        return any(letter in mode for letter in "wxa")
    return type(flags) is int and flags & (os.O_WRONLY | os.O_TRUNC) != 0


def _caller() -> str:
    """The module of the Python code that opens or lists: beneath it are only this module's own calls."""
    frame = sys._getframe(3)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (the one way to ask who calls)
    module = str(frame.f_globals.get("__name__", ""))
    return "" if module.startswith("pathlib") and frame.f_code.co_name == "iterdir" else module  # that is a listing


@contextlib.contextmanager
def heard(hear: Hear) -> Generator[None]:
    """Call `hear` for every file that Python code opens, and every folder that it lists, while the context is open.

    `hear` is called right before it happens, on the thread where it does; what it opens itself is not heard.
    """
    opens = vars(sys).get(_KEPT)
    if opens is None:
        opens = _Opens()
        setattr(sys, _KEPT, opens)
        sys.addaudithook(opens)
    opens.listeners = (*opens.listeners, hear)
    try:
        yield
    finally:  # others may have come since, and stay
        listeners = list(opens.listeners)
        listeners.remove(hear)
        opens.listeners = tuple(listeners)
