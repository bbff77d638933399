"""Finds out which library function a piece of syntax names, through aliases, getattr, __import__ and sys.modules.

`import subprocess as sp; sp.run` and `getattr(__import__("subprocess"), "run")` are both "subprocess.run". Values of the
person's namespace are looked at by their type only; nothing is called. It must not know which names matter. Read `Dotted`.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Mapping

_DEPTH = 30
_SAME = {"posix": "os", "nt": "os", "__builtins__": "builtins", "_io": "io", "genericpath": "os.path"}
_IMPORTERS = frozenset({"__import__", "importlib.import_module", "importlib.__import__"})
_CERTAIN = frozenset(
    {"os", "sys", "subprocess", "shutil", "importlib", "builtins", "ctypes", "pty", "runpy", "__builtins__"}
)


class Dotted:
    """The names of one piece of code: what each means, given its imports, assignments and the person's namespace.

    `assumed`: names that are taken for the module of that name where the code neither imports nor assigns them;
    `doubtful`: the same, but what they mean then begins with a question mark.
    """

    def __init__(
        self,
        tree: ast.AST,
        assumed: frozenset[str],
        doubtful: frozenset[str],
        namespace: Mapping[str, object] | None,
    ) -> None:
        self._assumed = assumed
        self._doubtful = doubtful
        self._namespace = namespace
        self._meant: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._bound: set[str] = set()
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._note_import(node)
            self._note_bound(node)
        for _ in range(3):  # a name may be given on: f = os.system; g = f
            for node in nodes:
                self._note_assignment(node)

    def of(self, node: ast.AST, depth: int = _DEPTH) -> str:
        """Return the dotted name that an expression stands for, or ""."""
        if depth <= 0:
            return ""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.of(node.value, depth - 1)
            if node.attr == "__dict__":
                return owner
            return _plain(f"{owner}.{node.attr}") if owner else ""
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Subscript):
            return self._item(node, depth)
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value, depth - 1)
        return ""

    def text(self, node: ast.AST, depth: int = _DEPTH) -> str | None:
        """Return the text that an expression starts with as far as it is literally there, or None."""
        if depth <= 0:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return self.text(node.values[0], depth - 1) if node.values else ""
        if isinstance(node, ast.FormattedValue):
            return self.text(node.value, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left = self.text(node.left, depth - 1)
            return left if left is None else left + (self.text(node.right, depth - 1) or "")
        if isinstance(node, ast.Name):
            value = self._namespace.get(node.id) if self._namespace and node.id not in self._bound else None
            return self._texts.get(node.id) or (value if type(value) is str else None)
        return None

    def is_literal(self, node: ast.AST, depth: int = _DEPTH) -> bool:
        """Whether an expression is a text that is there as a whole."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth > 0:
            return self.is_literal(node.left, depth - 1) and self.is_literal(node.right, depth - 1)
        return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)

    def _name(self, name: str) -> str:
        if name in self._meant:
            return self._meant[name]
        if name in self._bound and name not in _CERTAIN:
            return ""
        if self._namespace is not None and name in self._namespace and name != "get_ipython":
            return of_value(self._namespace[name])
        if name in self._doubtful:
            return f"?{name}"
        return _SAME.get(name, name) if name in self._assumed or name in _CERTAIN else _builtin(name)

    def _call(self, node: ast.Call, depth: int) -> str:
        called = self.of(node.func, depth - 1)
        first = self.text(node.args[0], depth - 1) if node.args else None
        if called in _IMPORTERS and first is not None:
            return _plain(first)
        if called == "getattr" and len(node.args) >= 2:
            name = self.text(node.args[1], depth - 1)
            owner = self.of(node.args[0], depth - 1)
            return _plain(f"{owner}.{name}") if name is not None and owner else ""
        if called == "vars" and node.args:
            return self.of(node.args[0], depth - 1)
        if called.endswith(".__getattribute__") and first is not None:
            return _plain(f"{called.removesuffix('.__getattribute__')}.{first}")
        return f"{called}()" if called else ""

    def _item(self, node: ast.Subscript, depth: int) -> str:
        key = self.text(node.slice, depth - 1)
        if key is None:
            return ""
        owner = node.value
        if self.of(owner, depth - 1) == "sys.modules" or self.of(owner, depth - 1) in {"globals()", "locals()"}:
            return _plain(key)
        held = (isinstance(owner, ast.Attribute) and owner.attr == "__dict__") or (
            isinstance(owner, ast.Call) and self.of(owner.func, depth - 1) == "vars"
        )
        of = self.of(owner, depth - 1)
        return _plain(f"{of}.{key}") if held and of else ""

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._meant[alias.asname or alias.name.partition(".")[0]] = _plain(
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._meant[alias.asname or alias.name] = _plain(f"{node.module}.{alias.name}")

    def _note_bound(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._bound.add(node.id)
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._bound.add(node.name)

    def _note_assignment(self, node: ast.AST) -> None:
        for target, value in _assigned(node):
            meant = self.of(value)
            if meant and (meant == "get_ipython()" or not meant.endswith("()")):
                self._meant.setdefault(target, meant)
            text = self.text(value)
            if text:
                self._texts.setdefault(target, text)


def _assigned(node: ast.AST) -> Iterable[tuple[str, ast.expr]]:
    """Pairs of name and value of an assignment; `a, b = x, y` by place."""
    if isinstance(node, ast.NamedExpr | ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
                for one, value in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(one, ast.Name):
                        yield one.id, value


def _builtin(name: str) -> str:
    return name if name in {"eval", "exec", "getattr", "vars", "globals", "locals", "__import__", "get_ipython"} else ""


def _plain(name: str) -> str:
    """Return a dotted name with the module that people know in place of the one that implements it."""
    first, dot, rest = name.partition(".")
    first = _SAME.get(first, first)
    return rest if first == "builtins" and dot else f"{first}{dot}{rest}"


def of_value(value: object) -> str:
    """Return the dotted name of a module or a library function in the namespace, or "" for any other object."""
    if type(value) is types.ModuleType:
        name = types.ModuleType.__getattribute__(value, "__dict__").get("__name__")
        return _plain(name) if type(name) is str else ""
    if type(value) is types.FunctionType or type(value) is types.BuiltinFunctionType:
        module, name = value.__module__, value.__name__
        return _plain(f"{module}.{name}") if type(module) is str and module != "__main__" else ""
    return ""
