"""The names of a namespace before and after a run: which were set anew, deleted or added, and how to put them back.

An old object is kept alive only where its name was rebound or deleted. What a run left under a name is only recognised
(`Mark`), not kept: a table that the person deletes later must be freed. Must not know of kernels. Read `Bindings.between`.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Self, cast

HELD = 64 * 1024
"""Bytes of an object without references to others that may be kept only to recognise it."""
_SAMPLE = 8


class _Missing:
    """Stands for a name that is not there."""

    def __repr__(self) -> str:
        return "(no such name)"


MISSING: Final = _Missing()


class Mark:
    """Recognises one object without keeping anything large alive.

    By a weak reference where its type allows one; by the object itself where it is small and refers to nothing; else by
    what can be told of it: a list that was changed since then counts as another one.
    """

    def __init__(self, value: object) -> None:
        self._look: Any = None
        self._held: object = MISSING
        self._weak: weakref.ref[Any] | None = None
        try:
            self._weak = weakref.ref(value)
        except TypeError:
            if type(value) not in {list, dict, set, tuple} and not gc.is_tracked(value) and _size(value) <= HELD:
                self._held = value
            else:
                self._look = _look(value)

    def fits(self, value: object) -> bool:
        """Whether `value` is the marked object."""
        if self._weak is not None:
            return self._weak() is value
        if self._held is not MISSING:
            return self._held is value
        return self._look == _look(value)


def _look(value: object) -> tuple[object, ...]:
    kind = type(value)
    if kind in {list, dict, set, tuple}:
        held = cast("list[object]", value)
        return (kind, id(value), len(held), *(id(item) for item in islice(held, _SAMPLE)))
    return (kind, id(value))


def _size(value: object) -> int:
    try:
        return sys.getsizeof(value)
    except (TypeError, ValueError, AttributeError, RuntimeError):  # a __sizeof__ of somebody's own
        return HELD + 1


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name was bound to before (or MISSING), and by what it is recognised now (None: the name is gone)."""

    old: object
    now: Mark | None


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done: names set to their old objects, names deleted, names left alone because they are others' now."""

    names: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(slots=True)
class Bindings:
    """The names that a run (or its undo) has changed."""

    changed: dict[str, Binding] = field(default_factory=dict[str, Binding])

    @classmethod
    def between(cls, before: Mapping[str, object], after: Mapping[str, object]) -> Self:
        """Compare two states of one namespace, by identity."""
        changed: dict[str, Binding] = {}
        for name in {**before, **after}:
            old, new = before.get(name, MISSING), after.get(name, MISSING)
            if old is not new:
                changed[name] = Binding(old, None if new is MISSING else Mark(new))
        return cls(changed)

    def add(self, before: Mapping[str, object], after: Mapping[str, object]) -> None:
        """Add what one more call has changed. What others have set between two calls is theirs: then that is the old object."""
        for name, binding in type(self).between(before, after).changed.items():
            known = self.changed.get(name)
            still = known is not None and _as_left(known, before.get(name, MISSING))
            old = known.old if known is not None and still else binding.old
            if old is after.get(name, MISSING):
                self.changed.pop(name, None)  # it is as it was before
            else:
                self.changed[name] = Binding(old, binding.now)

    def restore(self, namespace: dict[str, Any]) -> tuple[Bindings, Restored]:
        """Give the names in `namespace` their old objects, where they are as they were left.

        Returns what was changed by that, for the way back, and what is to be told.
        """
        reverse = Bindings()
        done: dict[str, list[str]] = {"names": [], "removed": [], "kept": []}
        for name, binding in self.changed.items():
            now = namespace.get(name, MISSING)
            if now is binding.old:
                continue
            if not _as_left(binding, now):
                done["kept"].append(name)
            elif binding.old is MISSING:
                del namespace[name]
                done["removed"].append(name)
                reverse.changed[name] = Binding(now, None)
            else:
                namespace[name] = binding.old
                done["names"].append(name)
                reverse.changed[name] = Binding(now, Mark(binding.old))
        return reverse, Restored(**{key: tuple(sorted(value)) for key, value in done.items()})

    def held(self) -> int:
        """Bytes of the old objects that only this keeps by name, about: what each says of itself."""
        return sum(_size(binding.old) for binding in self.changed.values() if binding.old is not MISSING)


def _as_left(binding: Binding, now: object) -> bool:
    """Whether a name is still bound as it was left."""
    return now is MISSING if binding.now is None else now is not MISSING and binding.now.fits(now)
