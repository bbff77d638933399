"""The tool `query`: SQL on DuckDB over the notebook's tables and files, to look; offered where duckdb is installed.

Each query has a connection of its own that can reach nothing but the tables and files that the query names and that it may
read: no other file, no network, no extension, no setting, nothing of Python's. What it names is known from DuckDB's own
parser (sqlasked.py). It runs on a thread, within a limit of time and memory; Stop interrupts it. Tables of a connection of
the person's are read in a read-only transaction of a cursor (sqlconnection.py). Read `tools`, then `Query.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import importlib.metadata
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbagent.core.errors import ToolError
from nbagent.core.messages import text_block
from nbagent.core.ports import Kernel, Preview
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools.data import sqlconnection
from nbagent.tools.data.sqlasked import Asked, asked
from nbagent.tools.data.sqlfiles import DataFiles, looks_like_file, reader_of
from nbagent.tools.data.sqlrows import Rows, fetched, shortened
from nbagent.tools.data.sqltables import is_table, table_names, table_of
from nbagent.tools.secrets import secret_name

_SECONDS = 60.0
_OLDEST = 2
_MOST = 1_000
_SETTINGS = {
    "allow_community_extensions": "false", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
    "allow_persistent_secrets": "false", "python_enable_replacements": "false", "temp_directory": "",
}  # fmt: skip


def tools(kernel: Kernel, files: DataFiles, *, seconds: float = _SECONDS) -> list[Tool]:
    """Return `query` on the tables of `kernel` and on `files`, stopped after `seconds`; [] where duckdb is not installed."""
    if not installed():
        return []

    @tool(
        kind=Kind.READ,
        title=lambda given: f"query {_shortest(given['sql'])}",
        preview=lambda given: Preview("code", given["sql"].strip(), language="sql"),
        exact=True,
        beside=False,
    )
    async def query(_call: Call, sql: str, limit: int = 50, connection: str = "") -> Result:
        """Run one reading SQL statement (DuckDB) on data frames by variable name and on files: FROM df JOIN 'data/x.parquet'.

        Nothing is kept: work that matters goes into a cell.

        Args:
            sql: SELECT, FROM, DESCRIBE, SUMMARIZE, PIVOT or EXPLAIN.
            limit: rows shown, at most 1000.
            connection: a variable with a DuckDB connection, or "%sql" for jupysql's, to read its tables instead.
        """
        one = Query(kernel.namespace(), files, sql, max(1, min(limit, _MOST)), connection.strip())
        rows = await one.on_a_thread(seconds)
        return Result((text_block(rows.text),), rows.summary)

    return [query]


def installed() -> bool:
    """Whether a DuckDB is installed that this works with; it is not imported."""
    if importlib.util.find_spec("duckdb") is None:
        return False
    try:
        return int(importlib.metadata.version("duckdb").partition(".")[0]) >= _OLDEST
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


def _shortest(sql: str) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= 70 else f"{text[:70]}…"


@dataclass(slots=True)
class Query:
    """One query, from its text to its rows. `con` is open while it runs; `stopped` says that nobody waits for it any more."""

    namespace: Mapping[str, Any]
    files: DataFiles
    sql: str
    limit: int
    connection: str
    con: Any = None
    stopped: bool = False
    notes: list[str] = field(default_factory=list[str])
    plain: dict[str, str] = field(default_factory=dict[str, str])
    """Of a view of a CSV: the call that reads it without options."""

    async def on_a_thread(self, seconds: float) -> Rows:
        """Run on a thread, and stop it where its time is up or the call is cancelled."""
        work = asyncio.ensure_future(asyncio.to_thread(self.run))
        done: set[Any] = set()
        try:
            done, _ = await asyncio.wait({work}, timeout=seconds)
        finally:
            if not done:
                await self._interrupt(work)
        if done:
            return work.result()
        raise ToolError(
            f"stopped after {seconds:g} s. Read less: a part of the rows (USING SAMPLE 100000), fewer columns, an aggregate"
        )

    async def _interrupt(self, work: asyncio.Future[Rows]) -> None:
        """End the query; DuckDB hears an interrupt only while it runs one, so it is told until it is over."""
        self.stopped = True
        import duckdb  # noqa: PLC0415  (as below)

        work.add_done_callback(lambda over: over.cancelled() or over.exception())  # nobody wants its error
        for _ in range(100):
            if (con := self.con) is not None:
                with contextlib.suppress(duckdb.Error):  # it was closed this moment
                    con.interrupt()
            if (await asyncio.wait({work}, timeout=0.02))[0]:
                return

    def run(self) -> Rows:
        """Run the query from its text to its rows; raises `ToolError`."""
        import duckdb  # noqa: PLC0415  (only where a query is made: it takes 50 ms)

        if "\0" in self.sql:
            raise ToolError("the SQL contains a NUL character")
        self.con = duckdb.connect(":memory:", config={**_SETTINGS, **_limits()})
        try:
            found = asked(self.con, self.sql)
            if self.connection:
                return sqlconnection.rows(self, found)
            statement = self._prepared(found)
            self._check()
            return self.rows(self.con, statement, tree=found.exact and not found.head)
        except duckdb.Error as error:
            raise ToolError(self._said(error)) from None
        finally:
            con, self.con = self.con, None
            con.close()

    def rows(self, con: Any, statement: str, *, tree: bool) -> Rows:
        """Run a statement and fetch what is shown of it; `tree`: it is one SELECT, so that it can stand in another."""
        types: list[str] | None = None
        if tree:
            bound = con.sql(statement)  # only bound, for its types
            types = list(map(str, bound.types))
            statement = shortened(statement, bound.columns, types)
        cursor = con.execute(statement)
        return fetched(cursor, self.limit, self.notes, lambda: self.stopped, types)

    def _check(self) -> None:
        if self.stopped:
            raise ToolError("stopped")

    # ── what it may read ─────────────────────────────────────────────────────────────────────────────────────────────

    def _prepared(self, found: Asked) -> str:
        """Put all that the statement names into the connection, lock it, and return the statement as it runs."""
        names = {name.casefold(): name for name in reversed(list(self.namespace))}
        views: list[tuple[str, str]] = []
        allowed: list[str] = []
        for name in found.tables:
            if name in found.own:
                continue
            known = name if name in self.namespace else names.get(name.casefold(), "")
            if known and (found.exact or is_table(self.namespace[known])):
                self._check()
                readable = table_of(known, self.namespace[known], lambda: self.stopped)
                self.notes += readable.left_out
                self.con.register(known, readable.table)
            elif looks_like_file(name) and (found.exact or reader_of(name)):
                views.append((name, self._reading(name, allowed)))
        statement = self._calls(found, views, allowed)
        paths = ", ".join(map(_quoted, allowed))
        self.con.execute(f"SET allowed_paths = [{paths}]")
        self.con.execute("SET enable_external_access = false")
        for name, reading in views:
            self._view(name, reading)
        self.con.execute("SET lock_configuration = true")
        return statement

    def _reading(self, name: str, allowed: list[str]) -> str:
        found = self.files.found(name)
        reader = reader_of(found[0])
        if reader is None:
            raise ToolError(f"{name!r}: query reads CSV, Parquet and JSON files. Load others in a cell")
        allowed += found
        return f"{reader}([{', '.join(map(_quoted, found))}])"

    def _calls(self, found: Asked, views: list[tuple[str, str]], allowed: list[str]) -> str:
        """Return the statement with each call that reads files replaced by a view of it, with the files that may be read."""
        raw = found.sql.encode()
        for number, call in reversed(list(enumerate(found.calls, 1))):
            inner, at = b"", call.start
            for start, end, name in call.files:
                paths = self.files.found(name)
                allowed += paths
                listed = ", ".join(map(_quoted, paths))
                text = (
                    listed if len(call.files) > 1 or raw[call.start : start].rstrip().endswith(b"[") else f"[{listed}]"
                )
                inner += raw[at:start] + text.encode()
                at = end
            name = f"file_{number}"
            text = (inner + raw[at : call.end]).decode()
            views.append((name, text))
            if text.lower().startswith("read_csv"):  # options may give its columns other names
                self.plain[name] = (
                    f"read_csv([{', '.join(_quoted(path) for _, _, one in call.files for path in self.files.found(one))}])"
                )
            raw = raw[: call.start] + f'"{name}"'.encode() + raw[call.end :]
        return found.head + raw.decode()

    def labels(self, con: Any, source: str) -> list[str]:
        """Return the names of the columns of a table, a view or a call, as it stands in SQL."""
        return [str(row[0]) for row in con.execute(f"DESCRIBE FROM {source}").fetchall()]

    def _plain_labels(self, name: str) -> list[str]:
        import duckdb  # noqa: PLC0415  (as in `run`)

        try:
            return self.labels(self.con, self.plain[name])
        except duckdb.Error:  # it needs its options
            return []

    def _view(self, name: str, reading: str) -> None:
        """Make a view of files, without the columns that look like secrets."""
        labels = self.labels(self.con, reading)
        left = [label for label in labels if secret_name(label)]
        if name in self.plain and reading != self.plain[name]:
            secret = [label for label in self._plain_labels(name) if secret_name(label) and label not in left]
            if secret:
                raise ToolError(f"{secret[0]} looks like a secret: read the file with its own header and separator")
        self.notes += [f"{label} of {name} (looks like a secret)" for label in left]
        if left and len(left) == len(labels):
            raise ToolError(f"{name}: all of its columns look like secrets")
        without = f" EXCLUDE ({', '.join(map(_name, left))})" if left else ""
        self.con.execute(f"CREATE OR REPLACE VIEW {_name(name)} AS SELECT *{without} FROM {reading}")  # noqa: S608  (names are quoted)

    # ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _said(self, error: Exception) -> str:
        """Return DuckDB's error as it is, with the tables that there are where it found none."""
        text = str(error).strip()
        if "INTERRUPT" in text:
            return "stopped"
        if "Out of Memory" in text:
            return f"{text}\nRead less: fewer columns, a sample (USING SAMPLE 100000), an aggregate."
        if "Table with name" not in text:
            return text
        names = table_names(self.namespace)
        wanted = text.partition("Table with name ")[2].split(" ")[0]
        near = difflib.get_close_matches(wanted, names, 5, 0.5) or names[-20:]
        return f"{text}\nTables here: {', '.join(near) or 'none; there is no data frame in the notebook yet'}. Files: FROM 'path.csv'."


def _limits() -> dict[str, str]:
    """Return how much of the machine a query may take: the kernel must stay alive."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        free = 4 << 30
    memory = max(256 << 20, free // 2)
    return {"memory_limit": f"{memory // (1 << 20)}MB", "threads": str(max(1, min(4, os.cpu_count() or 1)))}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
