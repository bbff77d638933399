"""Describes Python's own objects that have parts: data classes, named tuples, enums, deques, counters, generators, tasks.

Parts are read from where Python keeps them, past whatever the class makes of them: no property, no `__getattr__`. Read
`record`.
"""

from __future__ import annotations

import collections
import inspect
import itertools
import types
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.kinds import bases_of, class_name, held
from nbagent.tools.describe import brief, brief_of, label_of, short, signature_of

_FIELDS = 60
_IN_LINE = 4
_COUNTED = 2_000
UNSET = object()


def stored(value: Any, name: str) -> Any:
    """Return what an instance keeps under a name, in its dict or a slot; `UNSET` where it keeps nothing."""
    inside = held(value)
    if name in inside:
        return inside[name]
    for base in bases_of(type(value)):
        found = type.__getattribute__(base, "__dict__").get(name)
        if type(found) is types.MemberDescriptorType:
            try:
                return found.__get__(value)
            except AttributeError:
                return UNSET
    return UNSET


def _called(value: Any, parts: list[tuple[str, str]]) -> str:
    """Return an object as it would be made, with its first parts."""
    said = ", ".join(f"{name}={short(text, 60)}" for name, text in parts[:_IN_LINE])
    return f"{class_name(type(value))}({said}{', …' if len(parts) > _IN_LINE else ''})"


def _told(name: str, found: Any, depth: int) -> str:
    return "<not set>" if found is UNSET else brief_of(name, found, depth)


def record(value: Any) -> Iterator[str]:
    """Describe an instance of a data class. A field that is kept out of its repr is kept out of this too."""
    own = [type.__getattribute__(base, "__dict__") for base in bases_of(type(value))]
    fields = next((one["__dataclass_fields__"] for one in own if "__dataclass_fields__" in one), {})
    names = [
        (name, held(field).get("repr", stored(field, "repr")) is not False)
        for name, field in itertools.islice(dict.items(fields), _FIELDS)
        if type(name) is str
    ]
    yield _called(value, [(n, _told(n, stored(value, n), 1) if shown else "…") for n, shown in names[: _IN_LINE + 1]])
    yield f"data class of {dict.__len__(fields):,} fields:"
    for name, shown in names:
        yield f"  .{name} = {_told(name, stored(value, name), 2) if shown else '<not shown: repr=False>'}"


def named_tuple(value: Any) -> Iterator[str]:
    """Describe a named tuple."""
    own = [type.__getattribute__(base, "__dict__") for base in bases_of(type(value))]
    fields = next((one["_fields"] for one in own if type(one.get("_fields")) is tuple), ())
    pairs = [
        (n, v) for n, v in itertools.islice(zip(fields, tuple.__iter__(value), strict=False), _FIELDS) if type(n) is str
    ]
    yield _called(value, [(name, brief_of(name, item, 1)) for name, item in pairs[: _IN_LINE + 1]])
    yield f"named tuple of {tuple.__len__(value):,}:"
    for name, item in pairs:
        yield f"  .{name} = {brief_of(name, item, 2)}"


def member(value: Any) -> Iterator[str]:
    """Describe a member of an enum."""
    inside = held(value)
    name = inside.get("_name_")
    yield f"{class_name(type(value))}.{name if type(name) is str else '(no name)'} = {brief(inside.get('_value_'), 1)}"
    yield from itertools.islice(enum_class(type(value)), 1, None)


def enum_class(value: Any) -> Iterator[str]:
    """Describe an enum by its members."""
    members = type.__getattribute__(value, "__dict__").get("_member_map_")
    found = members if isinstance(members, dict) else {}
    names = ", ".join(map(str, itertools.islice(dict.keys(found), 6)))
    size = dict.__len__(found)
    yield f"class {class_name(value)}, an enum of {size:,}: {names}{', …' if size > 6 else ''}"
    for name, one in itertools.islice(dict.items(found), _FIELDS):
        yield f"  {name} = {brief(held(one).get('_value_'), 1)}"


def namespace(value: Any) -> Iterator[str]:
    """Describe a SimpleNamespace."""
    inside = types.SimpleNamespace.__dict__["__dict__"].__get__(value)
    parts = [(str(n), brief_of(n, v, 1)) for n, v in itertools.islice(dict.items(inside), _IN_LINE + 1)]
    yield _called(value, parts)
    for name, item in itertools.islice(dict.items(inside), _FIELDS):
        yield f"  .{name} = {brief_of(name, item, 2)}"


