"""Reads tables of a DuckDB connection of the person's, by a cursor of its own in a transaction that can't write.

That connection may reach files and the network, and its settings are the person's: so a query on it may name only tables
and views that it has, in databases of DuckDB's own, and no function but DuckDB's: those that the person made may read
anything or run Python. Columns that look like secrets are left out before the query sees them, whatever name it gives
them. Where that can't be made sure, it is said how to go on in a cell. Read `rows`.
"""

from __future__ import annotations

import difflib
import re
import sys
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbagent.core.errors import ToolError
from nbagent.tools.data.kinds import class_name, names_of
from nbagent.tools.data.sqlasked import Asked
from nbagent.tools.secrets import secret_name

if TYPE_CHECKING:
    from nbagent.tools.data.query import Query
    from nbagent.tools.data.sqlrows import Rows

JUPYSQL = "%sql"
_CONNECTION = frozenset({"_duckdb.DuckDBPyConnection", "duckdb.duckdb.DuckDBPyConnection", "duckdb.DuckDBPyConnection"})
_SYSTEM = frozenset({"information_schema", "pg_catalog"})


def rows(query: Query, found: Asked) -> Rows:
    """Run what was asked on the connection that `query` names; raises `ToolError` and DuckDB's own errors."""
    con = connection_of(query.connection, query.namespace)
    if not found.exact:
        raise ToolError("a PIVOT without IN (…) makes types in the connection: name its values, or PIVOT in a cell")
    if found.calls:
        raise ToolError("files are read without `connection`; with it, query reads the connection's own tables")
    if hidden := [column for column in found.columns if secret_name(column)]:
        raise ToolError(f"{hidden[0]} looks like a secret: query does not read that column")
    cursor = con.cursor()
    own, query.con = query.con, cursor
    try:
        _check_tables(cursor, found, query.connection)
        _check_functions(own, cursor, found)
        statement = _without_secrets(cursor, found, query.notes)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        try:
            return query.rows(cursor, found.head + statement, tree=not found.head)
        finally:
            cursor.execute("ROLLBACK")
    finally:
        query.con = own
        cursor.close()


def connection_of(name: str, namespace: Mapping[str, Any]) -> Any:
    """Return the DuckDB connection that `name` means: a variable, the module duckdb itself, or jupysql's current one."""
    if name == JUPYSQL:
        return _jupysql()
    if name not in namespace:
        known = [one for one in namespace if not _CONNECTION.isdisjoint(names_of(type(namespace[one])))]
        near = f" Connections: {', '.join(known)}" if known else " There is no DuckDB connection in the notebook"
        raise ToolError(f"no variable is named {name!r}.{near}")
    value = namespace[name]
    if type(value) is types.ModuleType and value is sys.modules.get("duckdb"):
        return value.default_connection()
    if next(iter(names_of(type(value)))) not in _CONNECTION:
        raise ToolError(
            f"{name} is {class_name(type(value))}, no DuckDB connection: run SQL on it in a cell (%%sql or pandas.read_sql)"
        )
    return value


def _jupysql() -> Any:
    module = sys.modules.get("sql.connection")
    current = getattr(getattr(module, "ConnectionManager", None), "current", None)
    if current is None:
        raise ToolError("jupysql has no connection in this kernel: run the cell with %sql that makes it")
    held = vars(current) if class_name(type(current)).startswith("sql.connection") else {}
    raw = duckdb_of(held.get("_connection_sqlalchemy", held.get("_connection")))
    if raw is not None:
        return raw
    raise ToolError("jupysql has no connection in this kernel: run the cell with %sql that makes it")
    raw = vars(current).get("_connection")
    if class_name(type(current)).startswith("sql.connection") and next(iter(names_of(type(raw)))) in _CONNECTION:
        return raw
    raise ToolError("jupysql's connection is none that query can read safely: add a %%sql cell instead")


