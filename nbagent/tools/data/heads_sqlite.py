"""What tables an SQLite file has, and how one begins: opened read-only and as it lies there, so that nothing in it runs.

No view is opened, no virtual table, no function of the file's is called, no journal is played back. Read `sqlite`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from nbagent.core.errors import ToolError
from nbagent.tools.data.delimited import Asked
from nbagent.tools.data.opening import size_text
from nbagent.tools.data.records import columns_of
from nbagent.tools.data.telling import columns_text, rows_text

_SECONDS = 3.0
_LONGEST = 4_000_000  # bytes of one value
_TABLES = 60
_COLUMNS = 200
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA})
_PRAGMAS = frozenset({"table_xinfo", "trusted_schema", "query_only"})
_FUNCTIONS = frozenset({"max", "substr", "min"})


def sqlite(file: BinaryIO, path: Path, asked: Asked, table: str | None) -> list[str]:
    """Return the tables of the file and the beginning of one. Raises `ToolError` where it is broken."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise ToolError(f"the database can't be opened: {error}") from None
    try:
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):  # noqa: PTH116  (as the handle's)
            raise ToolError("another file was put in its place: nothing was read")
        _guard(connection)
        return _told(connection, path, asked, table)
    except sqlite3.Error as error:
        raise ToolError(f"the database can't be read: {error}") from None
    finally:
        connection.close()


def _guard(connection: sqlite3.Connection) -> None:
    """Let nothing but reading of tables happen, and not for long."""
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    until = time.monotonic() + _SECONDS
    connection.set_progress_handler(lambda: int(time.monotonic() > until), 10_000)

    def allowed(action: int, first: str | None, second: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if second in _FUNCTIONS else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA:
            return sqlite3.SQLITE_OK if first in _PRAGMAS else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY

    connection.set_authorizer(allowed)


def _told(connection: sqlite3.Connection, path: Path, asked: Asked, table: str | None) -> list[str]:
    found = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') LIMIT 2000"
    ).fetchall()
    found = [(kind, str(name), str(sql or "")) for kind, name, sql in found if not str(name).startswith("sqlite_")]
    virtual = [
        name for kind, name, sql in found if kind == "table" and sql.lstrip().upper().startswith("CREATE VIRTUAL")
    ]
    tables = [name for kind, name, _ in found if kind == "table" and name not in virtual]
    views = [name for kind, name, _ in found if kind == "view"]
    if table is not None and table not in tables:
        there = f"There are: {', '.join(map(repr, tables[:20]))}" if tables else "There is none"
        raise ToolError(f"no table {table!r} that could be looked into. {there}")
    lines = [f"SQLite database: {len(tables):,} tables, {len(views):,} views", f"{size_text(asked.size)} on disk"]
    if path.with_name(path.name + "-wal").exists():
        lines.append("! a -wal file lies beside it: what was written last is not in what follows")
    lines += [
        f"  {name!r}  {_rows(connection, name)}, {len(_columns(connection, name)):,} columns"
        for name in tables[:_TABLES]
    ]
    lines += [f"  … and {len(tables) - _TABLES:,} more tables"] if len(tables) > _TABLES else []
    lines += [f"views, not opened: {', '.join(map(repr, views[:20]))}"] if views else []
    lines += [f"virtual tables, not opened: {', '.join(map(repr, virtual[:20]))}"] if virtual else []
    shown = table or (tables[0] if len(tables) == 1 else None)
    if shown is None:
        return [*lines, *(["table= shows one of them"] if tables else [])]
    return [*lines, "", *_table(connection, shown, asked)]


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    rows = connection.execute(f"PRAGMA table_xinfo({_name(table)})").fetchall()
    return [(str(row[1]), str(row[2] or "any")) for row in rows if not row[6]]  # generated ones are computed: left out


def _rows(connection: sqlite3.Connection, table: str) -> str:
    """Return about how many rows a table has, by its highest row number, which is at hand; never by counting."""
    try:
        (most,) = connection.execute(f"SELECT max(rowid) FROM {_name(table)}").fetchone()  # noqa: S608  (quoted)
    except sqlite3.Error:  # a table without row numbers
        return "rows not counted"
    return f"about {most:,} rows (by the highest row number)" if type(most) is int else "no rows"


def _table(connection: sqlite3.Connection, table: str, asked: Asked) -> list[str]:
    columns = _columns(connection, table)[:_COLUMNS]
    labels = [name for name, _ in columns]
    rows: Sequence[Any] = ()
    try:
        taken = ", ".join(f"substr({_name(name)}, 1, 400)" if _is_text(kind) else _name(name) for name, kind in columns)
        rows = connection.execute(f"SELECT {taken} FROM {_name(table)} LIMIT ?", (max(asked.rows, 100),)).fetchall()  # noqa: S608  (quoted)
        said: list[str] = []
    except sqlite3.Error as error:
        said = [f"its rows can't be read: {error}"]
    code = f"SELECT * FROM {_name(table)}"  # noqa: S608  (quoted, and only shown)
    return [
        f"table {table!r}",
        *columns_text(columns_of(labels, rows, [kind for _, kind in columns])),
        *rows_text(list(map(repr, labels)), rows, asked.rows),
        *said,
        "",
        "To read it:",
        "import sqlite3",
        f"with sqlite3.connect({asked.path!r}) as con:",
        f"    df = pd.read_sql({code!r}, con)",
    ]


def _is_text(kind: str) -> bool:
    return any(word in kind.upper() for word in ("CHAR", "TEXT", "CLOB", "BLOB", "ANY"))
