"""What a person has hidden: which variables and columns, what of them is told, and whose outputs are held back.

Variables are hidden by name. Code that names one shows nothing to the model, whatever it prints; names that are made of it
are hidden with it (veil_names.py). What code reads from elsewhere (the same file again) can't be known. Read `Veil`.
"""

from __future__ import annotations

import fnmatch
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nbagent.core.ports import WITHHELD, Output
from nbagent.tools.data.columns import Table, table_of
from nbagent.tools.data.outlines import outline
from nbagent.tools.describe import brief, label_of
from nbagent.tools.details import details

Level = Literal["", "schema", "hidden"]

_WORD = re.compile(r"[^\W\d]\w*")
_REACHES = frozenset(
    {
        *("globals", "locals", "vars", "user_ns", "get_objects", "eval", "exec", "whos", "Out", "_oh", "who_ls"),
        *("__main__", "user_module", "user_global_ns", "f_globals", "f_locals", "__globals__", "get_referrers"),
        *("getclosurevars", "ev", "run_cell", "run_cell_async", "run_code", "runcode", "runsource"),
    }
)
_OUT = re.compile(r"_i?\d+\Z")
_SCANNED = 5_000
_SHORTEST = 3


class Told:
    """Stands in a namespace for a value of which less is told than it holds. `more` tells details, of one column if named.

    `table` gives the table itself and the labels of its hidden columns, where only those are hidden: for what leaves them out.
    """

    def __init__(
        self,
        line: str,
        more: Callable[[str | None], str],
        table: Callable[[], tuple[Any, tuple[str, ...]]] | None = None,
    ) -> None:
        self.line, self.more, self.table = line, more, table


