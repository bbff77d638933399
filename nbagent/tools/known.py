"""What is known of a value that code would make, without making it: which of the person's objects it is, its name, its text.

Values of the namespace are looked at by type only: no attribute of theirs is read and none of their code runs. It must
not know of syntax or of what functions do. Read `Value`, then `of_namespace`.
"""

from __future__ import annotations

import ast
import linecache
import pathlib
import types
from dataclasses import dataclass, replace
from typing import cast

from nbagent.tools.cellcode import parse
from nbagent.tools.dotted import of_value

GAP = "…"
"""Stands in a known text for a part that is not known."""
PATH = "pathlib.Path()"

_FAMILIES = {name: name for name in ("pandas", "polars", "numpy", "matplotlib", "pyspark", "xarray")} | {
    "geopandas": "pandas",
    "modin": "pandas",
}
_SHARED = frozenset({"pandas", "polars", "numpy", "matplotlib"})
_PLAIN = frozenset(
    {"int", "float", "complex", "bool", "str", "bytes", "tuple", "frozenset", "NoneType", "range", "function", "module"}
)
_PLAIN_MODULES = frozenset({"datetime", "decimal", "fractions", "uuid", "re", "ipaddress", "enum"})
_PLAIN_OF_PANDAS = ("Timestamp", "Timedelta", "Period", "Index", "NAType")
CONTAINERS = frozenset({"list", "dict", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter"})
_LONG_CELL = 3_000

Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value.

    `roots`: the person's names that it is, or is a part of; `holds`: those that its elements are. `meant`: its dotted
    library name, or that of the class or function which made it, with "()". `family`: what kind of thing it is ("pandas",
    "plain" for what can't change, "path" …, "" unknown). `text`: its text, a file's name for a path, with `GAP` for parts
    that are not known. `items`: those of a list that is written out. `body`: the function or class of a cell that it is;
    `of`: the class of an instance, which is number `number`; `given`: arguments that are set already; `owner` and `name`:
    of a method, its object.
    """

    roots: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()
    meant: str = ""
    family: str = ""
    text: str | None = None
    items: tuple[Value, ...] = ()
    body: Body | None = None
    of: ast.ClassDef | None = None
    given: tuple[Value, ...] = ()
    owner: Value | None = None
    name: str = ""
    number: int = 0

    def part(self, meant: str = "") -> Value:
        """Return what is known of a part of this value: an attribute, an item, an element."""
        family = self.family if self.family in _SHARED else ""
        return Value(self.roots | self.holds, self.holds, meant, family)

    def element(self) -> Value:
        """Return what is known of what a loop over this value gives."""
        if self.family == "paths":
            return Value(meant=PATH, family="path", text=self.text)
        if self.family == "names":
            return Value(text=self.text)
        return merged(self.items) if self.items else self.part()

    def attribute(self, name: str) -> Value:
        """Return what is known of an attribute, a method bound to this value among them."""
        if name == "__dict__":
            return self
        meant = (
            plain_name(f"{self.meant}.{name}")
            if self.meant not in {"", "str", "None"} and len(self.meant) < 200
            else ""
        )
        if self.family == "plain" and meant:  # of a module or a class
            roots = frozenset(f"{root}.{name}" for root in self.roots if root.count(".") < 2)
            return Value(roots, meant=meant, family="plain", owner=self, name=name)
        return replace(self.part(meant), owner=replace(self, owner=None), name=name)

    def spelled(self) -> str | None:
        """Return the text if some of it is known."""
        return self.text if self.text is not None and self.text.strip(GAP + "/. ") else None

    def touches(self) -> frozenset[str]:
        """Return the person's names that this value or its elements are."""
        return self.roots | self.holds


UNKNOWN = Value()
_SAME = {"posix": "os", "nt": "os", "__builtins__": "builtins", "_io": "io"}


def plain_name(name: str) -> str:
    """Return a dotted name with the module that people know in place of the one that implements it."""
    first, dot, rest = name.partition(".")
    first = _SAME.get(first, first)
    return rest if first == "builtins" and dot else f"{first}{dot}{rest}"


def merged(values: tuple[Value, ...]) -> Value:
    """Return what is known of a value that is one of `values`."""
    first = values[0]
    if all(value is first for value in values):
        return first
    return replace(
        first,
        roots=frozenset[str]().union(*(value.roots for value in values)),
        holds=frozenset[str]().union(*(value.holds for value in values)),
        meant=first.meant if {value.meant for value in values} == {first.meant} else "",
        family=first.family if {value.family for value in values} == {first.family} else "",
        text=first.text if {value.text for value in values} == {first.text} else None,
        items=(),
    )


def holding(values: tuple[Value, ...]) -> frozenset[str]:
    """Return the person's names that a container of `values` holds."""
    return frozenset[str]().union(*(value.touches() for value in values))


def joined(*parts: str | None) -> str:
    """Return texts in a row, a `GAP` for each that is not known."""
    text = "".join(GAP if part is None else part for part in parts)
    while GAP + GAP in text:
        text = text.replace(GAP + GAP, GAP)
    return text


def joined_path(*parts: str | None) -> str | None:
    """Return path segments joined as `os.path.join` would."""
    whole: str | None = None
    for part in (GAP if part is None else part for part in parts):
        whole = (
            part if whole in {None, "."} or part.startswith("/") else f"{whole.rstrip('/')}/{part}" if whole else part
        )
    return whole


def of_namespace(name: str, value: object) -> Value:
    """Return what is known of the person's variable `name`."""
    kind, roots = type(value), frozenset({name})
    if kind is types.FunctionType:  # isinstance would ask the object for its __class__
        function = cast("types.FunctionType", value)
        return Value(roots, meant=of_value(function), family="plain", body=_body(function))
    if kind in {types.ModuleType, types.BuiltinFunctionType}:
        return Value(roots, meant=of_value(value), family="plain")
    if kind is str:
        text = str(value)
        return Value(roots, meant="str", family="plain", text=text if len(text) <= 1000 else None)
    if kind is int:
        return Value(roots, family="plain", text=str(value) if -(10**9) < cast("int", value) < 10**9 else None)
    if kind in {pathlib.PosixPath, pathlib.WindowsPath}:
        return Value(roots, meant=PATH, family="path", text=str(value))
    if issubclass(kind, type):
        return Value(roots, meant=_name_of(value) if kind is type else "", family="plain")
    return Value(roots, meant=f"{_name_of(kind)}()", family=_family(kind))


def _body(function: types.FunctionType) -> Body | None:
    """Return the definition of a function of another cell, as IPython keeps its source for tracebacks."""
    code = function.__code__
    entry = linecache.cache.get(code.co_filename)
    if entry is None or len(entry) < 3 or len(entry[2]) > _LONG_CELL or function.__module__ != "__main__":
        return None
    tree = parse("".join(entry[2]))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _family(kind: type) -> str:
    for base in type.__getattribute__(kind, "__mro__"):
        module, name = type.__getattribute__(base, "__module__"), type.__getattribute__(base, "__name__")
        top = module.partition(".")[0] if type(module) is str else ""
        if (top == "builtins" and name in _PLAIN) or top in _PLAIN_MODULES:
            return "plain"
        if top in {"builtins", "collections"} and name in CONTAINERS:
            return name
        if top == "_io":
            return "file"
        if top == "numpy" and name in {"generic", "dtype", "ufunc"}:
            return "plain"
        if top == "pandas" and any(part in name for part in _PLAIN_OF_PANDAS):
            return "plain"
        if top in _FAMILIES:
            return _FAMILIES[top]
    return ""


def _name_of(kind: object) -> str:
    module = type.__getattribute__(kind, "__module__")  # type: ignore[arg-type]  # a class: its metaclass is not asked
    name = type.__getattribute__(kind, "__qualname__")  # type: ignore[arg-type]  # likewise
    return f"{module}.{name}" if type(module) is str and module != "builtins" else str(name)
