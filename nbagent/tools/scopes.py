"""The names of a cell while it is gone through: scopes as Python has them, and what names mean after branches.

Names of the notebook itself are looked up in the person's namespace, and it is noted which of them are rebound or
deleted. It must not know of syntax. Read `Names.bind` and `Names.branches`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence

from nbagent.tools.commands import short
from nbagent.tools.known import GAP, UNKNOWN, Value, merged, of_namespace

_ASSUMED = {
    **{name: name for name in ("os", "sys", "shutil", "subprocess", "json", "pickle", "joblib", "sqlite3", "pathlib",
                               "httpx", "glob", "tempfile", "zipfile", "random", "urllib", "importlib")},
    "requests": "?requests", "socket": "?socket",  # good names for variables too
    "pd": "pandas", "np": "numpy", "pl": "polars", "plt": "matplotlib.pyplot", "sns": "seaborn", "mpl": "matplotlib",
    "Path": "pathlib.Path", "display": "IPython.display.display", "get_ipython": "get_ipython", "exit": "exit",
    "quit": "quit", "pq": "pyarrow.parquet", "pa": "pyarrow", "px": "plotly.express", "go": "plotly.graph_objects",
}  # fmt: skip
"""What a name is taken for that nothing in the cell or the namespace explains."""
_STARS = frozenset({"os", "shutil", "subprocess", "pathlib", "numpy"})
_SAME = {"posix": "os", "nt": "os", "__builtins__": "builtins", "builtins": "builtins", "_io": "io"}


class Scope:
    """Names of one function, class or comprehension; the outermost is the notebook's own namespace."""

    def __init__(self, outer: Scope | None = None, *, passing: bool = False) -> None:
        self.names: dict[str, Value] = {}
        self.outer = outer
        self.passing = passing
        """Of a comprehension: := binds outside of it."""
        self.elsewhere: dict[str, Scope] = {}
        """Names that are declared global or nonlocal."""


_Change = dict[tuple[int, str], tuple[Scope, Value | None]]


class Names:
    """What names mean at the point that is looked at. `done` holds what happens to names of the person, in words."""

    def __init__(self, namespace: Mapping[str, object]) -> None:
        self.top = Scope()
        self.scope = self.top
        self.stars: list[str] = []
        self.done: dict[str, str] = {}
        self._namespace = namespace
        self._known: dict[str, Value] = {}
        self._journal: list[_Change] = []

    def get(self, name: str) -> Value:
        """Return what is known of a name's value."""
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.elsewhere.get(name, scope.outer)
        if name in self._namespace and name != "get_ipython":
            return self._of_person(name)
        if module := next((star for star in self.stars if star in _STARS), None):
            return Value(meant=f"{module}.{name}", family="plain")
        if name in _SAME:
            return Value(meant=_SAME[name], family="plain")
        if hasattr(builtins, name) and name not in _ASSUMED:
            return Value(meant=name, family="plain")
        if name in _ASSUMED:
            return Value(meant=_ASSUMED[name], roots=frozenset({name}), family="plain")
        return Value(roots=frozenset({name}))

    def bind(self, name: str, value: Value, scope: Scope | None = None) -> None:
        """Let a name mean `value` from here on, in the scope where Python would bind it."""
        scope = scope or self.scope
        while scope.passing and scope.outer is not None and name not in scope.names:
            scope = scope.outer
        scope = scope.elsewhere.get(name, scope)
        if scope is self.top and name != "_" and name in self._namespace and not self._is_same(name, value):
            self.done[name] = f"rebinds `{short(name)}`"
        self.put(scope, name, value)

    def unbind(self, name: str, scope: Scope) -> None:
        """Take a name away."""
        scope = scope.elsewhere.get(name, scope)
        if scope is self.top and name in self._namespace:
            self.done[name] = f"deletes the variable `{short(name)}`"
        elif scope is self.top and name == GAP:
            self.done[name] = "deletes variables"
        self.put(scope, name, UNKNOWN)

    def declare(self, names: Sequence[str], scope: Scope | None) -> None:
        """Let names mean those of another scope, as `global` and `nonlocal` do."""
        if scope is not None and scope is not self.scope:
            self.scope.elsewhere.update(dict.fromkeys(names, scope))

    def put(self, scope: Scope, name: str, value: Value) -> None:
        """Set a name in one scope, so that a branch can be undone."""
        if self._journal:
            self._journal[-1].setdefault((id(scope), name), (scope, scope.names.get(name)))
        scope.names[name] = value

    def branches(self, blocks: Sequence[Callable[[], None]]) -> None:
        """Go through blocks of which one is executed, each from the same start; names then mean what any of them left."""
        ends: list[dict[tuple[int, str], Value]] = []
        before: _Change = {}
        for block in blocks:
            self._journal.append({})
            block()
            changed = self._journal.pop()
            ends.append({key: scope.names.get(key[1], UNKNOWN) for key, (scope, _) in changed.items()})
            for key, (scope, value) in changed.items():
                before.setdefault(key, (scope, value))
                if value is None:
                    scope.names.pop(key[1], None)
                else:
                    scope.names[key[1]] = value
        for key, (scope, value) in before.items():
            start = value if value is not None else self._from_outside(scope, key[1])
            left = [end.get(key, start) for end in ends]
            self.put(scope, key[1], merged(tuple(known for known in left if known is not None) or (UNKNOWN,)))

    def _from_outside(self, scope: Scope, name: str) -> Value | None:
        return self._of_person(name) if scope is self.top and name in self._namespace else None

    def _of_person(self, name: str) -> Value:
        if name not in self._known:
            self._known[name] = of_namespace(name, self._namespace[name])
        return self._known[name]

    def _is_same(self, name: str, value: Value) -> bool:
        """Whether an import brings what the person has under that name already: `pd` again, `Path` again."""
        if not value.meant or value.roots != frozenset({name}):
            return False
        old = self._of_person(name).meant
        ends = (old.partition(".")[0], old.rpartition(".")[2])
        return bool(old) and ends == (value.meant.partition(".")[0], value.meant.rpartition(".")[2])
