"""Reads JSON-like values of figures that may be anything: wrong types, huge lists, arrays, arrays packed as base64.

All are bounded: of a long column every n-th value is looked at. Nothing is imported; arrays of numpy are known by the name
of their type. Read `column`.
"""

from __future__ import annotations

import array
import base64
import binascii
import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.tools.data.figures_facts import Axis, line_of, number

LOOK = 6_000
"""Values of one column that are looked at: a describer has 5 ms for all of a figure."""
_ENDS = 2_000_000  # numbers of an array whose smallest and largest are taken, too

_BYTES = 64_000_000  # characters of base64 that are unpacked
_VALUES = 12
_HUGE = 1e300  # beyond are infinity, NaN, and ints that are no float
_CODES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d"}


def mapping(value: Any) -> dict[Any, Any]:
    """Return a dict as it is, {} for anything else."""
    return value if type(value) is dict else {}


def items(value: Any) -> Sequence[Any]:
    """Return a list or tuple as it is, () for anything else."""
    return value if type(value) in (list, tuple) else ()


def text(value: Any) -> str:
    """Return a text, or the text of a number; of a list of texts its lines on one; "" for anything else."""
    if type(value) is str:
        return value[:1000]
    if type(value) in (int, float):
        return number(value) if abs(value) < _HUGE else ""
    if type(value) in (list, tuple):
        return " ".join(text(part) for part in value[:10] if type(part) is str)
    return ""


@dataclass(frozen=True, slots=True)
class Column:
    """Some values of a column, evenly taken, and how many it has."""

    size: int
    some: Sequence[Any]

    @property
    def whole(self) -> bool:
        """Whether these are all."""
        return len(self.some) >= self.size


def size_of(value: Any) -> int | None:
    """Return how many values a column has, None where it is none."""
    found = column(value, 0)
    return found.size if found is not None else None


def column(value: Any, look: int = LOOK) -> Column | None:
    """Return `look` values of a list, an array, or an array packed as `{"dtype": …, "bdata": …}`; else None."""
    if type(value) in (list, tuple):
        return Column(len(value), _plain(list(value[:: _step(len(value), look)])))
    if type(value) is dict:
        return _unpacked(value, look)
    cls = type(value)
    if cls.__module__ == "numpy" and cls.__name__ == "ndarray":
        if not look:
            return Column(int(value.size), ())
        step = _step(int(value.size), look)
        some = value[::step] if value.ndim == 1 else value.flat[::step]
        taken = [str(v) for v in some] if value.dtype.kind == "M" else _plain(some.tolist())
        return Column(int(value.size), [*taken, *_ends(value)] if step > 1 else taken)
    return None


def _ends(array: Any) -> list[Any]:
    """Return the smallest and the largest number of an array of numpy's own, which are quick to find."""
    if array.dtype.kind not in "iuf" or array.size > _ENDS:
        return []
    numpy = sys.modules["numpy"]
    return [end.reduce(array, axis=None).item() for end in (numpy.fmin, numpy.fmax)]


def _plain(values: list[Any]) -> list[Any]:
    """Return values with the times of the standard library and pandas, which live figures hold, as text."""
    kinds = {type(value) for value in values}
    if not any(issubclass(kind, dt.date) for kind in kinds):
        return values
    known = {kind for kind in kinds if kind.__module__ in {"datetime", "pandas", "pandas._libs.tslibs.timestamps"}}
    return [value.isoformat() if type(value) in known else value for value in values]


def _step(size: int, look: int) -> int:
    return max(1, -(-size // look)) if look else max(1, size)


def _unpacked(packed: dict[Any, Any], look: int) -> Column | None:
    data, code = packed.get("bdata"), _CODES.get(str(packed.get("dtype")).lstrip("<|="))
    if type(data) is not str or code is None:
        return None
    size = (len(data) * 3 // 4 - data[-2:].count("=")) // array.array(code).itemsize
    if not look or len(data) > _BYTES:
        return Column(size, ())
    try:
        found = array.array(code, base64.b64decode(data))
    except (binascii.Error, ValueError):  # not base64, or half a number at its end
        return Column(size, ())
    return Column(len(found), found[:: _step(len(found), look)].tolist())


def span(name: str, label: str, scale: str, columns: Sequence[Column]) -> Axis:
    """Return an axis with the range or the categories of what is drawn along it."""
    seen = [value for part in columns for value in part.some if value is not None]
    about = "" if all(part.whole for part in columns) else "about "
    numbers = [value for value in seen if type(value) in (int, float) and abs(value) < _HUGE]
    if numbers and len(numbers) * 2 >= len(seen):
        return Axis(name, label, about + number(min(numbers)), number(max(numbers)), scale, data=True)
    texts = [value for value in seen if type(value) is str]
    if not texts:
        return Axis(name, label, scale=scale)
    if scale == "date" or all(is_date(value) for value in texts[:50]):
        return Axis(name, label, about + _day(min(texts)), _day(max(texts)), scale or "date", data=True)
    kept = list(dict.fromkeys(line_of(value, 40) for value in texts))
    return Axis(name, label, scale=scale or "category", values=tuple(kept[:_VALUES]), more=max(0, len(kept) - _VALUES))


def is_date(value: str) -> bool:
    """Whether a text begins as a date of ISO 8601 does."""
    return len(value) >= 10 and value[:4].isdigit() and value[4] == value[7] == "-" and value[5:7].isdigit()


def _day(value: str) -> str:
    """Return a time without the midnight and the zeros at its end."""
    value = value[:40]
    for end in ("T00:00:00", " 00:00:00"):
        day, found, rest = value.partition(end)
        if found and not rest.strip("0.Z"):
            return day
    return value
