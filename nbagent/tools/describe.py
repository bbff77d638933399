"""Describes a Python object in constant time, whatever its size, without running any of its code.

Values of Python are told here; objects of libraries by their describers (`data/describers.py`), found by the names of
their types, so that nothing is imported for it. An object that is not known is only looked at from outside: no len,
bool, repr, ==, hasattr or getattr, since each of them may send a query, compute a lazy frame or fail. This module knows
nothing of kernels. Read `brief` first; `details.py` says more of one object.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from nbagent.tools.data.describers import Describer, attempt, find_describer, find_ours, lines_of
from nbagent.tools.data.kinds import class_name, is_lazy, names_of
from nbagent.tools.data.outlines import outline
from nbagent.tools.secrets import AHEAD, HIDDEN, hidden, mask, said, secret_name

_TEXT = 60  # characters of a text that is named in passing
_ITEMS = 3
_LINE = 300  # characters of one line about one value
_NESTED = 3
_COMMON = frozenset({str, int, float, bool, type(None), list, tuple, dict, set})
_INSIDE: ContextVar[int] = ContextVar("nbagent_inside", default=0)  # how many describers are at work, one in another
_DEPTH = 3

# types whose repr is short and runs nothing of the person's
_PLAIN = frozenset(
    {
        *(f"datetime.{n}" for n in ("date", "datetime", "time", "timedelta", "timezone")),
        *(f"pathlib.{n}" for n in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path")),
        *(f"pathlib._local.{n}" for n in ("PosixPath", "WindowsPath")),
        "decimal.Decimal", "fractions.Fraction", "uuid.UUID", "zoneinfo.ZoneInfo", "re.Pattern",
        "builtins.range", "builtins.slice", "builtins.ellipsis", "builtins.NotImplementedType",
        "pandas.Timestamp", "pandas.Timedelta", "pandas.Interval", "pandas.Period", "pandas.api.typing.NAType", "pandas.api.typing.NaTType", "builtins.float", "builtins.complex", "builtins.bool", "builtins.NoneType",
    }
)  # fmt: skip
_PLAIN_MODULES = ("pandas._libs.tslibs.", "pandas._libs.missing", "pandas._libs.interval")


def brief(value: object, depth: int = _DEPTH) -> str:
    """Return one short line: what the value is and how large; for small plain values, the value itself."""
    return safely(lambda: _brief(value, depth))


def brief_of(name: object, value: object, depth: int = _DEPTH) -> str:
    """Return what `brief` does for the value under a name, key or label; nothing of it where that looks like a secret's."""
    return safely(lambda: _brief_of(name, value, depth))


def safely(describe: Callable[[], str]) -> str:
    """Return what `describe` says, or `<repr failed: …>`: objects of a person's session may raise anything."""
    given = attempt(describe)
    return given if isinstance(given, str) else f"<repr failed: {type(given).__name__}>"


def has_plain_repr(cls: type) -> bool:
    """Whether the repr of a value of exactly this class is short and runs nothing of the person's."""
    name = next(iter(names_of(cls)))
    return name in _PLAIN or name.startswith(_PLAIN_MODULES)


# ── one line ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _brief_of(name: object, value: Any, depth: int) -> str:
    return hidden(name, value) or hidden_data(name, value) or _brief(value, depth)


def hidden_data(name: object, value: object) -> str | None:
    """Return what is shown of a library's object under a secret's name: what it is and how large; None for others."""
    if type(name) is not str or type(value) in _COMMON or not secret_name(name):
        return None
    if find_describer(type(value)) is None:
        return None
    return f"{outline(value)}: {HIDDEN}"


def _brief(value: Any, depth: int) -> str:
    cls = type(value)
    if cls is str:
        return _brief_text(value)
    if cls is int or has_plain_repr(cls):
        return _brief_repr(value)
    if (known := _BRIEF.get(next(iter(names_of(cls))))) is not None:
        return known(value, depth)
    if (describer := find_describer(cls)) is not None:
        return _brief_described(describer, value, depth)
    return brief_plain(value, depth)


def brief_plain(value: Any, depth: int = _DEPTH) -> str:
    """Return what is told of a value in one line where no describer is asked."""
    cls = type(value)
    if cls is int or has_plain_repr(cls):
        return _brief_repr(value)
    for base in names_of(cls):
        if (known := _BRIEF.get(base)) is not None:
            return known(value, depth)
    if is_lazy(cls):
        return f"{class_name(cls)}, lazy: not computed"
    return f"object of class {class_name(cls)}"


def _brief_repr(value: Any) -> str:
    if type(value) is int and value.bit_length() >= 200:
        return f"int of {value.bit_length():,} bits"
    return short(mask(repr(value)))


def _brief_described(describer: Describer, value: Any, depth: int) -> str:
    inside = _INSIDE.get()
    if inside >= _NESTED:  # a describer tells of what is inside by calling this again: it may be the same object
        return class_name(type(value))
    token = _INSIDE.set(inside + 1)
    try:
        given = attempt(lambda: next(lines_of(describer, value), ""))
    finally:
        _INSIDE.reset(token)
    if isinstance(given, str) and given:
        return short(given, _LINE)
    if not describer.foreign:
        return f"<repr failed: {type(given).__name__}>"
    own = find_ours(type(value))
    plain = brief_plain(value, depth) if own is None else _brief_described(own, value, depth)
    return f"{plain} ({failed(describer, given)})"


def failed(describer: Describer, given: object) -> str:
    """Say that somebody's describer did not do its part: `given` is what it raised, or a text that says nothing."""
    how = "said nothing" if isinstance(given, str) else f"failed: {type(given).__name__}"
    return f"its describer {describer.name} {how}"