def duckdb_of(raw: Any) -> Any:
    """Return the DuckDB connection that jupysql's is, or leads to by SQLAlchemy and duckdb-engine; None where it is another."""
    if class_name(type(raw)) == "sqlalchemy.engine.base.Connection":
        fairy = vars(raw).get("_dbapi_connection")
        wrapper = (
            getattr(fairy, "dbapi_connection", None) if class_name(type(fairy)).startswith("sqlalchemy.pool.") else None
        )
        raw = (
            vars(wrapper).get("_ConnectionWrapper__c")
            if class_name(type(wrapper)).startswith("duckdb_engine.")
            else None
        )
    return raw if next(iter(names_of(type(raw)))) in _CONNECTION else None


def _check_tables(cursor: Any, found: Asked, name: str) -> None:
    """Raise `ToolError` unless all that is named are tables and views that the connection has in DuckDB's own databases."""
    kinds = dict(cursor.execute("SELECT database_name, type FROM duckdb_databases()").fetchall())
    there: list[tuple[str, str, str]] = cursor.execute(
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    if odd := [one for one in found.own if not re.fullmatch(r"\w+", one)]:  # outside of its WITH it would name a file
        raise ToolError(f"WITH {odd[0]!r}: give it a plain name, of letters, digits and _")
    own = {table.casefold() for database, _, table in there if kinds.get(database) == "duckdb"}
    paths: list[tuple[str, ...]] = [(table,) for table in found.tables if table not in found.own]
    for path in (*paths, *found.paths):
        wanted = path[-1]
        table = wanted.casefold()
        if len(path) > 1 and path[-2].casefold() in _SYSTEM:
            continue
        if table not in own:
            names = sorted(
                {
                    table
                    for database, schema, table in there
                    if kinds.get(database) == "duckdb" and schema not in _SYSTEM
                }
            )
            near = difflib.get_close_matches(wanted, names, 5, 0.5) or names[:20]
            raise ToolError(
                f"{name} has no table {wanted!r}. Its tables: {', '.join(near) or 'none'}. (Temporary tables and frames that were "
                "registered are seen by the connection itself only: query frames without `connection`.)"
            )
    databases = {path[0].casefold() for path in found.paths if len(path) > 1}
    for database, kind in kinds.items():
        if database.casefold() in databases and kind != "duckdb" and database not in {"system", "temp"}:
            raise ToolError(f"{database} is a database of the kind {kind}: query it in a cell")


def _check_functions(plain: Any, cursor: Any, found: Asked) -> None:
    """Raise `ToolError` for a function that `plain`, a connection that nobody touched, does not have: a macro, one in Python."""
    asked = "SELECT DISTINCT lower(function_name), internal FROM duckdb_functions()"
    known = {name for name, _ in plain.execute(asked).fetchall()}
    for name, internal in cursor.execute(asked).fetchall():
        if name in found.functions and (name not in known or not internal):
            raise ToolError(
                f"{name}() is a function of the connection's own, not of DuckDB's: query does not run it. Use it in a cell"
            )


def _without_secrets(cursor: Any, found: Asked, notes: list[str]) -> str:
    """Return the statement on tables without the columns that look like secrets: they are named in `notes`."""
    here: tuple[str, str] = cursor.execute("SELECT current_database(), current_schema()").fetchall()[0]
    named = {table.casefold() for table in found.tables}
    qualified = {path[-1].casefold() for path in found.paths if len(path) > 1 and path[-2].casefold() not in _SYSTEM}
    columns: dict[tuple[str, str, str], list[str]] = {}
    for database, schema, table, column in cursor.execute(
        "SELECT database_name, schema_name, table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall():
        if table.casefold() in named | qualified and secret_name(column):
            columns.setdefault((database, schema, table), []).append(column)
    views: list[str] = []
    for (database, schema, table), secret in columns.items():
        if table.casefold() in qualified:
            raise ToolError(
                f"{table} has columns that look like secrets ({', '.join(secret)}): name it without its schema, and query leaves them out"
            )
        if (database, schema) != here:
            continue
        path = ".".join(map(_name, (database, schema, table)))
        views.append(f"{_name(table)} AS (SELECT * EXCLUDE ({', '.join(map(_name, secret))}) FROM {path})")  # noqa: S608  (names are quoted)
        notes += [f"{column} of {table} (looks like a secret)" for column in secret]
    return f"WITH {', '.join(views)} SELECT * FROM (\n{found.sql}\n)" if views else found.sql  # noqa: S608  (parsed before)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
