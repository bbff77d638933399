"""What a run may have read that no fingerprint can be taken of: the network, databases, other programs, clock and chance.

It is not compared when the run's cell is run again, and that is told in one sentence. A look at the syntax tree and at
the types of values, and nothing is run: what a library does inside is seen only where Python tells it (`opens.py`).
Read `unseen_by`, then `not_compared`.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nbagent.core.messages import Json
from nbagent.tools import cellcode
from nbagent.tools.data.kinds import class_name
from nbagent.tools.dotted import Dotted
from nbagent.tools.effects import effects
from nbagent.tools.fingerprints import SAMPLED, TYPE_ONLY
from nbagent.tools.signs import INSTALLS, NETWORK, SHELL, label_of

FROM_NETWORK = "what came from the network"
FROM_DATABASES = "what came from databases"
FROM_PROGRAMS = "what shell commands and other programs gave"
CLOCK = "the clock"
CHANCE = "random numbers"
TYPED = "what was typed in"
ENVIRONMENT = "environment variables"
ELSEWHERE = "files outside this folder"

_OF_LABEL = {NETWORK: FROM_NETWORK, SHELL: FROM_PROGRAMS, INSTALLS: FROM_PROGRAMS}
_DATABASES = re.compile(
    r"(?:_?sqlite3|sqlalchemy|sqlmodel|peewee|psycopg2?|asyncpg|pg8000|pymysql|MySQLdb|mysql|aiosqlite|pyodbc|pymssql|oracledb"
    r"|cx_Oracle|pymongo|motor|redis|snowflake|google\.cloud\.bigquery|pandas_gbq|clickhouse_\w+|trino|prestodb|pyhive|databricks"
    r"|cassandra|neo4j|influxdb\w*|elasticsearch|ibis|connectorx|turbodbc|adbc_driver_\w+|duckdb\.connect|_?duckdb\.\w*DuckDBPyConnection"
    r"|pandas\.(?:io\.sql\.)?read_(?:sql\w*|gbq)|polars\.read_database\w*)(?:\.|\(|\Z)"
)
_SQL_MAGICS = frozenset({"sql", "bigquery"})
_CLOCKS = re.compile(
    r"time\.(?:time|perf_counter|monotonic|process_time)(?:_ns)?|time\.(?:localtime|gmtime|ctime|asctime)"
    r"|(?:.*\.)?(?:now|utcnow|today)"
)
_CHANCE = re.compile(
    r"(?:random|secrets|_?numpy\.random)\.\w+|uuid\.uuid[14]|os\.urandom|torch\.(?:rand\w*|normal|multinomial|bernoulli)"
)
_SEEDS = re.compile(r"(?:random|numpy\.random|torch)\.(?:seed|manual_seed)")
_SEEDED = re.compile(
    r"(?:random\.Random|numpy\.random\.(?:default_rng|RandomState|SeedSequence|Generator|PCG64\w*|MT19937|Philox))"
)
_TIMES = re.compile(r"%{1,2}(?:time|timeit|prun)\b")
_NAMES_TOLD = 3


def unseen_by(code: str, namespace: Mapping[str, Any]) -> set[str]:
    """Return what running `code` (a cell: Python, magics and `!` lines) reads that can't be compared later, in words."""
    found = {_OF_LABEL[label] for label in effects(code, namespace) if label in _OF_LABEL}
    parts = cellcode.split(code)
    if any(name in _SQL_MAGICS for name, _ in parts.magics):
        found.add(FROM_DATABASES)
    if _TIMES.search(code):
        found.add(CLOCK)
    for text in (code, *(cellcode.python_of(rest) for _, rest in parts.magics)):
        tree = parts.tree if text is code else cellcode.parse(text)
        if tree is not None:
            found |= set(_of_tree(tree, namespace))
    return found


def unseen_in(value: object) -> str:
    """Return what a variable leads to that can't be compared later, "" for one that leads nowhere: modules, connections."""
    if type(value) is types.ModuleType:
        name = types.ModuleType.__getattribute__(value, "__dict__").get("__name__")
        name = f"{name}.x" if type(name) is str else ""
    else:
        name = class_name(type(value))
    if _DATABASES.match(name):
        return FROM_DATABASES
    return FROM_NETWORK if label_of(name) == NETWORK else ""


def _of_tree(tree: ast.AST, namespace: Mapping[str, Any]) -> Iterator[str]:
    names = Dotted(tree, frozenset({"random", "time", "datetime", "date", "input"}), frozenset(), namespace)
    chance, seeded = False, False
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and _DATABASES.match(names.of(node)):
            yield FROM_DATABASES
        if isinstance(node, ast.Attribute) and names.of(node) in {"os.environ", "os.getenv"}:
            yield ENVIRONMENT
        if not isinstance(node, ast.Call):
            continue
        called = names.of(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if _CLOCKS.fullmatch(called or method) or (called == "time.strftime" and len(node.args) == 1):
            yield CLOCK
        if called in {"input", "getpass.getpass"}:
            yield TYPED
        given = bool(node.args or node.keywords)
        seeded = seeded or (bool(_SEEDS.fullmatch(called)) and given)
        if method == "sample":
            chance = chance or not any(keyword.arg in {"random_state", "seed"} for keyword in node.keywords)
        elif _CHANCE.fullmatch(called):
            chance = chance or not (given and _SEEDED.fullmatch(called))
    if chance and not seeded:
        yield CHANCE


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────


def not_compared(kept: Json) -> str:
    """Return in one sentence what of `kept` (`Inputs.to_json`) is not compared when its cell is run again; "" for nothing.

    Raises KeyError, TypeError or AttributeError where `kept` is no such object.
    """
    said = [str(text) for text in kept["unseen"]]
    if tools := [str(name) for name in kept["tools"]]:
        said.append(f"what your tool{'s' if len(tools) > 1 else ''} {_few(tools)} read")
    partly = {name: found["weak"] for table in ("names", "files") for name, found in kept[table].items()}
    if names := [name for name, weak in partly.items() if weak == TYPE_ONLY]:
        said.append(f"what is in {_few(names)} (only the type is)")
    if names := [name for name, weak in partly.items() if weak == SAMPLED]:
        said.append(f"all of {_few(names)} (a sample is)")
    return f"Not compared when this cell is run again: {'; '.join(said)}." if said else ""


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _NAMES_TOLD
    return ", ".join(listed[:_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")
