"""Fingerprints of a person's variables: short values by which a later kernel can tell whether an input is the same.

A fingerprint runs none of the person's code (no repr, no ==, no property, no len), imports nothing, computes no lazy
data, costs a bounded time, and is the same in every process: neither `id` nor the salted `hash` of a text goes into it.
Where it can't look inside, it says so (`weak`). This module knows nothing of runs or kernels; tables and arrays are in
`samples.py`. Read `fingerprint`, then `Digest.feed`.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import itertools
import marshal
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.tools import samples
from nbagent.tools.describe import brief_of, class_name, has_plain_repr, is_lazy, names_of, short

WHOLE = 64 * 1024 * 1024
"""Bytes of one variable that are hashed; of more only a sample."""

ITEMS = 20_000
"""Items of one variable that are looked at one by one; of more only a sample."""

TYPE_ONLY = "only its type was compared"
SAMPLED = "a sample of its values was compared"

_DEPTH = 8
_CHUNK = 1 << 16
_PLAIN_ITEMS = 5_000_000
_SCALARS = frozenset({int, float, complex, bool, str, bytes, type(None)})
_NOT_OF_A_CLASS = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__static_attributes__", "__firstlineno__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a value was. `facets` are sizes by name (rows, columns, items …), `told` a short text of a small value.

    `weak` says what was not compared, "" where everything was.
    """

    kind: str
    digest: str
    facets: dict[str, int] = field(default_factory=dict[str, int])
    told: str = ""
    weak: str = ""

    def to_json(self) -> Json:
        """Return the fingerprint as a JSON object."""
        return {"kind": self.kind, "digest": self.digest, "facets": self.facets, "told": self.told, "weak": self.weak}

    @classmethod
    def from_json(cls, data: Json) -> Fingerprint:
        """Return the fingerprint that `to_json` gave; raises KeyError, TypeError or ValueError for anything else."""
        facets = {str(name): int(size) for name, size in data["facets"].items()}
        return cls(str(data["kind"]), str(data["digest"]), facets, str(data["told"]), str(data["weak"]))


def fingerprint(name: str, value: object, root: Path | None = None) -> Fingerprint:
    """Return the fingerprint of a variable's value. Modules that lie in `root` are taken with their source."""
    made = Digest(root)
    if not _guarded(lambda: made.feed(value)):
        made = Digest(root)
        made.tag(class_name(type(value)))
        made.weak = TYPE_ONLY
    return Fingerprint(class_name(type(value)), made.hex(), _sizes(value), _told(name, value), made.weak)


def surface(name: str, value: object) -> Fingerprint:
    """Return what a listing of variables tells of a value: type, sizes, and small plain values themselves."""
    sizes, kind = _sizes(value), class_name(type(value))
    made = Digest(None)
    made.tag(kind)
    made.tag(repr(sorted(sizes.items())))
    if type(value) in _SCALARS or has_plain_repr(type(value)):
        _guarded(lambda: made.feed(value))
    return Fingerprint(kind, made.hex(), sizes, _told(name, value))


def difference(name: str, then: Fingerprint, now: Fingerprint) -> str:
    """Return in words what is different, "" where nothing is: "df changed: 1,204 rows then, 1,310 now"."""
    if then.digest == now.digest:
        return ""
    if then.kind != now.kind:
        return f"{name} changed: {_a(then.kind)} then, {_a(now.kind)} now"
    for facet in then.facets.keys() & now.facets.keys():
        before, after = then.facets[facet], now.facets[facet]
        if before != after:
            return f"{name} changed: {before:,} {facet} then, {after:,} now"
    if then.told and now.told and then.told != now.told:
        return f"{name} changed: {then.told} then, {now.told} now"
    return f"{name} changed: other values than then"


def _a(kind: str) -> str:
    name = kind.rpartition(".")[2]
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _guarded(make: Callable[[], object]) -> bool:
    """Whether `make` came to its end: what libraries do with half-made objects can't be known beforehand."""
    try:
        make()
    except Exception:  # noqa: BLE001  (an object that can't be looked into is told by its type)
        return False
    return True


def _told(name: str, value: object) -> str:
    """A small plain value itself, for people; nothing of what looks like a secret."""
    if type(value) in _SCALARS or has_plain_repr(type(value)):
        return short(brief_of(name, value), 60)
    return ""


def _sizes(value: Any) -> dict[str, int]:
    """Rows, columns, items: what can be read off without running anything of the person's."""
    found: dict[str, int] = {}

    def read() -> None:
        cls = type(value)
        if (known := samples.sizes(value)) is not None:
            found.update(known)
        elif cls in {str, bytes}:
            found.update({"characters" if cls is str else "bytes": len(value)})
        elif (length := next((_LENGTHS[base] for base in names_of(cls) if base in _LENGTHS), None)) is not None:
            found.update({"items": length(value)})

    _guarded(read)
    return found


_LENGTHS: dict[str, Callable[[Any], int]] = {
    "builtins.list": list.__len__,
    "builtins.tuple": tuple.__len__,
    "builtins.dict": dict.__len__,
    "builtins.set": set.__len__,
    "builtins.frozenset": frozenset.__len__,
    "collections.deque": collections.deque[Any].__len__,
}


