"""Describes what leads to databases: DuckDB, SQLAlchemy, sqlite3. No query is run, no connection made, no password told.

Must not import any of them. Read `relation`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from nbagent.tools.data.kinds import held, is_a, library
from nbagent.tools.data.tabular import COLUMNS, kind_of, more_columns
from nbagent.tools.describe import brief, label_of, short
from nbagent.tools.secrets import secret_name

_TABLES = 40

# ── DuckDB ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def relation(value: Any) -> Iterator[str]:
    """Describe a relation by what DuckDB knows of it without running it."""
    names, types = value.columns, value.types
    listed = ", ".join(short(label_of(name), 60) for name in names[:6])
    yield f"duckdb relation, {len(names):,} columns, lazy: not computed: {listed}{', …' if len(names) > 6 else ''}"
    for name, kind in itertools.islice(zip(names, types, strict=True), COLUMNS):
        yield f"  {short(label_of(name), 200)}  {short(str(kind), 80)}"
    yield from more_columns(len(names))


def connection(_value: Any) -> Iterator[str]:
    """Name a connection. To list its tables would be a query, which ends what waits to be fetched from it."""
    yield "duckdb connection, not asked"
    yield "its tables: SHOW ALL TABLES tells them"


# ── sqlite3 ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sqlite(value: Any) -> Iterator[str]:
    """Describe a connection of sqlite3, or a cursor, by what Python knows of it."""
    kind = "cursor" if is_a(value, "sqlite3:Cursor") else "connection"
    state = "" if kind == "cursor" else _sqlite_state(value)
    yield f"sqlite3 {kind}{state}, not asked"
    yield "its tables: SELECT name FROM sqlite_master tells them"


def _sqlite_state(value: Any) -> str:
    return ", in a transaction" if library(type(value)) == "sqlite3" and value.in_transaction else ""


# ── SQLAlchemy ───────────────────────────────────────────────────────────────────────────────────────────────────────


def url_words(url: Any) -> str:
    """Return a URL of a database without its password, and without what in its query looks like one."""
    if not is_a(url, "sqlalchemy:URL"):
        return "a database"
    driver, user, password, host, port, database, query = tuple.__iter__(url)
    who = f"{user}{':***' if password is not None else ''}@" if user is not None else ""
    where = f"{host or ''}{f':{port}' if port is not None else ''}"
    asked = "&".join(
        f"{key}={'***' if _tells(key) else brief(item, 1)}" for key, item in itertools.islice(_pairs(query), 10)
    )
    text = f"{driver}://{who}{where}{f'/{database}' if database is not None else ''}{f'?{asked}' if asked else ''}"
    return short(text, 200)


def _tells(key: Any) -> bool:
    if type(key) is not str or secret_name(key):
        return True
    lower = key.lower()  # drivers write words together: sslpassword, authtoken
    return lower in {"odbc_connect", "user"} or any(
        part in lower for part in ("passw", "passphrase", "pwd", "secret", "token", "apikey")
    )


def _pairs(query: Any) -> Iterator[tuple[Any, Any]]:
    yield from (
        query.items() if isinstance(query, Mapping) and library(type(query)) in {"builtins", "sqlalchemy"} else ()
    )


def url(value: Any) -> Iterator[str]:
    """Describe a URL of SQLAlchemy."""
    yield f"SQLAlchemy URL {url_words(value)}"


def engine(value: Any) -> Iterator[str]:
    """Describe an Engine (or an AsyncEngine): where it leads; it is not connected for it."""
    inside = held(value)
    if "sync_engine" in inside:
        inside = held(inside["sync_engine"])
    dialect = held(inside.get("dialect")).get("driver") or type(inside.get("dialect")).__name__
    yield f"SQLAlchemy {type(value).__name__} for {url_words(inside.get('url'))}"
    yield f"dialect {short(str(dialect), 60)}, pool {type(inside.get('pool')).__name__}; no connection was made to look"


def bound(value: Any) -> Iterator[str]:
    """Describe a Connection or a Session: its database, whether it is open; nothing is sent."""
    inside = held(value)
    if is_a(value, "sqlalchemy:Session"):
        yield f"SQLAlchemy Session on {url_words(held(inside.get('bind')).get('url'))}, not asked"
        return
    to = url_words(held(inside.get("engine")).get("url"))
    closed = inside.get("_dbapi_connection") is None and not inside.get("_Connection__can_reconnect", True)
    transaction = ", in a transaction" if inside.get("_transaction") is not None else ""
    yield f"SQLAlchemy {type(value).__name__} to {to}, {'closed' if closed else 'open'}{transaction}, not asked"


def metadata(value: Any) -> Iterator[str]:
    """Describe a MetaData: the tables that were declared or reflected."""
    tables = held(value).get("tables")
    found: dict[Any, Any] = {}
    if isinstance(tables, dict):
        found = dict(itertools.islice(dict.items(tables), _TABLES))
    names = ", ".join(brief(_text(name), 1) for name in itertools.islice(found, 6))
    count = dict.__len__(tables) if isinstance(tables, dict) else 0
    yield f"SQLAlchemy MetaData of {count:,} tables: {names}{', …' if count > 6 else ''}"
    for one in found.values():
        yield f"  {_table_words(one, 8)}"


def table(value: Any) -> Iterator[str]:
    """Describe a Table: its columns and their types, as declared."""
    if library(type(value)) != "sqlalchemy":
        yield kind_of(value, "SQLAlchemy Table")
        return
    yield f"SQLAlchemy {_table_words(value, 6)}"
    columns = _columns(value)
    for name, column in columns[:COLUMNS]:
        inside = held(column)
        key = ", primary key" if inside.get("primary_key") is True else ""
        to = ", foreign key" if inside.get("foreign_keys") else ""
        needed = "" if inside.get("nullable", True) else " not null"
        yield f"  {label_of(name)}  {_type(inside.get('type'))}{needed}{key}{to}"
    yield from more_columns(len(columns))


def _columns(found: Any) -> list[tuple[Any, Any]]:
    """Return the columns by name, from what their collection holds."""
    inside = held(found).get("_columns")
    return [(_text(column.name), column) for column in inside._all_columns] if inside is not None else []  # noqa: SLF001


def _text(name: Any) -> Any:
    """Return a name as plain text: SQLAlchemy keeps some as a class of its own."""
    return str.__getitem__(name, slice(None)) if isinstance(name, str) else name


def _table_words(found: Any, shown: int) -> str:
    columns = _columns(found)
    names = ", ".join(label_of(name) for name, _ in columns[:shown])
    return f"table {brief(_text(held(found).get('fullname')), 1)}, {len(columns):,} columns: {names}{', …' if len(columns) > shown else ''}"


def _type(kind: Any) -> str:
    length = held(kind).get("length")
    return f"{type(kind).__name__}{f'({length})' if type(length) is int else ''}"


def statement(value: Any) -> Iterator[str]:
    """Name a statement; it is neither written out nor run."""
    yield f"SQLAlchemy {type(value).__name__}, a statement: not run"


def rows(value: Any) -> Iterator[str]:
    """Name a result; no row is fetched."""
    yield f"SQLAlchemy {type(value).__name__}, no row fetched from it"