def queue(value: Any) -> Iterator[str]:
    """Describe a deque."""
    base: Any = collections.deque
    size, most = base.__len__(value), base.maxlen.__get__(value)
    first = ", ".join(short(brief(v, 1), 60) for v in itertools.islice(base.__iter__(value), 3))
    bound = "" if most is None else f", at most {most:,}"
    yield f"{class_name(type(value))} of {size:,}{bound}: [{first}{', …' if size > 3 else ''}]"
    for place, item in enumerate(itertools.islice(base.__iter__(value), 10)):
        yield f"  [{place}] {brief(item)}"
    if size > 10:
        yield f"  … and {size - 10:,} more"


def counter(value: Any) -> Iterator[str]:
    """Describe a Counter by what is most common, of a large one among the first keys."""
    size = dict.__len__(value)
    some = [(k, n) for k, n in itertools.islice(dict.items(value), _COUNTED) if type(n) in {int, float}]
    some.sort(key=lambda pair: -pair[1])
    first = ", ".join(f"{short(label_of(k), 40)}: {brief(n, 1)}" for k, n in some[:3])
    yield f"{class_name(type(value))} of {size:,}: {{{first}{', …' if size > 3 else ''}}}"
    of = f"all {size:,}" if size <= _COUNTED else f"the first {_COUNTED:,} of {size:,}"
    yield f"most common of {of}:"
    for key, number in some[:20]:
        yield f"  {short(label_of(key), 100)}: {brief(number, 1)}"


def generator(value: Any) -> Iterator[str]:
    """Describe a generator or coroutine: whose it is, where it stands. It is not asked for anything."""
    name = class_name(type(value))
    yield f"{name}, not consumed"
    prefix = next((p for p in ("gi", "ag", "cr") if hasattr(type(value), f"{p}_code")), "")
    if prefix:
        code = getattr(value, f"{prefix}_code")
        frame = getattr(value, f"{prefix}_frame")
        state = (
            "at its end"
            if frame is None
            else "running"
            if getattr(value, f"{prefix}_running")
            else f"at line {frame.f_lineno}"
        )
        yield f"of {code.co_qualname}, defined in {code.co_filename}:{code.co_firstlineno}, {state}"


def partial(value: Any) -> Iterator[str]:
    """Describe a functools.partial."""
    import functools  # noqa: PLC0415  (only where there is one)

    base: Any = functools.partial
    given = [brief(a, 1) for a in base.args.__get__(value)[:8]]
    given += [f"{k}={brief_of(k, v, 1)}" for k, v in itertools.islice(base.keywords.__get__(value).items(), 8)]
    yield f"partial of {brief(base.func.__get__(value), 1)} with {', '.join(given) or 'nothing'}"


def method(value: Any) -> Iterator[str]:
    """Describe a bound method."""
    function = value.__func__
    name = function.__name__ if type(function) is types.FunctionType else class_name(type(function))
    yield f"method {name}{signature_of(function) if type(function) is types.FunctionType else ''} of {class_name(type(value.__self__))}"
    doc = inspect.getattr_static(function, "__doc__", None)
    if type(doc) is str:
        yield from (f"  {line}" for line in inspect.cleandoc(doc[:4_000]).splitlines()[:8])


def failure(value: Any) -> Iterator[str]:
    """Describe an exception by what it was made with; its own text is not asked for."""
    base: Any = BaseException
    given = base.args.__get__(value)
    said = ", ".join(short(brief(a, 1), 200) for a in given[:3])
    yield f"exception {class_name(type(value))}({said}{', …' if len(given) > 3 else ''})"
    trace = base.__traceback__.__get__(value)
    for _ in range(200):
        if trace is None:
            return
        if trace.tb_next is None:
            code = trace.tb_frame.f_code
            yield f"raised in {code.co_qualname}, {code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next


def mapping_view(_value: Any) -> Iterator[str]:
    """Name a read-only view of a mapping: what lies below it may be anybody's."""
    yield "a read-only view of a mapping"


def buffer(value: Any) -> Iterator[str]:
    """Describe a memoryview or an array of the module array."""
    if type(value) is memoryview:
        yield f"memoryview of {value.nbytes:,} bytes, format {value.format!r}"
        return
    import array  # noqa: PLC0415  (only where there is one)

    base: Any = array.array
    size = base.__len__(value)
    first = ", ".join(brief(base.__getitem__(value, n), 1) for n in range(min(6, size)))
    yield f"array.array of {size:,}, type {base.typecode.__get__(value)!r}: [{first}{', …' if size > 6 else ''}]"


def task(value: Any) -> Iterator[str]:
    """Describe a task or future of asyncio, or a future of concurrent.futures: whether it is done."""
    state = held(value).get("_state")  # of concurrent.futures, and of the pure Python ones
    if type(state) is not str:
        state = value._state if type(value).__module__ == "_asyncio" else "not asked"  # noqa: SLF001
    yield f"{class_name(type(value))}, {state.lower()}"