class Digest:
    """A hash that is fed with values, within bounds of bytes, items and depth."""

    def __init__(self, root: Path | None) -> None:
        self.weak = ""
        self._root = root
        self._hash = hashlib.blake2b(digest_size=16)
        self._bytes = WHOLE
        self._items = ITEMS
        self._inside: set[int] = set()  # what is being looked into now: a cycle ends there

    def hex(self) -> str:
        """Return the hash so far (32 hex digits)."""
        return self._hash.hexdigest()

    def tag(self, text: str) -> None:
        """Take a text that is part of the value's form; the length before it keeps neighbours apart."""
        data = text.encode("utf-8", "surrogatepass")
        self._hash.update(b"%d:" % len(data))
        self._hash.update(data)

    def data(self, view: memoryview) -> None:
        """Take bytes: all of them within the bound, else head, tail and pieces between."""
        size = view.nbytes
        self.tag(str(size))
        if size <= self._bytes:
            self._bytes -= size
            self._hash.update(view)
            return
        self.sampled()
        step = max(_CHUNK, (size // 256) & ~7)
        for start in (*range(0, size - _CHUNK, step), max(0, size - _CHUNK)):
            self._hash.update(view[start : start + _CHUNK])

    def sampled(self) -> None:
        """Say that not all was looked at."""
        self.weak = self.weak or SAMPLED

    def opaque(self, value: object) -> None:
        """Take a value that can't be looked into by its type."""
        self.tag(class_name(type(value)))
        self.weak = TYPE_ONLY

    def feed(self, value: Any, depth: int = _DEPTH) -> None:
        """Take a value."""
        cls = type(value)
        if cls in _SCALARS:
            self._scalar(value)
            return
        self.tag(class_name(cls))
        self._items -= 1
        if has_plain_repr(cls):
            self.tag(repr(value))
        elif id(value) in self._inside:
            self.tag("again")
        elif is_lazy(cls):
            self.opaque(value)
        elif depth <= 0 or self._items < 0:
            self.sampled()
        else:
            self._inside.add(id(value))
            self._object(value, depth)
            self._inside.discard(id(value))

    def _object(self, value: Any, depth: int) -> None:
        if samples.feed(self, value):
            return
        known = next((_FEED[base] for base in names_of(type(value)) if base in _FEED), None)
        if known is not None:
            known(self, value, depth)
        elif (inside := _attributes(value)) is not None:
            _feed_pairs(self, inside.items(), len(inside), depth)
        else:
            self.opaque(value)

    def _scalar(self, value: Any) -> None:
        if type(value) is str and len(value) > _CHUNK:
            self.data(memoryview(value.encode("utf-8", "surrogatepass")))
        elif type(value) is bytes and len(value) > _CHUNK:
            self.data(memoryview(value))
        else:
            self._hash.update(marshal.dumps(value, 2))  # form 2 has no references: the same in every process

    def plain(self, items: Sequence[Any]) -> bool:
        """Take many plain values at once and return True, or return False where there are others among them."""
        if len(items) > _PLAIN_ITEMS or not set(map(type, items)) <= _SCALARS:
            return False
        for start in range(0, len(items), _CHUNK):
            part = marshal.dumps(list(items[start : start + _CHUNK]), 2)
            if len(part) > self._bytes:
                self.sampled()
                self._hash.update(part[:_CHUNK])
                break
            self._bytes -= len(part)
            self._hash.update(part)
        return True

    def values(self, items: Sequence[Any], depth: int) -> None:
        """Take the items of a sequence, evenly spread ones where there are too many."""
        self.tag(str(len(items)))
        if self.plain(items):
            return
        step = max(1, -(-len(items) // max(1, self._items)))
        if step > 1:
            self.sampled()
        for item in itertools.islice(items, 0, None, step):
            self.feed(item, depth - 1)

    def one(self, value: Any, depth: int) -> bytes:
        """Return the hash of one value by itself, for collections without an order; it counts against the bounds."""
        apart = Digest(self._root)
        apart._bytes, apart._items, apart._inside = self._bytes, self._items, self._inside
        apart.feed(value, depth - 1)
        self._bytes, self._items = apart._bytes, apart._items
        self.weak = self.weak or apart.weak
        return apart._hash.digest()

    def unordered(self, items: Iterable[Any], size: int, depth: int) -> None:
        """Take the items of a set: their order differs from process to process."""
        self.tag(str(size))
        if size > ITEMS:  # a part of a set is another part in every process
            self.sampled()
            return
        for digest in sorted(self.one(item, depth) for item in items):
            self._hash.update(digest)

    def module_source(self, path: object) -> None:
        """Take the source of a module that lies in the person's folder."""
        if type(path) is str and self._root is not None and Path(path).is_relative_to(self._root):
            try:
                self.data(memoryview(Path(path).read_bytes()))
            except OSError:
                self.tag("gone")


# ── containers and other values of Python ────────────────────────────────────────────────────────────────────────────


def _feed_list(made: Digest, value: Any, depth: int) -> None:
    made.values(list(list.__iter__(value)), depth)


def _feed_tuple(made: Digest, value: Any, depth: int) -> None:
    made.values(tuple(tuple.__iter__(value)), depth)


def _feed_deque(made: Digest, value: Any, depth: int) -> None:
    made.values(list(collections.deque.__iter__(value)), depth)


def _feed_dict(made: Digest, value: Any, depth: int) -> None:
    _feed_pairs(made, dict.items(value), dict.__len__(value), depth)


def _feed_pairs(made: Digest, pairs: Iterable[tuple[Any, Any]], size: int, depth: int) -> None:
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


_FEED: dict[str, Callable[[Digest, Any, int], None]] = {
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


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an instance of a class that was made in the notebook, None for any other object.

    Attributes of a library's objects are its own business: locks, caches and clocks are among them.
    """
    cls = type(value)
    if cls is types.SimpleNamespace or type.__getattribute__(cls, "__module__") == "__main__":
        found: dict[str, Any] = {}
        for base in reversed(type.__getattribute__(cls, "__mro__")):
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
