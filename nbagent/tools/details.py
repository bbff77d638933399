"""Says more of one object, in time that does not grow with it: schema and sample, items, signature, attributes.

The same care as in `describe.py`: values of Python here, objects of libraries by their describers, unknown ones only from
outside, lazy ones never computed; where a count needs the data, it is taken from a part of it, and says so. Read
`details` first.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable
from typing import Any

from nbagent.tools.data.describers import Describer, attempt, find_describer, find_ours, lines_of
from nbagent.tools.data.jsonshape import shape_lines
from nbagent.tools.data.kinds import bases_of, class_name, held, names_of, type_name
from nbagent.tools.describe import (
    brief,
    brief_of,
    brief_plain,
    failed,
    hidden_data,
    safely,
    signature_of,
)
from nbagent.tools.secrets import WINDOW, hidden, mask


def details(value: object, name: str = "") -> str:
    """Return several lines about the value: schema and a marked sample of a table, items, signature, attributes.

    Of a value under a `name` that looks like a secret's nothing is shown but its kind and size.
    """
    if (instead := hidden(name, value)) is not None:
        return instead
    if (instead := safely(lambda: hidden_data(name, value) or "")) != "":
        return instead
    if (describer := find_describer(type(value))) is not None:
        return _described(describer, value)
    return _plain_details(value)


def _described(describer: Describer, value: Any) -> str:
    """Return all that a describer says; where it fails, that it did, and what is told without one."""
    lines: list[str] = []
    ended = attempt(lambda: lines.extend(lines_of(describer, value)))
    if ended is None and lines:
        return "\n".join(lines)
    if describer.foreign:
        own = find_ours(type(value))
        plain = _plain_details(value) if own is None else _described(own, value)
        return "\n".join([*lines, f"({failed(describer, ended or '')})", plain])
    return "\n".join([*lines, f"<repr failed: {type(ended).__name__}>"])


def _plain_details(value: Any) -> str:
    known = next((_DETAILS[known] for known in names_of(type(value)) if known in _DETAILS), None)
    return safely(lambda: (known or _object_details)(value))


def _list_details(value: Any) -> str:
    base: Any = list if issubclass(type(value), list) else tuple
    size = base.__len__(value)
    lines = [f"  [{i}] {brief(v)}" for i, v in enumerate(itertools.islice(base.__iter__(value), 10))]
    kinds = sorted({type_name(v) for v in itertools.islice(base.__iter__(value), 1000)})
    return "\n".join(
        [
            f"{class_name(type(value))} of {size:,}; types in the first {min(size, 1000):,}: {', '.join(kinds[:10])}",
            *lines,
            *([f"  … and {size - 10:,} more"] if size > 10 else []),
            *shape_lines(value),
        ]
    )


def _dict_details(value: Any) -> str:
    size = dict.__len__(value)
    lines = [f"  {brief(k, 1)}: {brief_of(k, v)}" for k, v in itertools.islice(dict.items(value), 20)]
    return "\n".join(
        [
            f"{class_name(type(value))} of {size:,}",
            *lines,
            *([f"  … and {size - 20:,} more"] if size > 20 else []),
            *shape_lines(value),
        ]
    )


def _text_details(value: Any) -> str:
    size = str.__len__(value)
    if size <= 2000:
        return f"str of {size:,} characters:\n{mask(str.__getitem__(value, slice(None)))}"
    head = mask(str.__getitem__(value, slice(0, 1500 + WINDOW)))[:1500]
    tail = mask(str.__getitem__(value, slice(-400 - WINDOW, None)))[-400:]
    return f"str of {size:,} characters, the first 1,500 and the last 400:\n{head}\n[…]\n{tail}"


def _doc(value: Any) -> list[str]:
    doc = inspect.getattr_static(value, "__doc__", None)
    return ["  " + line for line in inspect.cleandoc(doc).splitlines()[:8]] if type(doc) is str and doc else []


def _function_details(value: Any) -> str:
    where = f"{value.__code__.co_filename}:{value.__code__.co_firstlineno}"
    return "\n".join([f"{brief(value)}, defined in {where}", *_doc(value)])


def _class_details(value: Any) -> str:
    own: Any = type.__getattribute__(value, "__dict__")
    bases = ", ".join(class_name(b) for b in type.__getattribute__(value, "__bases__"))
    lines = [
        f"  {name}{signature_of(item)}" if type(item) is types.FunctionType else f"  {name}: {type_name(item)}"
        for name, item in itertools.islice(own.items(), 200)
        if not name.startswith("_") or name == "__init__"
    ]
    return "\n".join([f"class {class_name(value)}({bases})", *_doc(value), *lines[:40]])


def _module_details(value: Any) -> str:
    names = [n for n in types.ModuleType.__getattribute__(value, "__dict__") if not n.startswith("_")]
    return "\n".join([brief(value), *_doc(value), f"names: {', '.join(names[:60])}"])


def _object_details(value: Any) -> str:
    """Describe an object from outside: its class, and what its instance holds, each in short."""
    cls = type(value)
    line = safely(lambda: brief_plain(value))
    if line.endswith("not computed") or not line.startswith("object of class"):
        return line
    inside = held(value)
    methods = [
        name
        for base in bases_of(cls)[:-1]
        for name, item in type.__getattribute__(base, "__dict__").items()
        if type(item) is types.FunctionType and not name.startswith("_")
    ]
    attributes = [f"  .{name} = {brief_of(name, item, 2)}" for name, item in itertools.islice(dict.items(inside), 30)]
    shown = [f"methods: {', '.join(dict.fromkeys(methods[:40]))}"] if methods else []
    return "\n".join([line, *_doc(cls), *attributes, *shown])


_DETAILS: dict[str, Callable[[Any], str]] = {
    "nbagent.tools.veil.Told": lambda value: value.more(None),
    "builtins.list": _list_details,
    "builtins.tuple": _list_details,
    "builtins.dict": _dict_details,
    "builtins.str": _text_details,
    "builtins.function": _function_details,
    "builtins.type": _class_details,
    "builtins.module": _module_details,
}
