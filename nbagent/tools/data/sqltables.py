"""Which values of the notebook SQL may read, and which of their columns: tables in memory, as they lie there.

Nothing lazy is computed, nothing that can be read only once is taken, and no code of the person's runs: DuckDB would call
`str()` on objects in a column, so columns with objects of unknown classes are left out, and it is said. Read `table_of`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.tools.data.kinds import FRAMES, class_name, is_lazy, names_of
from nbagent.tools.describe import label_of
from nbagent.tools.secrets import HIDDEN, secret_name
from nbagent.tools.veil import Told

_POLARS = "polars.dataframe.frame.DataFrame"
_ARROW = frozenset({"pyarrow.lib.Table", "pyarrow.lib.RecordBatch"})
_PLAIN = frozenset(
    {
        str,
        int,
        float,
        bool,
        complex,
        bytes,
        type(None),
        decimal.Decimal,
        uuid.UUID,
        dt.date,
        dt.datetime,
        dt.time,
        dt.timedelta,
    }
)
_HOLDERS = (list, tuple, dict, set, frozenset)
_LIBRARIES = ("pandas", "numpy", "pyarrow")
_NESTED = 2_000_000


@dataclass(frozen=True, slots=True)
class Readable:
    """A table that DuckDB may scan in place, and what of the value is not in it, in words."""

    table: Any
    left_out: tuple[str, ...] = ()


def is_table(value: object) -> bool:
    """Whether a value is a table that SQL can read: a pandas, polars or pyarrow one, perhaps with hidden columns."""
    cls = type(value)
    if type(value) is Told:  # isinstance would ask the value
        return value.table is not None
    names = set(names_of(cls))
    return not names.isdisjoint({*FRAMES, _POLARS, *_ARROW}) and _is_of_library(cls)


def labels_of(table: Any) -> list[Any]:
    """Return the labels of the columns of a table as `is_table` knows them."""
    return list(table.schema.names if str(type(table).__module__).startswith("pyarrow") else table.columns)


def table_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the names of the variables that SQL can read."""
    return [
        name for name in namespace if not name.startswith("_") and not secret_name(name) and is_table(namespace[name])
    ]


def table_of(name: str, value: Any, stopped: Callable[[], bool] = lambda: False) -> Readable:
    """Return what DuckDB may scan of the variable `name`; look at it on a thread, objects in its columns are all looked at.

    Raises `ToolError` for a value that is no such table, with what to do instead.
    """
    hidden: tuple[str, ...] = ()
    if type(value) is Told:
        if value.table is None:
            raise ToolError(f"{name} is hidden by the person: it can't be queried")
        value, hidden = value.table()
    if secret_name(name):
        raise ToolError(f"{name}: {HIDDEN}")
    cls = type(value)
    if not is_table(value):
        raise ToolError(_no_table(name, cls))
    names = set(names_of(cls))

    def why(label: object) -> str:
        """Say why a column is not to be seen at all, "" where it may be."""
        text = str(label)
        if text in hidden:
            return f"{name}.{text} (hidden by the person)"
        return f"{name}.{text} (looks like a secret)" if secret_name(text) else ""

    if names & FRAMES:
        return _of_pandas(name, value, why, stopped)
    return _of_polars(name, value, why) if _POLARS in names else _of_arrow(value, why)


def _is_of_library(cls: type) -> bool:
    """Whether a class is one of the library's own: a class of the person's may have its own `columns`."""
    module = str(type.__getattribute__(cls, "__module__")).partition(".")[0]
    return module in {"pandas", "polars", "pyarrow", "geopandas"}


def _no_table(name: str, cls: type) -> str:
    kind = class_name(cls)
    if is_lazy(cls):
        how = f"{name}.df()" if kind.startswith(("duckdb", "_duckdb")) else f"{name}.collect() or .compute()"
        return f"{name} is {kind}, which is lazy: compute it in a cell first ({how})"
    if kind.startswith("pandas") and kind.endswith("Series"):
        return f"{name} is a pandas Series: make a table of it in a cell ({name}.to_frame())"
    return f"{name} is {kind}: query reads pandas, polars and pyarrow tables, and files"


_Why = Callable[[object], str]