def short(text: str, limit: int = 120) -> str:
    """Return `text`, cut after `limit` characters."""
    return text if len(text) <= limit else text[:limit] + "…"


def _brief_text(value: str) -> str:
    size = str.__len__(value)
    window = str.__getitem__(value, slice(0, _TEXT + AHEAD))
    if _tells(window, _TEXT):
        return said(size)
    start = repr(window[:_TEXT])
    return start if size <= _TEXT else f"str of {size:,} characters: {start}…"


def _tells(window: str, shown: int) -> bool:
    """Whether the first `shown` characters have a token in them, or the start of one."""
    return mask(window)[:shown] != window[:shown]


def _brief_bytes(value: Any, _: int) -> str:
    size = len(value)
    kind = class_name(type(value))
    if _tells(bytes(value[: 20 + AHEAD]).decode("latin-1"), 20):
        return said(size)
    return f"{kind} of {size:,} bytes: {bytes(value[:20])!r}" + ("…" if size > 20 else "")


def _items(values: Iterable[Any], size: int, depth: int, brackets: str) -> str:
    if depth <= 0:
        return f"{brackets[0]}…{brackets[1]}" if size else brackets
    shown = ", ".join(short(_brief(v, depth - 1), 80) for v in itertools.islice(values, _ITEMS))
    return f"{brackets[0]}{shown}{', …' if size > _ITEMS else ''}{brackets[1]}"


def _sized(value: Any, size: int, text: str) -> str:
    return f"{class_name(type(value))} of {size:,}: {text}"


def _brief_list(value: Any, depth: int) -> str:
    size = list.__len__(value)
    return _sized(value, size, _items(list.__iter__(value), size, depth, "[]"))


def _brief_tuple(value: Any, depth: int) -> str:
    size = tuple.__len__(value)
    return _sized(value, size, _items(tuple.__iter__(value), size, depth, "()"))


def _brief_set(value: Any, depth: int) -> str:
    base: Any = set if issubclass(type(value), set) else frozenset
    size = base.__len__(value)
    return _sized(value, size, _items(base.__iter__(value), size, depth, "{}"))


def _brief_dict(value: Any, depth: int) -> str:
    size = dict.__len__(value)
    if depth <= 0:
        return _sized(value, size, "{…}" if size else "{}")
    pairs = (
        f"{short(_brief(k, 1), 60)}: {short(_brief_of(k, v, depth - 1), 80)}"
        for k, v in itertools.islice(dict.items(value), _ITEMS)
    )
    return _sized(value, size, "{" + ", ".join(pairs) + (", …}" if size > _ITEMS else "}"))


def _brief_function(value: Any, _: int) -> str:
    kind = "async function" if value.__code__.co_flags & inspect.CO_COROUTINE else "function"
    return f"{kind} {value.__name__}{signature_of(value)}"


def _brief_class(value: Any, _: int) -> str:
    return f"class {class_name(value)}"


def _brief_module(value: Any, _: int) -> str:
    version = types.ModuleType.__getattribute__(value, "__dict__").get("__version__")
    return f"module {value.__name__}" + (f" {version}" if type(version) is str else "")


def _brief_file(value: Any, _: int) -> str:
    return f"open file {value.name!r}" if not value.closed else f"closed file {value.name!r}"


def label_of(value: Any) -> str:
    """Return a column's label exactly, as it must be written in code; a tuple label as a tuple."""
    if type(value) is tuple:
        return "(" + ", ".join(label_of(v) for v in value) + ("," if len(value) == 1 else "") + ")"
    return repr(value) if type(value) is str and len(value) <= 200 else _brief(value, 2)


class _Shown:
    """A default value or annotation in a signature, shown as given text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def signature_of(function: Any) -> str:
    """Return the signature with defaults in short: their own repr may be anything."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (ValueError, TypeError):
        return "(…)"
    parameters = [
        p.replace(
            default=p.default if p.default is p.empty else _Shown(short(brief_of(p.name, p.default, 1), 40)),
            annotation=_annotation(p.annotation),
        )
        for p in signature.parameters.values()
    ]
    returns = _annotation(signature.return_annotation)
    return short(str(signature.replace(parameters=parameters, return_annotation=returns)), 300)


def _annotation(value: Any) -> Any:
    if value is inspect.Parameter.empty or value is inspect.Signature.empty:
        return value
    if type(value) is str:
        return _Shown(value)
    if type(value) is type:
        return _Shown(class_name(value))
    known = type(value).__module__ in {"types", "typing"}
    return _Shown(short(repr(value), 80) if known else brief(value, 1))


_BRIEF: dict[str, Callable[[Any, int], str]] = {
    "builtins.list": _brief_list,
    "builtins.tuple": _brief_tuple,
    "builtins.dict": _brief_dict,
    "builtins.set": _brief_set,
    "builtins.frozenset": _brief_set,
    "builtins.str": lambda value, _: f"{class_name(type(value))}: {_brief_text(value)}",
    "builtins.bytes": _brief_bytes,
    "builtins.bytearray": _brief_bytes,
    "builtins.function": _brief_function,
    "builtins.type": _brief_class,
    "builtins.module": _brief_module,
    "_io.TextIOWrapper": _brief_file,
    "_io.BufferedReader": _brief_file,
    "_io.BufferedWriter": _brief_file,
    **dict.fromkeys(
        ("nbagent.tools.veil.Told", "nbagent.tools.data.tabular.Unread"), lambda value, _: short(value.line, 80)
    ),
}
