"""Reads a query with DuckDB's own parser before it runs: one statement that only reads, and all that it names.

`query` has no other defence against SQL that writes than this and a connection that can reach nothing; each alone would
do. Must not know of frames, files or kernels. Read `asked`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import ToolError

READERS = frozenset({
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto", "read_json_objects", "read_ndjson_objects", "parquet_schema", "parquet_metadata",
})  # fmt: skip
"""Functions of DuckDB's that read files whose names they are given."""

_TABLE_FUNCTIONS = READERS | {
    *("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary"),
    *("duckdb_functions", "duckdb_types", "duckdb_keywords", "duckdb_tables", "duckdb_columns", "pragma_table_info"),
}
_NO_FUNCTIONS = frozenset({
    *("getenv", "query", "query_table", "nextval", "currval", "write_log", "json_execute_serialized_sql", "current_setting"),
    *("setval", "json_serialize_plan"),
    *("read_text", "read_blob", "glob", "sniff_csv", "which_secret", "duckdb_secrets", "getvariable", "setseed"),
})  # fmt: skip
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE", "VALUES_NODE"})
_EXPLAIN = re.compile(r"\A(?P<head>(?:\s|--[^\n]*\n|/\*.*?\*/)*explain\b(?:\s+analyze\b)?(?:\s*\([^()]*\))?)(?P<rest>.*)\Z",
                      re.IGNORECASE | re.DOTALL)  # fmt: skip
_SIGNS = re.compile(rb"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|[\[\](){}]", re.DOTALL)
_FILES_ONLY = "query reads files with read_csv, read_parquet and read_json only"
_INSTEAD = "Do it in a cell with add_cell, where the person sees it"


@dataclass(frozen=True, slots=True)
class FileCall:
    """A call of one of `READERS` in the text: its place in bytes, the files that it names, and where each stands."""

    start: int
    end: int
    files: tuple[tuple[int, int, str], ...]
    """Start, end (bytes) and text of each file's name."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One statement that only reads. `head` is its `EXPLAIN`, `sql` the rest.

    `tables` are plain names, `paths` those with a schema; `own` names of its WITH; `columns` the columns that it names,
    `functions` the functions, in small letters.
    `exact`: DuckDB gave the syntax tree; else (a PIVOT whose values it finds itself) the names are all words of the text.
    """

    sql: str
    head: str = ""
    tables: tuple[str, ...] = ()
    paths: tuple[tuple[str, ...], ...] = ()
    own: frozenset[str] = frozenset()
    calls: tuple[FileCall, ...] = ()
    columns: tuple[str, ...] = ()
    exact: bool = True
    functions: frozenset[str] = frozenset()


def asked(con: Any, sql: str) -> Asked:
    """Return what `sql` asks for; `con` is any connection of DuckDB, used for its parser only.

    Raises `ToolError` for SQL that is wrong, that is not one statement, or that would do more than read.
    """
    import duckdb  # noqa: PLC0415  (only where a query is made)

    try:
        statements = con.extract_statements(sql)
    except duckdb.Error as error:
        raise ToolError(str(error).strip()) from None
    if not statements:
        raise ToolError("the SQL is empty: give one SELECT")
    if len(statements) > 1:
        raise ToolError(f"these are {len(statements)} statements: give one a call")
    kind, plain = statements[0].type.name, sql.strip().rstrip(";").rstrip()
    if kind == "EXPLAIN":
        found = _EXPLAIN.match(plain)
        if found is None:
            raise ToolError("this EXPLAIN can't be read: write EXPLAIN SELECT …")
        inner = asked(con, found["rest"])
        return Asked(
            inner.sql,
            f"{found['head']} ",
            inner.tables,
            inner.paths,
            inner.own,
            inner.calls,
            inner.columns,
            inner.exact,
            inner.functions,
        )
    if kind not in {"SELECT", "MULTI"}:
        raise ToolError(_refused(kind))
    tree = json.loads(con.execute("SELECT json_serialize_sql(?::VARCHAR)", [plain]).fetchall()[0][0])
    if not tree.get("error"):
        return _of_tree(plain, tree)
    if re.search(r"\bpivot\b", plain, re.IGNORECASE):
        return _of_words(con, plain)
    raise ToolError(_refused(kind))


def _refused(kind: str) -> str:
    what = kind.replace("_", " ")
    if kind in {"COPY", "EXPORT"}:
        return f"query only reads, and {what} writes files. To write one, add a cell (df.to_parquet(…))"
    return f"query only reads (SELECT, WITH, FROM, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN, PIVOT): {what} is not run. {_INSTEAD}"


def _of_tree(sql: str, tree: Any) -> Asked:
    tables: dict[str, None] = {}
    paths: dict[tuple[str, ...], None] = {}
    columns: dict[str, None] = {}
    own: set[str] = set()
    functions: set[str] = set()
    calls: list[FileCall] = []
    for node in _nodes(tree["statements"]):
        kind = str(node.get("type") or "")
        if kind.endswith("_NODE") and kind not in _NODES:
            raise ToolError(_refused(kind.removesuffix("_QUERY_NODE").removesuffix("_NODE")))
        functions |= {str(node["function_name"]).lower()} if node.get("function_name") else set()
        if named := (node.get("cte_map") or {}).get("map"):
            own |= {str(entry["key"]) for entry in named}
            _check_circle(named)
        if kind == "BASE_TABLE":
            path = tuple(map(str, node["qualified_name"]["path"]))
            (tables.setdefault(path[0]) if len(path) == 1 else paths.setdefault(path))
        elif kind == "TABLE_FUNCTION":
            calls += _call(sql, node)
        elif kind == "FUNCTION":
            _check_function(str(node["function_name"]).lower())
        elif kind == "COLUMN_REF":
            columns.update(dict.fromkeys(map(str, node["column_names"])))
        elif kind == "SHOW_REF" and not node.get("query"):
            for name in node["qualified_name"]["path"]:
                tables.setdefault(str(name).strip('"')) if name not in {
                    '"tables"',
                    '"databases"',
                    '"schemas"',
                } else None
    shown = {"__show_tables_expanded", "tables", "databases", "schemas", "variables"}
    return Asked(
        sql,
        "",
        tuple(name for name in tables if name not in shown),
        tuple(paths),
        frozenset(own),
        tuple(calls),
        tuple(columns),
        functions=frozenset(functions),
    )


