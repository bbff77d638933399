"""Says more of one object, in time that does not grow with it: schema and sample, items, signature, attributes.

The same care as in `describe.py`: known types by name, unknown ones only from outside, lazy ones never computed; where
a count needs the data, it is taken from a part of it, and says so. Read `details` first.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable
from typing import Any

from nbagent.tools.data.describers import Describer, attempt, find_describer, lines_of
from nbagent.tools.data.kinds import bases_of, class_name, held, names_of, type_name
from nbagent.tools.describe import (
    FRAMES,
    SERIES,
    brief,
    brief_of,
    brief_plain,
    failed,
    label_of,
    safely,
    short,
    signature_of,
    table_kind,
)
from nbagent.tools.secrets import HIDDEN, WINDOW, hidden, mask, secret_name

_COLUMNS = 60
_SAMPLE_COLUMNS = 12
_SAMPLE_ROWS = 3
SAMPLE_FOR_COUNTS = 10_000


def details(value: object, name: str = "") -> str:
    """Return several lines about the value: schema and a marked sample of a table, items, signature, attributes.

    Of a value under a `name` that looks like a secret's nothing is shown but its kind and size.
    """
    if (instead := hidden(name, value)) is not None:
        return instead
    if secret_name(name) and not _DATA.isdisjoint(names_of(type(value))):
        return f"{brief(value)}\nvalues: {HIDDEN}"
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
        return "\n".join([*lines, f"({failed(describer, ended or '')})", _plain_details(value)])
    return "\n".join([*lines, f"<repr failed: {type(ended).__name__}>"])


def _plain_details(value: Any) -> str:
    known = next((_DETAILS[known] for known in names_of(type(value)) if known in _DETAILS), None)
    return safely(lambda: (known or _object_details)(value))


def _pandas_details(value: Any) -> str:
    rows, columns = value.shape
    head = value.head(SAMPLE_FOR_COUNTS)
    missing = [int(n) for n in head.iloc[:, :_COLUMNS].isna().sum()]
    dtypes = list(value.dtypes.iloc[:_COLUMNS])
    lines = [
        f"{table_kind(value)}, {rows:,} rows x {columns:,} columns, index: {_index(value.index)}",
        f"columns (label, dtype, missing in {of_rows(len(head), rows)}):",
        *(
            f"  {label_of(label)}  {dtype}  {count}"
            for label, dtype, count in zip(value.columns[:_COLUMNS], dtypes, missing, strict=True)
        ),
    ]
    if columns > _COLUMNS:
        lines.append(f"  … and {columns - _COLUMNS:,} more columns")
    if not value.columns.is_unique:
        lines.append("  some labels occur more than once: df[label] gives all of them")
    return "\n".join([*lines, *_sample(value.columns, rows, columns, lambda r, c: value.iat[r, c])])


def _index(index: Any) -> str:
    size = len(index)
    ends = f" {brief_of(index.name, index[0], 2)} … {brief_of(index.name, index[-1], 2)}" if size else ""
    return f"{type(index).__name__}{ends}"


def of_rows(shown: int, rows: int) -> str:
    """Say which rows a count was taken from."""
    return f"all {rows:,} rows" if shown >= rows else f"the first {shown:,} of {rows:,} rows"


def _sample(labels: Any, rows: int, columns: int, cell: Callable[[int, int], Any]) -> list[str]:
    """Return the first rows as a table that says that it is a part."""
    shown_rows, shown_columns = min(rows, _SAMPLE_ROWS), min(columns, _SAMPLE_COLUMNS)
    if not shown_rows or not shown_columns:
        return ["no rows"]
    of_columns = "all columns" if shown_columns == columns else f"{shown_columns} of {columns:,} columns"
    named = list(itertools.islice(labels, shown_columns))
    header = " | ".join(short(label_of(label), 30) for label in named)
    table = [
        " | ".join(short(brief_of(label, cell(row, place), 1), 40) for place, label in enumerate(named))
        for row in range(shown_rows)
    ]
    return [f"sample, {shown_rows} of {rows:,} rows, {of_columns}:", f"  {header}", *(f"  {line}" for line in table)]


def _series_details(value: Any) -> str:
    head = value.head(SAMPLE_FOR_COUNTS)
    shown = ", ".join(brief_of(value.name, v, 1) for v in head.iloc[:10].tolist())
    return "\n".join(
        [
            f"{brief(value)}, index: {_index(value.index)}",
            f"missing: {int(head.isna().sum())} in {of_rows(len(head), len(value))}",
            f"first {min(10, len(value))} of {len(value):,}: {shown}",
        ]
    )


def _polars_details(value: Any) -> str:
    rows, columns = value.shape
    schema = [f"  {label_of(n)}  {short(str(t), 80)}" for n, t in itertools.islice(value.schema.items(), _COLUMNS)]
    more = [f"  … and {columns - _COLUMNS:,} more columns"] if columns > _COLUMNS else []
    sample = value.head(_SAMPLE_ROWS).rows()
    return "\n".join(
        [
            f"{table_kind(value)}, {rows:,} rows x {columns:,} columns",
            "columns (name, dtype):",
            *schema,
            *more,
            *_sample(value.columns, rows, columns, lambda r, c: sample[r][c]),
        ]
    )


def _lazyframe_details(value: Any) -> str:
    schema = value.collect_schema()
    lines = [f"  {label_of(n)}  {short(str(t), 80)}" for n, t in itertools.islice(schema.items(), _COLUMNS)]
    return "\n".join([f"polars LazyFrame with {len(schema)} columns, not computed (.collect() would)", *lines])


def _array_details(value: Any) -> str:
    first = value.reshape(-1)[:10] if value.size <= 1_000_000 or value.flags.c_contiguous else value.flat[:10]
    shown = ", ".join(brief(v, 1) for v in first.tolist())
    return f"{brief(value)}\nfirst {min(10, value.size)} of {value.size:,} values: {shown}"


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
        ]
    )


def _dict_details(value: Any) -> str:
    size = dict.__len__(value)
    lines = [f"  {brief(k, 1)}: {brief_of(k, v)}" for k, v in itertools.islice(dict.items(value), 20)]
    return "\n".join(
        [f"{class_name(type(value))} of {size:,}", *lines, *([f"  … and {size - 20:,} more"] if size > 20 else [])]
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


def _figure_details(value: Any) -> str:
    width, height = value.get_size_inches()
    axes = [
        f"  title {brief(a.get_title(), 1)}, x {brief(a.get_xlabel(), 1)}, y {brief(a.get_ylabel(), 1)},"
        f" {len(a.lines)} lines, {len(a.patches)} patches, {len(a.collections)} collections"
        for a in value.axes[:20]
    ]
    return "\n".join([f"matplotlib figure {width:g} x {height:g} inches, {len(value.axes)} axes", *axes])


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


_DATA = frozenset(
    {*FRAMES, *SERIES, "numpy.ndarray", "polars.dataframe.frame.DataFrame", "polars.series.series.Series"}
)

_DETAILS: dict[str, Callable[[Any], str]] = {
    "nbagent.tools.veil.Told": lambda value: value.more(None),
    "builtins.list": _list_details,
    "builtins.tuple": _list_details,
    "builtins.dict": _dict_details,
    "builtins.str": _text_details,
    "builtins.function": _function_details,
    "builtins.type": _class_details,
    "builtins.module": _module_details,
    "numpy.ndarray": _array_details,
    "polars.dataframe.frame.DataFrame": _polars_details,
    "polars.lazyframe.frame.LazyFrame": _lazyframe_details,
    "matplotlib.figure.Figure": _figure_details,
    **dict.fromkeys(FRAMES, _pandas_details),
    **dict.fromkeys(SERIES, _series_details),
}