@dataclass(frozen=True, slots=True)
class Veil:
    """What is hidden now. `hidden` and `schema` are patterns of names (`df.ssn`: of a column); `shown` are names that are not.

    `made` are names that were made of hidden ones, `also` other names for the very same objects: each with these names.
    """

    hidden: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    shown: frozenset[str] = frozenset()
    made: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    also: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])

    def __bool__(self) -> bool:
        return bool(self.hidden or self.schema)

    def own(self, name: str) -> Level:
        """How far a name is hidden by a pattern."""
        if name in self.shown:
            return ""
        if _fits(name, self.hidden):
            return "hidden"
        return "schema" if _fits(name, self.schema) else ""

    def of(self, name: str, value: object = None) -> Level:
        """How far the variable `name` is hidden, also because of what it was made of. Modules are never hidden by a `*`."""
        if name in self.shown or (type(value) is types.ModuleType and name not in {*self.hidden, *self.schema}):
            return ""
        levels = {self.own(name), *(self.own(source) for source in self._sources(name))}
        return "hidden" if "hidden" in levels else "schema" if "schema" in levels else ""

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the patterns of columns that are hidden in the table `name`."""
        if name in self.shown:
            return ()
        names = {name, *self._sources(name)}
        pairs = [text.partition(".") for text in (*self.hidden, *self.schema) if "." in text]
        found = [column for table, _, column in pairs if any(fnmatch.fnmatchcase(one, table) for one in names)]
        return tuple(column for column in found if f"{name}.{column}" not in self.shown)

    def _sources(self, name: str) -> set[str]:
        return {*self.made.get(name, ()), *self.also.get(name, ())}

    def names(self, namespace: Mapping[str, Any]) -> list[str]:
        """Return the variables that are hidden as a whole."""
        exact = [name for name in (*self.hidden, *self.schema) if name.isidentifier()]
        found = [name for name, value in namespace.items() if self.of(name, value)]
        return list(
            dict.fromkeys([*found, *(name for name in exact if self.own(name)), *(n for n in self.also if self.of(n))])
        )

    # ── code ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def reached(self, code: str, namespace: Mapping[str, Any]) -> list[str]:
        """Return in words how code reaches what is hidden as a whole: [] where it names nothing of it."""
        if not self:
            return []
        words, hidden = set(_WORD.findall(code)), set(self.names(namespace))
        found = [f"`{name}`" for name in sorted(words & hidden)]
        around = {word for word in words if word in _REACHES or _OUT.match(word)}
        if not found and hidden and around:
            return [f"whatever variable `{min(around)}` gives"]
        return found

    def reached_columns(self, code: str, namespace: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the tables that code names and their hidden columns, as pairs of names."""
        words = set(_WORD.findall(code)) if self else set[str]()
        return [
            (name, label) for name in sorted(words & set(namespace)) for label in self._labels(name, namespace[name])
        ]

    def _labels(self, name: str, value: Any) -> list[str]:
        patterns = self.columns(name)
        if not patterns or (table := table_of(value)) is None:
            return []
        return [str(label) for label in table.labels() if any(fnmatch.fnmatchcase(str(label), p) for p in patterns)]

    def hints(self, code: str, namespace: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a person reads of code that reaches what they have hidden."""
        said = [
            f"reads {what}, which you have hidden: the model does not see its output"
            for what in self.reached(code, namespace)
        ]
        words = set(_WORD.findall(code)) if self else set[str]()
        said += [
            f"reads `{name}.{label}`, which you have hidden"
            for name, label in self.reached_columns(code, namespace)
            if label in words
        ]
        return tuple(dict.fromkeys(said))

    def outputs(self, code: str, outputs: Sequence[Output], namespace: Mapping[str, Any]) -> tuple[Output, ...]:
        """Return what the model may see of the outputs of `code`: all of it, or that something was held back."""
        if not self or not outputs:
            return tuple(outputs)
        if reached := self.reached(code, namespace):
            return (_withheld(", ".join(reached), outputs),)
        for name, label in self.reached_columns(code, namespace):
            if _shows(outputs, label, code, namespace[name]):
                return (_withheld(f"`{name}.{label}`", outputs),)
        return tuple(outputs)

    # ── variables ────────────────────────────────────────────────────────────────────────────────────────────────────

    def told(self, name: str, value: Any) -> Any:
        """Return what stands for a variable where it is told of: itself, or a `Told`."""
        level = self.of(name, value)
        if level == "hidden":
            return Told("hidden by the person", lambda _: f"{name} is hidden by the person: nothing of it is shown.")
        if level == "schema":
            return Told(f"{schema_line(value)} (schema only)", lambda _: schema(value))
        labels = self._labels(name, value)
        if not labels:
            return value
        return Told(brief(value), lambda column: _without(value, labels, column), lambda: (value, tuple(labels)))


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns if "." not in pattern)


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _withheld(what: str, outputs: Sequence[Output]) -> Output:
    failed = next((str(o.get("ename") or "an error") for o in outputs if o.get("output_type") == "error"), "")
    ended = f" It ended with {failed}; its text is held back too." if failed else ""
    text = (
        f"[The output is held back from you: the code reads {what}, which the person has hidden. They see it.{ended} Go on "
        "without it, or ask them.]"
    )
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {WITHHELD: True}}


def _shows(outputs: Sequence[Output], label: str, code: str, table: Any) -> bool:
    """Whether outputs show a column: its label, one of its values, or a picture that code made which names it."""
    texts = list(_texts(outputs))
    if any(_names(text, label) for text in texts):
        return True
    if any(mime.startswith("image/") for o in outputs for mime in (o.get("data") or {})) and _names(code, label):
        return True
    if (known := _values(table, label)) is None:
        return True  # not at hand: whether they are in the outputs can't be known
    values = {text for v in known if len(text := str(v)) >= _SHORTEST}
    words = {word for text in texts for word in re.split(r"[\s\"'\[\](){},;|<>]+", text)}
    return bool(values & words) or any(" " in value and value in text for value in values for text in texts)


def _values(value: Any, label: str) -> list[Any] | None:
    table = table_of(value)
    if table is None:
        return None
    found = [table.values(n, _SCANNED) for n, one in enumerate(table.labels()) if str(one) == label]
    return None if None in found else [item for pair in found if pair is not None for item in pair[0]]


def _names(text: str, label: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text) is not None


def _texts(outputs: Sequence[Output]) -> Iterator[str]:
    for output in outputs:
        parts: list[Any] = [output.get("text"), output.get("evalue"), *(output.get("traceback") or [])]
        parts += [value for mime, value in (output.get("data") or {}).items() if not str(mime).startswith("image/")]
        for part in parts:
            if part:
                yield "".join(map(str, part)) if isinstance(part, list) else str(part)


# ── names and types, never values ────────────────────────────────────────────────────────────────────────────────────


def schema_line(value: Any) -> str:
    """Return the type of a value with its size, shape and dtype; of no value anything that is in it."""
    return outline(value)


def schema(value: Any) -> str:
    """Return `schema_line`, and of a table the labels and dtypes of its columns."""
    lines = [f"{schema_line(value)}. Its values are hidden by the person."]
    if (table := table_of(value)) is not None:
        lines += [f"  {label_of(label)}  {table.dtype(n)}" for n, label in enumerate(table.labels()[:_SCANNED])]
    return "\n".join(lines)


def _without(value: Any, labels: Sequence[str], column: str | None) -> str:
    from nbagent.tools.variables import column_of  # noqa: PLC0415  (it needs this module's Told)

    table: Table | None = table_of(value)
    if table is None:
        return f"{outline(value)}. Columns of it are hidden by the person."
    every = table.labels()
    hidden = {n for n, label in enumerate(every) if str(label) in labels}
    if column is not None:
        if column in labels or column in {label_of(every[n]) for n in hidden}:
            rows = "" if table.rows is None else f" of {table.rows:,} rows"
            return f"column {column}{rows}: its values are hidden by the person."
        return column_of("the table", value, column)
    named = ", ".join(f"{label_of(every[n])} ({table.dtype(n)})" for n in sorted(hidden))
    shown = details(table.without(hidden)) if len(hidden) < len(every) else ""
    return f"{brief(value)}\nHidden by the person, only the types are told: {named}.\nThe other columns, of the first 10,000 rows:\n{shown}"
