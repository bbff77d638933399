"""Names that magics and shell lines of a cell define or use: `%%capture out`, `%store -r x`, `%%sql result <<`, `!ls {folder}`.

Pure text; nothing is run. It must not know of cells. Read `magic_names`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nbagent.tools.sqlcells import read_sql

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_INTO = re.compile(r"\s*([^\W\d]\w*)\s*<<")
_SAVE = re.compile(r"--(?:save|out|err|proc)[ =]([^\W\d]\w*)")
_INSERTED = re.compile(r"\{\{?\s*([^\W\d]\w*)[^{}]*\}|(?<!\$)\$\{?([^\W\d]\w*)|(?<![:\w]):([^\W\d]\w*)")
_TABLE = re.compile(r"\b(?:from|join|describe|summarize|table)\s+\"?([^\W\d]\w*)\"?", re.IGNORECASE)
_BINDS_ALL = {
    "run": "%run",
    "pylab": "%pylab",
    "rerun": "%rerun",
    "load": "%load",
    "recall": "%recall",
    "macro": "%macro",
}


@dataclass(frozen=True, slots=True)
class MagicNames:
    """What a magic `defines` and may use (`maybe`); `opens`: why it may bind names that can't be told."""

    defines: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    opens: str = ""


def magic_names(name: str, rest: str, body: str = "") -> MagicNames:
    """Return the names of `%name rest`, or of a `%%name rest` cell with the text `body` below."""
    words = [word for word in rest.split() if not word.startswith("-")]
    if name in {"sql", "bigquery", "sparksql", "duckdb"}:
        return _sql(name, rest, body)
    if name == "capture":
        return MagicNames(frozenset(word for word in words[:1] if word.isidentifier()))
    if name == "store" and "-r" in rest.split():
        return MagicNames(frozenset(words), opens="" if words else "%store -r")
    if name in {"bash", "sh", "script", "sx", "system"}:
        return MagicNames(frozenset(_SAVE.findall(rest)), shell_names(body))
    if name in _BINDS_ALL:
        return MagicNames(opens=_BINDS_ALL[name])
    return MagicNames()


def _sql(name: str, rest: str, body: str) -> MagicNames:
    """A query's result goes to the name before `<<` (of BigQuery the first word); tables may be data frames or saved queries."""
    if name == "sql":
        cell = read_sql(rest, body)
        makes = frozenset({cell.makes, cell.saves} - {""})
        return MagicNames(makes, frozenset({*cell.uses, *cell.uses_saved, *_inserted(cell.sql)}) - makes)
    text = f"{rest}\n{body}"
    defines = {found[1] for found in [_INTO.match(rest), _INTO.match(body)] if found}
    if name == "bigquery" and (first := _IDENTIFIER.match(rest)):
        defines.add(first[0])
    maybe = set(_TABLE.findall(text)) | _inserted(text)
    return MagicNames(frozenset(defines), frozenset(maybe - defines))


def shell_names(command: str) -> frozenset[str]:
    """Return the names whose values IPython may put into a shell command."""
    return frozenset(_inserted(command))


def _inserted(text: str) -> set[str]:
    return {name for found in _INSERTED.findall(text) for name in found if name}
