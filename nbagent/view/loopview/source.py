"""Which lines of the loop an event comes from: read from nbagent's own files as they are, by their syntax trees.

Nothing is known here by line numbers: an event's line is that which makes it (`run.event(RequestSent, …)`), and the line of the loop
that it passes through is the `yield` in `core.loop.run` of the phase at hand. Must not know how it is shown. Read `places`.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from nbagent.core.calls import settle
from nbagent.core.event import State
from nbagent.core.events import AgentReported, CallEnded, RunEnded, RunStarted, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbagent.core.events import Event

_WHERE: dict[State, tuple[str, ...]] = {
    State.THINK: ("think", "served", "summing", "loop", "openings", "lasting", "hooking", "consulting"),
    State.ACT: ("calls", "dispatch", "asking", "subagents", "hooking", "consulting", "lasting", "loop"),
    State.OBSERVE: ("loop", "hooking", "lasting"),
    State.DONE: ("run", "closing", "loop", "lasting", "hooking"),
}
"""By state, the modules of `nbagent.core` that make its events, the likeliest first."""

_AROUND = 7
"""Lines shown above and below, of a function that is longer than a screen."""


@dataclass(frozen=True, slots=True)
class Place:
    """Some lines of a file: `lines` begin with number `first`, `lit` are the numbers of those that are executing now."""

    file: str
    function: str
    first: int
    lines: tuple[str, ...]
    lit: frozenset[int]

    @property
    def text(self) -> str:
        """The lines that are lit."""
        return "\n".join(line for number, line in enumerate(self.lines, self.first) if number in self.lit)


class Sources:
    """The files of `nbagent.core`, each read once."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[str, list[str], ast.Module]] = {}
        self._found: dict[tuple[str, State, bool, bool], tuple[Place, ...]] = {}

    def places(self, event: Event) -> tuple[Place, ...]:
        """Return where `event` comes from: the line that makes it, then the line of `core.loop.run` that passes it on.

        () for an event that the loop does not make: what wraps it has added it.
        """
        key = (type(event).__name__, event.state, event.turn > 0, _ran(event))
        if key not in self._found:
            made = self._made(event)
            passed = self._passed(event) if made is not None else None
            self._found[key] = tuple(place for place in (made, passed) if place is not None)
        return self._found[key]

    def _module(self, name: str) -> tuple[str, list[str], ast.Module]:
        if name not in self._read:
            try:
                text = inspect.getsource(import_module(f"nbagent.core.{name}"))
            except (OSError, TypeError, ImportError):  # an nbagent without its sources: nothing is shown of them
                text = ""
            self._read[name] = (f"nbagent/core/{name}.py", text.splitlines(), ast.parse(text))
        return self._read[name]

    def _made(self, event: Event) -> Place | None:
        """Return the line that makes an event of this kind in this state."""
        kind = type(event).__name__
        if isinstance(event, RunStarted | RunEnded):
            names = ("run",)
        elif isinstance(event, AgentReported):
            names = ("subagents",)
        else:
            rest = dict.fromkeys(name for state in State for name in _WHERE[state])
            names = tuple(dict.fromkeys((*_WHERE.get(event.state, ()), *rest)))
        for name in names:
            file, lines, tree = self._module(name)
            for function, node in _in_functions(tree):
                if _ran(event) and function.name == settle.__name__:
                    continue  # it answers only calls that did not run
                if isinstance(node, ast.Call) and _makes(node, kind):
                    return _place(file, lines, function, node)
        return None

    def _passed(self, event: Event) -> Place | None:
        """Return the `yield` of the loop through which the event reaches its consumer."""
        file, lines, tree = self._module("loop")
        function = next((f for f in ast.walk(tree) if isinstance(f, ast.AsyncFunctionDef) and f.name == "run"), None)
        if function is None:
            return None
        yields = [node for node in ast.walk(function) if isinstance(node, ast.Yield)]
        yields.sort(key=lambda node: node.lineno)
        turning = next((node for node in ast.walk(function) if isinstance(node, ast.While)), None)
        if not yields or turning is None:
            return None
        end = turning.end_lineno or turning.lineno
        inside = [node for node in yields if turning.lineno <= node.lineno <= end]
        before = [node for node in yields if node.lineno < turning.lineno]
        after = [node for node in yields if node.lineno > end]
        if isinstance(event, RunEnded):
            chosen = after[-1:]
        elif event.turn == 0:
            chosen = before[:1]
        else:
            chosen = after[:1] if event.state is State.DONE else inside[:1]
        return _place(file, lines, function, chosen[0]) if chosen else None


def places(event: Event | None, sources: Sources | None = None) -> tuple[Place, ...]:
    """Return the lines of nbagent's own loop at which it stands when it has yielded `event`; () where there is none.

    Give the same `sources` for many events: files are then read once.
    """
    return () if event is None else (sources or Sources()).places(event)


def _in_functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.AST]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                yield function, node


def _ran(event: Event) -> bool:
    """Whether `event` is the end of a call that ran, and was not refused or invalid."""
    return isinstance(event, CallEnded) and (event.status is Status.OK or event.seconds > 0)


def _makes(node: ast.Call, kind: str) -> bool:
    """Whether a call makes an event of the class `kind`, as in `run.event(Noted, …)`."""
    named = isinstance(node.func, ast.Attribute) and node.func.attr == "event"
    return named and bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == kind


def _place(file: str, lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.expr) -> Place:
    first, last = function.lineno, function.end_lineno or function.lineno
    lit_last = node.end_lineno or node.lineno
    if last - first > 3 * _AROUND:
        first, last = max(first, node.lineno - _AROUND), min(last, lit_last + _AROUND)
    lit = frozenset(range(node.lineno, lit_last + 1))
    return Place(file, function.name, first, tuple(lines[first - 1 : last]), lit)
