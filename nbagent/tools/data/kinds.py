"""Tells what a value is by the names of its class and their bases, without asking the value anything.

A key is `library:Class` (`pandas:DataFrame`): libraries move their classes between modules from version to version, but
not to another library. This module knows no library. Read `find`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

Found = TypeVar("Found")

FRAMES = frozenset({"pandas.core.frame.DataFrame", "pandas.DataFrame"})
SERIES = frozenset({"pandas.core.series.Series", "pandas.Series"})

_LAZY = ("polars.lazyframe.", "dask.", "dask_expr.", "pyspark.", "ibis.", "modin.", "vaex.", "duckdb.", "datasets.")


def bases_of(cls: type) -> tuple[type, ...]:
    """Return a class and its bases in the order in which Python looks things up, whatever its metaclass says."""
    return type.__getattribute__(cls, "__mro__")


def module_of(cls: type) -> str:
    """Return the name of the module that a class says it is from."""
    return str(type.__getattribute__(cls, "__module__"))


def class_name(cls: type) -> str:
    """Return a class's qualified name, without `builtins.` and `__main__.`."""
    module, name = module_of(cls), type.__getattribute__(cls, "__qualname__")
    return f"{name}" if module in {"builtins", "__main__"} else f"{module}.{name}"


def type_name(value: object) -> str:
    """Return the qualified name of a value's class: `pandas.DataFrame`, `list`, `mymodule.Thing`."""
    return class_name(type(value))


def names_of(cls: type) -> Iterable[str]:
    """Qualified names of a class and its bases, with `builtins.` before those of Python itself."""
    for base in bases_of(cls):
        yield f"{module_of(base)}.{type.__getattribute__(base, '__qualname__')}"


def library(cls: type) -> str:
    """Return the top package of the module that a class is from: `pandas`, `builtins`, `__main__`."""
    return module_of(cls).partition(".")[0]


def key_of(cls: type) -> str:
    """Return the key of exactly this class: `pandas:DataFrame`."""
    return f"{library(cls)}:{type.__getattribute__(cls, '__qualname__')}"


def keys_of(cls: type) -> Iterator[str]:
    """Yield the keys of a class and its bases, the class first."""
    return map(key_of, bases_of(cls))


def find(value: object, table: Mapping[str, Found]) -> Found | None:
    """Return the table's entry for the nearest class that the value is made from; None where there is none."""
    return next((table[key] for key in keys_of(type(value)) if key in table), None)


def find_own(value: object, table: Mapping[str, Found]) -> Found | None:
    """Return what `find` does, if the value's class itself is of the library that the entry is for.

    A subclass of somebody else may have overridden anything: to ask it would run their code.
    """
    own = library(type(value))
    return next((table[k] for k in keys_of(type(value)) if k in table and k.partition(":")[0] == own), None)


def is_a(value: object, *keys: str) -> bool:
    """Whether one of the keys is that of the value's class or of a base of it."""
    return not set(keys).isdisjoint(keys_of(type(value)))


def is_lazy(cls: type) -> bool:
    """Whether a value of this class, or of one that it is made from, stands for data that is not computed yet."""
    return any(name.startswith(_LAZY) for name in names_of(cls))


def held(value: object) -> Any:
    """Return what an instance holds, as a dict of names; {} where it holds nothing, or says so by a property of its own.

    No code of it is run.
    """
    slots = [
        own["__dict__"]
        for own in (type.__getattribute__(c, "__dict__") for c in bases_of(type(value)))
        if "__dict__" in own
    ]
    if not slots or type(slots[0]) is not types.GetSetDescriptorType:
        return {}
    inside: Any = slots[0].__get__(value)
    return inside if type(inside) is dict else {}
