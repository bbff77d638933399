"""Tells the schema of nested lists and dicts, as JSON gives them: which keys, of which types, how often.

A bounded part is looked at, and only what is exactly a list or a dict, or made from one, is looked into. Read
`shape_lines`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nbagent.tools.data.kinds import type_name
from nbagent.tools.describe import label_of, short

_RECORDS = 200
_INNER = 20  # items of a list inside of a record
_KEYS = 60
_DEPTH = 5
_LINES = 60


@dataclass(slots=True)
class _Shape:
    """What was seen in one place: types with their numbers, and the keys below it."""

    types: Counter[str] = field(default_factory=Counter[str])
    keys: dict[Any, _Shape] = field(default_factory=dict[Any, "_Shape"])
    items: _Shape | None = None
    records: int = 0


def shape_lines(value: Any) -> list[str]:
    """Return the schema of a list of records, or of a dict that has lists or dicts in it; [] for anything else."""
    if not _is_nested(value):
        return []
    root = _Shape()
    size = 0
    if isinstance(value, list):
        size = list.__len__(value)
        for item in itertools.islice(list.__iter__(value), _RECORDS):
            _take(root, item, _DEPTH)
        of = f"all {size:,}" if size <= _RECORDS else f"the first {_RECORDS:,} of {size:,}"
        head = f"schema of the records ({of}):"
    else:
        _take(root, value, _DEPTH)
        head = "schema:"
    lines = list(itertools.islice(_lines(root, "  "), _LINES + 1))
    return [head, *lines[:_LINES], *(["  …"] if len(lines) > _LINES else [])] if lines else []


def _is_nested(value: Any) -> bool:
    cls = type(value)
    if issubclass(cls, list):
        return any(issubclass(type(item), dict) for item in itertools.islice(list.__iter__(value), 5))
    if issubclass(cls, dict):
        return any(issubclass(type(v), (list, dict)) for v in itertools.islice(dict.values(value), _KEYS))
    return False


def _take(shape: _Shape, value: Any, depth: int) -> None:
    cls: type = type(value)
    shape.types["None" if cls is type(None) else type_name(value)] += 1
    inside: Any = value
    if depth <= 0:
        return
    if issubclass(cls, dict):
        shape.records += 1
        for key, item in itertools.islice(dict.items(inside), _KEYS):
            if type(key) in {str, int} and (key in shape.keys or len(shape.keys) < _KEYS):
                _take(shape.keys.setdefault(key, _Shape()), item, depth - 1)
    elif issubclass(cls, list):
        shape.items = shape.items or _Shape()
        for item in itertools.islice(list.__iter__(inside), _INNER):
            _take(shape.items, item, depth - 1)


def _lines(shape: _Shape, indent: str) -> Iterator[str]:
    for key, below in shape.keys.items():
        count = below.types.total()
        often = "" if count >= shape.records else f"  (in {count:,} of {shape.records:,})"
        yield f"{indent}{short(label_of(key), 80)}: {_types(below)}{often}"
        inner = below
        while inner.items is not None and not inner.keys:
            inner = inner.items
        yield from _lines(inner, indent + "  ")


def _types(shape: _Shape) -> str:
    named = [
        f"list of {_types(shape.items) or 'nothing'}" if name == "list" and shape.items is not None else name
        for name, _ in shape.types.most_common(4)
    ]
    return " or ".join(named)
