"""What is known of a value that code would make, without making it: which of the person's objects it is, its name, its text.

Values of the namespace are looked at by type only: no attribute of theirs is read and none of their code runs. It must
not know of syntax or of what functions do. Read `Value`, then `of_namespace`.
"""

from __future__ import annotations

import ast
import pathlib
import types
from dataclasses import dataclass, replace

from nbagent.tools.dotted import of_value

GAP = "…"
"""Stands in a known text for a part that is not known."""

_FAMILIES = {
    **dict.fromkeys(("pandas", "polars", "numpy", "matplotlib", "pyspark", "xarray"), ""),
    **dict.fromkeys(("geopandas", "modin"), "pandas"),
}
_PLAIN = frozenset(
    {"int", "float", "complex", "bool", "str", "bytes", "tuple", "frozenset", "NoneType", "range", "function", "module"}
)
_PLAIN_MODULES = frozenset({"datetime", "decimal", "fractions", "uuid", "re", "ipaddress", "enum"})
_CONTAINERS = frozenset({"list", "dict", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter"})

Body = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value.

    `roots`: the person's names that it is, or is a part of; `holds`: those that its elements are. `meant`: its dotted
    library name, or that of the class or function which made it, with "()". `family`: what kind of thing it is ("pandas",
    "plain" for what can't change, "path" …, "" unknown). `text`: its text, a file's name for a path, with `GAP` for parts
    that are not known. `items`: those of a list that is written out. `body`: the function or class that it is;
    `of` is the class of an instance; `given`: arguments that are set already.
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

    def part(self, meant: str = "") -> Value:
        """Return what is known of a part of this value: an attribute, an item, an element."""
        family = self.family if self.family in {"pandas", "polars", "numpy", "matplotlib"} else ""
        return Value(roots=self.roots | self.holds, holds=self.holds, meant=meant, family=family)

    def element(self) -> Value:
        """Return what is known of what a loop over this value gives."""
        if self.family in {"paths", "names"}:
            return Value(
                family="path" if self.family == "paths" else "",
                meant=PATH if self.family == "paths" else "",
                text=self.text,
            )
        if self.items:
            return merged(self.items)
        return self.part()

    def spelled(self) -> str | None:
        """Return the text if some of it is known."""
        return self.text if self.text is not None and self.text.strip(GAP + "/. ") else None


PATH = "pathlib.Path()"
UNKNOWN = Value()


def merged(values: tuple[Value, ...]) -> Value:
    """Return what is known of a value that is one of `values`."""
    first = values[0]
    same = {value.meant for value in values} == {first.meant}
    return replace(
        first,
        roots=frozenset[str]().union(*(value.roots for value in values)),
        holds=frozenset[str]().union(*(value.holds for value in values)),
        meant=first.meant if same else "",
        family=first.family if {value.family for value in values} == {first.family} else "",
        text=first.text if {value.text for value in values} == {first.text} else None,
        items=first.items if {value.items for value in values} == {first.items} else (),
    )


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
        whole = part if whole is None or part.startswith("/") else f"{whole.rstrip('/')}/{part}" if whole else part
    return whole


def of_namespace(name: str, value: object) -> Value:
    """Return what is known of the person's variable `name`."""
    kind = type(value)
    if kind in {types.ModuleType, types.FunctionType, types.BuiltinFunctionType}:
        return Value(meant=of_value(value), family="plain", roots=frozenset({name}))
    roots = frozenset({name})
    if kind is str:
        text = str(value)
        return Value(roots, family="plain", text=text if len(text) <= 1000 else None)
    if kind in {pathlib.PosixPath, pathlib.WindowsPath}:
        return Value(roots, meant=PATH, family="path", text=str(value))
    if issubclass(kind, type):
        return Value(roots, meant=_name_of(value) if type(value) is type else "", family="plain")
    return Value(roots, meant=f"{_name_of(kind)}()", family=_family(kind))


def _family(kind: type) -> str:
    for base in type.__getattribute__(kind, "__mro__"):
        module, name = type.__getattribute__(base, "__module__"), type.__getattribute__(base, "__name__")
        top = module.partition(".")[0] if type(module) is str else ""
        if (top == "builtins" and name in _PLAIN) or top in _PLAIN_MODULES:
            return "plain"
        if top in {"builtins", "collections"} and name in _CONTAINERS:
            return name
        if top == "_io":
            return "file"
        if top == "numpy" and name in {"generic", "dtype", "ufunc"}:
            return "plain"
        if top == "pandas" and any(part in name for part in ("Timestamp", "Timedelta", "Period", "Index", "NAType")):
            return "plain"
        if top in _FAMILIES:
            return _FAMILIES[top] or top
    return ""


def _name_of(kind: object) -> str:
    module = type.__getattribute__(kind, "__module__")  # type: ignore[arg-type]  # a class: its metaclass is not asked
    name = type.__getattribute__(kind, "__qualname__")  # type: ignore[arg-type]  # likewise
    return f"{module}.{name}" if type(module) is str and module != "builtins" else str(name)