def _of_polars(name: str, value: Any, why: _Why) -> Readable:
    said = {label: why(label) for label in value.columns}
    for label, kind in zip(value.columns, value.dtypes, strict=True):
        if str(kind) == "Object" and not said[label]:
            said[label] = f"{name}.{label} (Python objects)"
    left = {label: text for label, text in said.items() if text}
    return Readable(value.drop(list(left)) if left else value, tuple(left.values()))


def _of_arrow(value: Any, why: _Why) -> Readable:
    left = {label: text for label in value.schema.names if (text := why(label))}
    kept = [label for label in value.schema.names if label not in left]
    return Readable(value.select(kept) if left else value, tuple(left.values()))


def _of_pandas(name: str, value: Any, why: _Why, stopped: Callable[[], bool]) -> Readable:
    pandas = sys.modules["pandas"]
    labels = list(value.columns)
    if odd := [label for label in labels if not _is_plain(label)]:
        raise ToolError(
            f"{name} has a column labelled by an object of class {class_name(type(odd[0]))}: rename it in a cell"
        )
    kept: list[int] = []
    said: list[str] = []
    for at, label in enumerate(labels):
        if text := why(label):
            said.append(text)
        elif text := _unreadable(value.iloc[:, at], stopped):
            said.append(f"{name}.{label} ({text})")
        else:
            kept.append(at)
    if not kept:
        raise ToolError(f"{name} has no column that query can read{': ' if said else ''}{'; '.join(said)}")
    if len(set(map(str, labels))) < len(labels):
        said.append(f"{name} has labels that occur more than once: the later ones are numbered")
    if any(one is not None for one in value.index.names):
        shown = ", ".join(label_of(one) for one in value.index.names)
        said.append(f"the index of {name} ({shown}) is no column here: reset_index() in a cell makes it one")
    whole = len(kept) == len(labels) and type(value) is pandas.DataFrame
    return Readable(value if whole else _columns(pandas, value, kept), tuple(said))


def _columns(pandas: Any, value: Any, kept: list[int]) -> Any:
    """Return a frame of some columns that shares their memory; `value[[…]]` would copy it."""
    columns: dict[str, Any] = {}
    for at in kept:
        text = str(value.columns[at])
        label = next(one for one in (text, *(f"{text}_{n}" for n in range(1, len(kept) + 1))) if one not in columns)
        columns[label] = value.iloc[:, at]
    return pandas.DataFrame(columns, copy=False)


def _is_plain(label: Any) -> bool:
    if type(label) is tuple:
        return all(map(_is_plain, label))
    module = str(type.__getattribute__(type(label), "__module__")).partition(".")[0]
    return type(label) in _PLAIN or module in _LIBRARIES


def _unreadable(column: Any, stopped: Callable[[], bool]) -> str:
    """Return why DuckDB must not read a column of a frame, "" where it may."""
    kind = column.dtype
    module = str(type.__getattribute__(type(kind), "__module__")).partition(".")[0]
    if module not in _LIBRARIES:
        return f"values of the type {class_name(type(kind))}"
    values: Any = column.cat.categories if str(kind) == "category" else column
    if values.dtype != object:
        return ""
    return _objects(values.to_numpy(), stopped)


def _objects(values: Any, stopped: Callable[[], bool]) -> str:
    """Look at the class of each object, and of those in lists and dicts."""
    left: list[Any] = []
    for start in range(0, len(values), 100_000):
        if stopped():
            return "not looked at"
        part = values[start : start + 100_000]
        kinds = set(map(type, part))
        if odd := _odd(kinds):
            return f"objects of class {class_name(odd)}"
        if not kinds.isdisjoint(_HOLDERS):
            left += [one for one in part if type(one) in _HOLDERS]
    looked = 0
    while left:
        looked += 1
        if looked > _NESTED or stopped():
            return "too many nested objects"
        one = left.pop()
        inner = [*dict.keys(one), *dict.values(one)] if type(one) is dict else list(one)
        if odd := _odd(set(map(type, inner))):
            return f"objects of class {class_name(odd)}"
        left += [each for each in inner if type(each) in _HOLDERS]
    return ""


def _odd(kinds: set[type]) -> type | None:
    for kind in kinds - _PLAIN - set(_HOLDERS):
        if str(type.__getattribute__(kind, "__module__")).partition(".")[0] not in _LIBRARIES:
            return kind
    return None
