"""What fingerprints take of Python's own values: containers, functions, classes, modules, and the person's instances.

Each is read through the slots of its built-in base, so that nothing that a subclass overrides is run. Read `FEED`.
"""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nbagent.tools.data.kinds import class_name

if TYPE_CHECKING:
    from nbagent.tools.fingerprints import Digest

_PLAIN_BASES = frozenset({"__main__", "builtins", "abc", "collections", "enum", "types", "typing"})
_NOT_OF_A_CLASS = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__static_attributes__", "__firstlineno__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__",
})  # fmt: skip


def _feed_list(made: Digest, value: Any, depth: int) -> None:
    made.values(list(list.__iter__(value)), depth)


def _feed_tuple(made: Digest, value: Any, depth: int) -> None:
    made.values(tuple(tuple.__iter__(value)), depth)


def _feed_deque(made: Digest, value: Any, depth: int) -> None:
    made.values(list(collections.deque.__iter__(value)), depth)


def _feed_dict(made: Digest, value: Any, depth: int) -> None:
    feed_pairs(made, dict.items(value), dict.__len__(value), depth)


def feed_pairs(made: Digest, pairs: Iterable[tuple[Any, Any]], size: int, depth: int) -> None:
    """Take the items of a dict, or the attributes of an object, in their order."""
    made.tag(str(size))
    keys, values = [], []
    for key, item in pairs:
        keys.append(key)
        values.append(item)
    made.values(keys, depth)
    made.values(values, depth)


def _feed_set(made: Digest, value: Any, depth: int) -> None:
    made.unordered(set.__iter__(value), set.__len__(value), depth)


def _feed_frozenset(made: Digest, value: Any, depth: int) -> None:
    made.unordered(frozenset.__iter__(value), frozenset.__len__(value), depth)


def _feed_code(made: Digest, code: types.CodeType, depth: int) -> None:
    """Take what a function does, not where it stands: its file and line numbers are left out."""
    made.data(memoryview(code.co_code))
    made.values([*code.co_names, "|", *code.co_varnames, "|", *code.co_freevars], depth)
    made.tag(str(len(code.co_consts)))
    for constant in code.co_consts:
        made.feed(constant, depth - 1)


def _feed_function(made: Digest, value: types.FunctionType, depth: int) -> None:
    made.tag(value.__name__)
    _feed_code(made, value.__code__, depth)
    made.feed(value.__defaults__, depth - 1)
    made.feed(value.__kwdefaults__, depth - 1)
    for cell in value.__closure__ or ():
        try:
            made.feed(cell.cell_contents, depth - 2)
        except ValueError:  # not bound yet
            made.tag("empty")


def _feed_class(made: Digest, value: type, depth: int) -> None:
    made.tag(class_name(value))
    if type.__getattribute__(value, "__module__") != "__main__":
        return  # a library's: named by its module, whose version `import`ed modules tell
    inside: dict[str, Any] = dict(type.__getattribute__(value, "__dict__"))
    for name in sorted(inside.keys() - _NOT_OF_A_CLASS):
        made.tag(name)
        made.feed(inside[name], depth - 1)


def _feed_wrapper(made: Digest, value: Any, depth: int) -> None:
    made.feed(value.__func__, depth - 1)


def _feed_property(made: Digest, value: Any, depth: int) -> None:
    made.values([value.fget, value.fset, value.fdel], depth)


def _feed_method(made: Digest, value: types.MethodType, depth: int) -> None:
    made.feed(value.__func__, depth - 1)
    made.feed(value.__self__, depth - 1)


def _feed_partial(made: Digest, value: Any, depth: int) -> None:
    partial = functools.partial
    for name in ("func", "args", "keywords"):  # the C type's own members, whatever a subclass puts over them
        made.feed(partial.__dict__[name].__get__(value), depth - 1)


def _feed_builtin(made: Digest, value: Any, _: int) -> None:
    made.tag(f"{value.__module__}.{value.__qualname__}")


def _feed_module(made: Digest, value: types.ModuleType, _: int) -> None:
    inside = types.ModuleType.__getattribute__(value, "__dict__")
    for key in ("__name__", "__version__"):
        made.tag(inside[key] if type(inside.get(key)) is str else "")
    made.module_source(inside.get("__file__"))


def _feed_bytes(made: Digest, value: Any, _: int) -> None:
    made.data(memoryview(value).cast("B") if memoryview(value).c_contiguous else memoryview(bytes(value)))


def _feed_member(made: Digest, value: Any, _: int) -> None:
    made.tag(value.__name__)


FEED: dict[str, Callable[[Digest, Any, int], None]] = {
    "builtins.list": _feed_list,
    "builtins.tuple": _feed_tuple,
    "builtins.dict": _feed_dict,
    "builtins.set": _feed_set,
    "builtins.frozenset": _feed_frozenset,
    "collections.deque": _feed_deque,
    "builtins.bytes": _feed_bytes,
    "builtins.bytearray": _feed_bytes,
    "builtins.memoryview": _feed_bytes,
    "builtins.str": lambda made, value, _: made.feed(str.__str__(value)),
    "builtins.int": lambda made, value, _: made.feed(int.__int__(value)),
    "builtins.float": lambda made, value, _: made.feed(float.__float__(value)),
    "builtins.code": _feed_code,
    "builtins.function": _feed_function,
    "builtins.method": _feed_method,
    "builtins.builtin_function_or_method": _feed_builtin,
    "builtins.type": _feed_class,
    "builtins.module": _feed_module,
    "builtins.staticmethod": _feed_wrapper,
    "builtins.classmethod": _feed_wrapper,
    "builtins.property": _feed_property,
    "builtins.member_descriptor": _feed_member,
    "functools.partial": _feed_partial,
}


def attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an instance of a class that was made in the notebook, None for any other object.

    What a library's class keeps in its objects is its own business: locks, caches and clocks are among them.
    """
    cls = type(value)
    if cls is types.SimpleNamespace or type.__getattribute__(cls, "__module__") == "__main__":
        found: dict[str, Any] = {}
        for base in reversed(type.__getattribute__(cls, "__mro__")):
            if type.__getattribute__(base, "__module__") not in _PLAIN_BASES:
                return None
            inside = type.__getattribute__(base, "__dict__")
            own = inside.get("__dict__")
            if own is not None and type(own) is not types.GetSetDescriptorType:
                return None  # the person's own __dict__: to read it would run their code
            if type(own) is types.GetSetDescriptorType:
                found.update(own.__get__(value))
            found.update({name: _slot(slot, value) for name, slot in inside.items()
                          if type(slot) is types.MemberDescriptorType})  # fmt: skip
        return found
    return None


def _slot(slot: types.MemberDescriptorType, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:  # never set
        return None