def _check_circle(named: Sequence[Any]) -> None:
    """Raise `ToolError` where parts of a WITH read one another in a circle: DuckDB only says that a table is not there."""
    spelled = {str(entry["key"]).casefold(): str(entry["key"]) for entry in named}
    reads: dict[str, list[str]] = {}
    for entry in named:
        name, query = str(entry["key"]).casefold(), entry["value"]
        nodes = list(_nodes(query))
        inner = {str(e["key"]).casefold() for node in nodes for e in (node.get("cte_map") or {}).get("map") or ()}
        paths = [node["qualified_name"]["path"] for node in nodes if node.get("type") == "BASE_TABLE"]
        found = dict.fromkeys(str(path[0]).casefold() for path in paths if len(path) == 1)
        itself = any(str(node.get("type")).startswith("RECURSIVE") for node in nodes)
        reads[name] = [one for one in found if one in spelled and one not in inner and not (itself and one == name)]
    for name, first in reads.items():
        trail, ways = [name], [iter(first)]
        while ways:
            if (step := next(ways[-1], None)) is None:
                trail.pop()
                ways.pop()
            elif step == name:
                circle = ", ".join(f"{spelled[a]} reads {spelled[b]}" for a, b in itertools.pairwise([*trail, name]))
                raise ToolError(
                    f"the WITH goes in a circle: {circle}. Give a part another name than the table that it reads, or write WITH RECURSIVE"
                )
            elif step not in trail:
                trail.append(step)
                ways.append(iter(reads[step]))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    left = [value]
    while left:
        match left.pop():
            case dict() as node:
                yield node
                left += reversed(list(node.values()))
            case list() as items:
                left += reversed(items)
            case _:
                pass


def _check_function(name: str) -> None:
    if name in _NO_FUNCTIONS:
        raise ToolError(f"query does not run {name}(): {_FILES_ONLY}" if "read" in name or name in {"glob", "sniff_csv"}
                        else f"query does not run {name}()")  # fmt: skip


def _call(sql: str, node: dict[str, Any]) -> list[FileCall]:
    """Return a table function as the files that it reads; raise `ToolError` for one that may do anything else."""
    function = node["function"]
    name = str(function["function_name"]).lower()
    _check_function(name)
    if name not in _TABLE_FUNCTIONS:
        raise ToolError(f"query does not run the table function {name}(): {_FILES_ONLY}")
    if name not in READERS:
        return []
    given = [argument["expression"] for argument in function["arguments"] if not argument.get("name")]
    if not given:
        raise ToolError(f"{name}() needs the name of a file first")
    first = given[0]
    listed = first.get("class") == "FUNCTION" and first.get("function_name") in {"list_value", "array_value"}
    constants = [argument["expression"] for argument in first["arguments"]] if listed else [first]
    files: list[tuple[int, int, str]] = []
    raw = sql.encode()
    for constant in constants:
        literal = constant.get("literal") or {}
        if constant.get("class") != "CONSTANT" or literal.get("kind") != "STRING":
            raise ToolError(f"{name}(): write the file's name as plain text, not as an expression")
        start = int(constant["query_location"])
        end = start + int(constant["query_location_length"])
        if raw[start : start + 1] not in {b"'", b"$", b"E", b"e"}:
            raise ToolError(f"{name}(): write the file's name in single quotes")
        files.append((start, end, str(literal["text"])))
    start = int(node["query_location"])
    return [FileCall(start, _end_of_call(raw, files[-1][1] if files else start, listed=listed), tuple(files))]


def _end_of_call(raw: bytes, at: int, *, listed: bool) -> int:
    """Return where a call ends in which `at` stands: DuckDB's own end is that of an alias behind it."""
    depth = 2 if listed and raw[at:].lstrip().startswith(b"]") else 1
    for found in _SIGNS.finditer(raw, at):
        sign = found[0][:1]
        depth += (sign in b"([{") - (sign in b")]}")
        if not depth:
            return found.end()
    raise ToolError("a call that reads files has no end")


def _of_words(con: Any, sql: str) -> Asked:
    """Return all words of a PIVOT as tables that it may name: DuckDB has no tree of it, and what is not there is not found."""
    import duckdb  # noqa: PLC0415  (as above)

    del con
    raw = sql.encode()
    tokens = duckdb.tokenize(sql)
    starts = [start for start, _ in tokens] + [len(raw)]
    words: dict[str, None] = {}
    for (start, kind), end in zip(tokens, starts[1:], strict=True):
        text = raw[start:end].decode("utf-8", "replace").strip()
        after = raw[end : end + 1]
        if kind == duckdb.token_type.identifier:
            name = text.strip('"')
            if after == b"(" and (
                name.lower() in _NO_FUNCTIONS | READERS or name.lower().startswith(("read_", "duckdb_"))
            ):
                raise ToolError(
                    f"{name}() can't be used in a PIVOT without IN (…): name its values, or begin with FROM"
                )
            words[name] = None
        elif kind == duckdb.token_type.string_const and re.match(r"'[^']*'", text):
            words[text[1:].partition("'")[0]] = None
    return Asked(sql, tables=tuple(words), exact=False)
