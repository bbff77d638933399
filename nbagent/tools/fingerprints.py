"""Fingerprints of a person's variables: short values by which a later kernel can tell whether an input is the same.

A fingerprint runs none of the person's code (no repr, no ==, no property, no len), imports nothing, computes no lazy
data, costs a bounded time, and is the same in every process: neither `id` nor the salted `hash` of a text goes into it.
Where it can't look inside, it says so (`weak`). This module knows nothing of runs or kernels; values of Python are in
`values.py`, tables and arrays in `samples.py`. Read `fingerprint`, then `Digest.feed`.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
import marshal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.tools import samples
from nbagent.tools.data.kinds import class_name, is_lazy, names_of
from nbagent.tools.describe import brief_of, has_plain_repr, short
from nbagent.tools.values import FEED, attributes, feed_pairs

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
        known = next((FEED[base] for base in names_of(type(value)) if base in FEED), None)
        if known is not None:
            known(self, value, depth)
        elif (inside := attributes(value)) is not None:
            feed_pairs(self, inside.items(), len(inside), depth)
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
