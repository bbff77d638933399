"""The registry of describers: who says what an object of which class is, and in which words.

A describer is a function that gets a value and yields lines. The first line says what the value is and how large; it
stands in lists of variables. The others are only made when somebody inspects the value. Ours are in `of_*.py`, one file
a family of libraries, loaded when the first such value is met; others add theirs with `describer`. Nothing here imports
a library of data. What a describer of others raises or gives wrong is told in a line; it never ends a tool.

The registry of others' describers lives as long as the process, as `functools.singledispatch` keeps its own: a library
registers when it is imported, before there is any notebook. Read `describer`, then `described`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from nbagent.core.shown import visible_plain
from nbagent.tools.data.kinds import bases_of, key_of, module_of
from nbagent.tools.data.ours import OURS
from nbagent.tools.secrets import mask

Made = TypeVar("Made")
Describe = Callable[[Any], "str | Iterable[str]"]
"""Says what a value is: a text, or lines one by one. The first line is the short description."""

LINES = 400
LINE = 1_000
"""Bounds of what one describer may say: lines, and characters of a line."""


@dataclass(frozen=True, slots=True)
class Describer:
    """Describes values of one class and of those made from it. `name` is how it was registered.

    `column` gets a value and the name of one of its columns. `foreign` ones are not ours: what they give is checked.
    """

    name: str
    describe: Describe
    column: Callable[[Any, str], str | Iterable[str]] | None = None
    foreign: bool = False


class _Others:
    """Describers of other people's, by the name of the class."""

    def __init__(self) -> None:
        self.by_name: dict[str, Describer] = {}

    def find(self, cls: type) -> Describer | None:
        """Return the describer of exactly this class: by where it is defined, or by where it can be imported from."""
        qualified = type.__getattribute__(cls, "__qualname__")
        if (found := self.by_name.get(f"{module_of(cls)}.{qualified}")) is not None:
            return found
        for name, one in self.by_name.items():
            module, _, last = name.rpartition(".")
            if last == qualified and module in sys.modules and vars(sys.modules[module]).get(last) is cls:
                return one
        return None


_OTHERS = _Others()

Decorated = TypeVar("Decorated", bound=Describe)


def describer(
    name: str | type, *, column: Callable[[Any, str], str | Iterable[str]] | None = None
) -> Callable[[Decorated], Decorated]:
    """Say how the agent sees objects of a class: `@nbagent.describer("package.module.Class")` above a function.

    A class of your own notebook can be given itself: `@nbagent.describer(Graph)`.

    The function gets an object of that class, or of one derived from it, and returns a text, or yields lines. The first
    line stands in the list of variables and should say what it is and how large; the others are told when the agent
    inspects the variable. A generator is asked for no more lines than are needed. It is called often and in the middle
    of work: look only at what is stored (a few milliseconds), compute nothing, change nothing, print nothing. The class
    need not be imported; `package.Class` works too where it is imported from there. `column` gets an object and the
    name of a column, and says more of that. One for the same name replaces the former. What the function raises is told
    in a line, with the plain description below. Raises ValueError for a name without a dot.
    """
    if isinstance(name, type):
        name = f"{name.__module__}.{name.__qualname__}"
    if "." not in name.strip("."):
        msg = f"describer({name!r}): give the whole name of a class, as package.module.Class, or the class itself"
        raise ValueError(msg)

    def register(function: Decorated) -> Decorated:
        _OTHERS.by_name[name] = Describer(name, function, column, foreign=True)
        return function

    return register


def forget(name: str) -> None:
    """Take away the describer that was registered under this name, if there is one."""
    _OTHERS.by_name.pop(name, None)


def find_describer(cls: type) -> Describer | None:
    """Return the describer of the nearest class that `cls` is made from; other people's come before ours."""
    for base in bases_of(cls):
        if (other := _OTHERS.find(base)) is not None:
            return other
        if (own := _own(base)) is not None:
            return own
    return _of_parts(cls)


def find_ours(cls: type) -> Describer | None:
    """Return what `find_describer` does as if nobody had added any."""
    return next((own for base in bases_of(cls) if (own := _own(base)) is not None), None) or _of_parts(cls)


def _own(base: type) -> Describer | None:
    place = OURS.get(key := key_of(base))
    return None if place is None else Describer(key, _load(place))


def _of_parts(cls: type) -> Describer | None:
    """Return the describer of a data class or a named tuple; None for other classes."""
    bases = bases_of(cls)
    for base in bases:
        own = type.__getattribute__(base, "__dict__")
        if "__dataclass_fields__" in own:
            return Describer(key_of(cls), _load("of_python:record"))
        if "_fields" in own and tuple in bases and type(own["_fields"]) is tuple:
            return Describer(key_of(cls), _load("of_python:named_tuple"))
    return None


def _load(place: str) -> Describe:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(f"nbagent.tools.data.{module}"), function)


def attempt(work: Callable[[], Made]) -> Made | BaseException:
    """Return what `work` does, or what it raised: objects of a person's session may raise anything."""
    try:
        return work()
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  (a hostile __repr__ raises SystemExit or KeyboardInterrupt too)
        return error


class _Unheard:
    """Stands for a stream: what the thread that made it writes is dropped, what others write goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        """Drop the text, or hand it on."""
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _unheard(work: Callable[[], Made]) -> Made:
    """Return what `work` does; what it prints reaches no cell of the person's."""
    with contextlib.redirect_stdout(_Unheard(sys.stdout)), contextlib.redirect_stderr(_Unheard(sys.stderr)):
        return work()


def _given(describer: Describer, value: Any) -> Iterator[Any]:
    """Yield what a describer of others gives, while nobody hears what it prints."""
    given: Any = _unheard(lambda: describer.describe(value))
    if type(given) is str:
        yield from given.splitlines()
        return
    lines = _unheard(lambda: iter(given))
    end = object()
    while (line := _unheard(lambda: next(lines, end))) is not end:
        yield line


def lines_of(describer: Describer, value: Any) -> Iterator[str]:
    """Yield what a describer says, line by line and bounded, hidden characters shown as codes; raises what it raises, TypeError for what is no text."""
    given: Any = _given(describer, value) if describer.foreign else describer.describe(value)
    if type(given) is str:
        given = given.splitlines()
    for line in itertools.islice(iter(given), LINES):
        if type(line) is not str:
            msg = f"gave {type(line).__name__} where a line of text was expected"
            raise TypeError(msg)
        flat = " ".join(line.splitlines()) if describer.foreign else line
        yield visible_plain((mask(flat) if describer.foreign else flat)[:LINE], spaces=False)
