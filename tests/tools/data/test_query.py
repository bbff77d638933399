"""`query`: reads what it may, in place, and nothing else, whatever the SQL says; ends when it is told to."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any, ClassVar

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind
from nbagent.tools.data import query
from nbagent.tools.data.sqlconnection import duckdb_of
from nbagent.tools.data.sqlfiles import DataFiles
from nbagent.tools.veil import Veil
from tests.tools.calling import Calling
from tests.tools.test_variables import Names


class Hostile:
    """Everything that is done with it is noted."""

    touched: ClassVar[list[str]] = []

    def __str__(self) -> str:
        Hostile.touched.append("str")
        return "x"

    __repr__ = __str__


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    for place in ("a.csv", "data/b.csv", "data/c.csv"):
        (tmp_path / place).write_text("k,v,api_key\n1,2,s3cret\n")
    (tmp_path / "data" / ".hidden.csv").write_text("k\n99\n")
    (tmp_path / "data" / "private.csv").write_text("k,v\n77,1\n")
    (tmp_path / "tokens.json").write_text('{"k": 66}')
    outside = tmp_path.parent / f"{tmp_path.name}-outside.csv"
    outside.write_text("k,v\n55,1\n")
    (tmp_path / "data" / "link.csv").symlink_to(outside)
    return tmp_path


class Desk(Calling):
    """The tool over some variables and files, and what it says."""

    def __init__(self, folder, seconds: float = 30, denied=lambda _: False, **names: Any) -> None:
        super().__init__(query.tools(Names(**names), DataFiles(folder, denied=denied), seconds=seconds))

    async def says(self, sql: str, **more: Any) -> str:
        return await self.text("query", sql=sql, **more)

    async def refuses(self, sql: str, **more: Any) -> str:
        with pytest.raises(ToolError) as refused:
            await self("query", sql=sql, **more)
        return str(refused.value)


async def test_tables_of_three_libraries_and_files_are_read_together_and_types_are_shown(folder):
    desk = Desk(
        folder,
        df=pd.DataFrame({"k": [1, 2, 3], "name": ["a|b", None, "c\nd"]}),
        pol=pl.DataFrame({"k": [1, 2]}),
        arrow=pa.table({"k": [1]}),
    )
    said = await desk.says(
        "SELECT df.name, a.v FROM df JOIN pol USING (k) JOIN arrow USING (k) JOIN 'a.csv' a USING (k)"
    )
    assert (
        said
        == "1 row:\n\n| name VARCHAR | v BIGINT |\n| --- | --- |\n| a\\|b | 2 |\n\nLeft out or to know: api_key of a.csv (looks like a secret)."
    )
    assert "| c⏎d |" in await desk.says("SELECT name FROM DF WHERE k = 3"), (
        "names are found in any case, as SQL has them"
    )
    assert desk.kind("query", sql="SELECT 1") is Kind.READ
    assert desk.preview("query", sql="SELECT 1").language == "sql"


async def test_rows_columns_and_cells_are_limited_and_the_total_is_said(folder):
    desk = Desk(folder, df=pd.DataFrame({"n": range(1000), "text": ["x" * 900] * 1000}))
    said = await desk.says("FROM df", limit=3)
    assert said.startswith("the first 3 of 1,000 rows:")
    assert max(map(len, said.splitlines())) < 200
    assert len(await desk.says("FROM df", limit=100_000)) < 12_000
    assert (await desk.says("FROM range(2000000000)")).startswith("the first 50 of more than")
    assert "the first 40 of 300 columns" in await Desk(folder, wide=pd.DataFrame([range(300)])).says("FROM wide")


async def test_describe_summarize_pivot_explain_and_show_work(folder):
    desk = Desk(folder, df=pd.DataFrame({"k": ["x", "y"], "v": [1, 2]}))
    assert "| k | VARCHAR |" in await desk.says("DESCRIBE df")
    assert "| v | BIGINT | 1 | 2 |" in await desk.says("SUMMARIZE df")
    assert "| x HUGEINT | y HUGEINT |" in await desk.says("PIVOT df ON k USING sum(v)")
    assert "| x HUGEINT |" in await desk.says("PIVOT df ON k IN ('x') USING sum(v)")
    assert "SCAN" in await desk.says("EXPLAIN SELECT * FROM df")
    assert "0 rows" in await desk.says("SHOW TABLES")
    assert "b BIGINT" in await desk.says(
        "SELECT 'é' AS a, k AS b FROM read_csv(['a.csv', 'data/b.csv'], header := true) r"
    )


WRITES = [
    "COPY (SELECT 1) TO 'new.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'new.csv'",
    "EXPORT DATABASE 'new'",
    "ATTACH 'new.db'",
    "CREATE TABLE t (a INT)",
    "INSERT INTO df VALUES (1)",
    "WITH x AS (INSERT INTO df VALUES (1) RETURNING *) SELECT * FROM x",
    "UPDATE df SET k = 1",
    "DELETE FROM df",
    "SET threads = 1",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE SECRET s (TYPE S3)",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "USE memory",
    "IMPORT DATABASE 'x'",
    "SELECT 1; DROP TABLE df",
    "SELECT 1; SELECT 2",
    "",
    "-- nothing",
]
READS = [
    "FROM '/etc/passwd'",
    "FROM read_csv('/etc/passwd')",
    "FROM '../{name}-outside.csv'",
    "FROM 'data/link.csv'",
    "FROM read_csv('data/link.csv')",
    "FROM 'data/../../{name}-outside.csv'",
    "FROM read_csv('data/*/../../../{name}-outside.csv')",
    "FROM 'tokens.json'",
    "FROM read_json(['a.csv', 'tokens.json'])",
    "FROM 'data/.env'",
    "FROM read_text('a.csv')",
    "FROM read_blob('a.csv')",
    "FROM glob('*')",
    "FROM sniff_csv('a.csv')",
    "FROM read_csv('a' || '.csv')",
    "FROM read_csv((SELECT 'a.csv'))",
    "FROM query('SELECT 1')",
    "FROM query_table('df')",
    "FROM 'https://example.com/a.csv'",
    "FROM read_csv('s3://bucket/a.csv')",
    "SELECT getenv('HOME')",
    "FROM duckdb_secrets()",
    "FROM duckdb_settings()",
    "SELECT current_setting('home_directory')",
    "FROM read_parquet('hf://datasets/x/y.parquet')",
    "FROM parquet_scan('/etc/*')",
    "PIVOT (FROM read_csv('/etc/passwd')) ON a USING sum(b)",
    "PIVOT '/etc/passwd' ON a USING sum(b)",
]


@pytest.mark.parametrize("sql", WRITES)
async def test_what_does_more_than_read_is_refused_and_nothing_is_written(folder, sql):
    before = sorted(folder.rglob("*"))
    assert await Desk(folder, df=pd.DataFrame({"k": [1]})).refuses(sql)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("sql", READS)
async def test_no_sql_reaches_what_query_may_not_read(folder, sql):
    said = await Desk(folder, df=pd.DataFrame({"k": [1]})).refuses(sql.replace("{name}", folder.name))
    assert not {"55", "66", "root:", "s3cret"} & set(said.split()), said


async def test_a_pattern_gives_the_files_that_may_be_read_and_no_others(folder):
    desk = Desk(folder, denied=lambda path: "private" in path)
    assert "| 2 |" in await desk.says("SELECT count(*) FROM 'data/*.csv'")
    assert "| 1 |" in await desk.says("SELECT DISTINCT k FROM read_csv('data/*.csv')")
    assert "a rule denies" in await desk.refuses("FROM 'data/private.csv'")
    assert "Near: 'a.csv'" in await desk.refuses("FROM 'aa.csv'")


async def test_secrets_and_hidden_columns_are_no_part_of_a_table(folder):
    names = {"df": pd.DataFrame({"k": [1], "password": ["hunter2"], "ssn": [123456]}), "patients": pd.DataFrame({"k": [7]}),
             "token": pd.DataFrame({"k": [8]}), "pol": pl.DataFrame({"k": [1], "secret": ["hunter2"]}),
             "arrow": pa.table({"k": [1], "secret": ["hunter2"]})}  # fmt: skip
    veil = Veil(hidden=("df.ssn", "patients"))
    desk = Desk(folder, **{name: veil.told(name, value) for name, value in names.items()})
    for table in ("df", "pol", "arrow"):
        assert "hunter2" not in await desk.says(f"FROM {table}")
    assert "123456" not in await desk.says("SUMMARIZE df")
    assert 'column "ssn" not found' in await desk.refuses("SELECT ssn AS harmless FROM df")
    assert "hidden by the person" in await desk.refuses("FROM patients")
    assert "secret" in await desk.refuses("FROM token")
    assert "s3cret" not in await desk.says("SELECT * FROM read_csv('a.csv')")


async def test_no_code_of_the_persons_runs_and_nothing_lazy_is_computed(folder):
    Hostile.touched.clear()

    class Frame(pd.DataFrame):
        @property
        def columns(self):
            Hostile.touched.append("columns")
            return super().columns

    desk = Desk(
        folder,
        df=pd.DataFrame({"k": [1, 2], "o": [Hostile(), 1], "deep": [{"a": [Hostile()]}, None]}),
        own=Frame({"k": [1]}), lazy=pl.LazyFrame({"k": [1]}), series=pd.Series([1]), n=3,
        odd=pd.DataFrame({Hostile(): [1]}), batches=pa.table({"k": [1]}).to_reader(),
    )  # fmt: skip
    Hostile.touched.clear()
    said = await desk.says("FROM df")
    assert "| k BIGINT |" in said and "df.o (objects of class" in said and "df.deep (objects" in said
    assert "lazy" in await desk.refuses("FROM lazy")
    assert "to_frame" in await desk.refuses("FROM series")
    for name in ("own", "n", "odd", "batches"):
        assert name in await desk.refuses(f"FROM {name}")
    assert Hostile.touched == []


async def test_odd_labels_an_index_and_empty_tables_are_told(folder):
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", 5], index=pd.Index([9], name="day"))
    desk = Desk(folder, df=frame, empty=pd.DataFrame({"x": []}), none=pd.DataFrame())
    said = await desk.says("FROM df")
    assert "occur more than once" in said and "reset_index()" in said
    assert "0 rows. Columns: x" in await desk.says("FROM empty")
    assert "no column" in await desk.refuses("FROM none")


async def test_a_frame_is_scanned_in_place(folder):
    frame = pd.DataFrame({"a": range(10), "password": range(10)})
    from nbagent.tools.data.sqltables import table_of

    table = table_of("df", frame).table
    assert table["a"].to_numpy().ctypes.data == frame["a"].to_numpy().ctypes.data


async def test_errors_are_duckdbs_with_the_names_that_there_are(folder):
    desk = Desk(folder, sales=pd.DataFrame({"unit": [1]}))
    assert "Candidate bindings" in await desk.refuses("SELECT units FROM sales")
    assert "Tables here: sales." in await desk.refuses("FROM sale")
    assert "syntax error" in await desk.refuses("SELECT FROM WHERE")


FOREVER = "SELECT count(*) FROM range(1000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3"


async def test_its_time_is_limited_and_a_stop_ends_it_while_the_loop_goes_on(folder):
    assert "stopped after 0.2 s" in await Desk(folder, seconds=0.2).refuses(FOREVER)
    running = asyncio.ensure_future(Desk(folder)("query", sql=FOREVER))
    done, _ = await asyncio.wait({running}, timeout=0.3)
    assert not done, "the loop goes on meanwhile"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)


@pytest.fixture
def con():
    made = duckdb.connect()
    made.execute("CREATE TABLE t AS SELECT 1 AS a, 'hunter2' AS password")
    made.execute("CREATE VIEW v AS SELECT a FROM t")
    made.execute("CREATE SEQUENCE s")
    yield made
    made.close()


async def test_tables_of_a_connection_are_read_in_a_transaction_that_cant_write(folder, con):
    desk = Desk(folder, con=con, duckdb=duckdb, n=3)
    assert "| memory | main | t |" in await desk.says("SHOW ALL TABLES", connection="con")
    assert "password of t (looks like a secret)" in (said := await desk.says("FROM t", connection="con"))
    assert "| 1 |" in said
    assert "| 1 |" in await desk.says("WITH w AS (FROM v) FROM w", connection="con")
    assert "hunter2" not in await desk.says("SUMMARIZE t", connection="con")
    for sql in ("FROM 'a.csv'", "FROM read_csv('a.csv')", "SELECT nextval('s')", "SELECT password AS p FROM t", "FROM df",
                "PIVOT t ON a USING sum(a)", "INSERT INTO t VALUES (2, 'x')", "DROP TABLE t"):  # fmt: skip
        await desk.refuses(sql, connection="con")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
    assert "Its tables: t." in await desk.refuses("FROM tt", connection="con")
    assert "no DuckDB connection" in await desk.refuses("FROM t", connection="n")
    assert "Connections: con" in await desk.refuses("FROM t", connection="cone")
    assert "jupysql has no connection" in await desk.refuses("FROM t", connection="%sql")


async def test_a_connections_secrets_stay_in_it_whatever_the_query_calls_them(folder, con):
    desk = Desk(folder, con=con)
    for sql in ("SELECT t FROM t", "FROM t AS x(p, q)", "SELECT * RENAME (password AS z) FROM t", "SELECT 'x' UNION ALL FROM t",
                "SELECT concat(*COLUMNS(*)) AS p FROM t", "WITH t AS (FROM t) SELECT t FROM t -- that", "DESCRIBE t",
                "EXPLAIN ANALYZE SELECT COLUMNS('pass.*') FROM t", "FROM main.t AS x(p, q)"):  # fmt: skip
        try:
            said = await desk.says(sql, connection="con")
        except ToolError as refused:
            said = str(refused)
        assert "hunter2" not in said, sql


async def test_functions_that_the_person_made_in_a_connection_are_not_run(folder, con):
    ran = []
    con.create_function("peek", lambda x: ran.append(x) or x, ["INTEGER"], "INTEGER")
    con.execute("CREATE MACRO reads(x) AS (SELECT content FROM read_text(x))")
    con.execute("CREATE MACRO upper(x) AS (SELECT content FROM read_text(x))")
    desk = Desk(folder, con=con)
    for sql in ("SELECT peek(a) FROM t", "SELECT Reads('/etc/hostname')", "SELECT upper('/etc/hostname')"):
        assert "function of the connection's own" in await desk.refuses(sql, connection="con")
    assert ran == []
    assert "| 1 |" in await desk.says("SELECT max(abs(a)) FROM t", connection="con")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t FROM t", "SELECT to_json(t) AS x FROM t", "SELECT COLUMNS('pass.*') AS x FROM t", "FROM t AS q(a, b)",
        "SELECT * RENAME (password AS p) FROM t", "SELECT 1 AS a, 'x' AS b UNION ALL FROM t", "SELECT histogram(q.b) FROM t AS q(a, b)",
        "FROM memory.main.t AS q(a, b)", "UNPIVOT t ON COLUMNS(*)::VARCHAR INTO NAME n VALUE q", "FROM t SELECT list(t)",
        "SELECT b.* FROM (WITH t AS (SELECT 1) FROM t), t AS b(a, b)", "FROM whole AS q(a, b)",
    ],
)  # fmt: skip
async def test_a_secret_column_of_a_connection_is_not_told_under_another_name(folder, con, sql):
    con.execute("CREATE VIEW whole AS FROM t")
    try:
        said = await Desk(folder, con=con).says(sql, connection="con")
    except ToolError as refused:
        said = str(refused)
    assert "hunter2" not in said
    assert con.execute("FROM t").fetchall() == [(1, "hunter2")], "the person's own connection sees what it saw"


async def test_a_name_of_a_with_opens_no_file_elsewhere_in_the_query(folder, con):
    outside = folder.parent / f"{folder.name}-outside.csv"
    sql = f'SELECT b.* FROM (WITH "{outside}" AS (SELECT 1) FROM "{outside}"), \'{outside}\' b'
    assert "plain name" in await Desk(folder, con=con).refuses(sql, connection="con")


@pytest.mark.parametrize(
    "options", ["header = false", "names = ['a', 'b', 'c']", "delim = '~', header = false", "columns = {'a': 'INT', 'b': 'INT', 'c': 'VARCHAR'}"]
)  # fmt: skip
async def test_a_secret_column_of_a_file_is_not_read_under_another_name(folder, options):
    assert "api_key looks like a secret" in await Desk(folder).refuses(f"FROM read_csv('a.csv', {options})")


async def test_long_values_are_cut_before_they_become_objects_of_the_kernel(folder):
    desk = Desk(folder, df=pd.DataFrame({"n": range(300_000), "t": ["x" * 50] * 300_000}))
    said = await desk.says(
        'SELECT list(n) AS "a""b", string_agg(t) AS s, map([n], [t]) AS m, \'ab\'::BLOB AS y FROM df GROUP BY m, n < 0 LIMIT 1'
    )
    assert '| a"b BIGINT[] | s VARCHAR | m MAP(BIGINT, VARCHAR) | y BLOB |' in said and "2 bytes" in said
    namespace = {"df": pd.DataFrame({"n": range(300_000)})}
    one = query.Query(namespace, DataFiles(folder), "SELECT list(n ORDER BY n) AS many FROM df ORDER BY 1", 50, "")
    tracemalloc.start()
    try:
        assert "[0, 1, 2" in one.run().text
        assert tracemalloc.get_traced_memory()[1] < 4_000_000, "300,000 numbers as objects are more"
    finally:
        tracemalloc.stop()


def test_a_connection_behind_sqlalchemy_and_duckdb_engine_is_found_and_no_other(con):
    def made(name: str, **held: object) -> object:
        module, _, kind = name.rpartition(".")
        one = type(kind, (), {"__module__": module, "__qualname__": kind})()
        vars(one).update(held)
        return one

    def behind(engine: str, raw: object) -> object:
        wrapper = made(f"{engine}.ConnectionWrapper", _ConnectionWrapper__c=raw)
        fairy = made("sqlalchemy.pool.base._ConnectionFairy", dbapi_connection=wrapper)
        return made("sqlalchemy.engine.base.Connection", _dbapi_connection=fairy)

    assert duckdb_of(con) is con
    assert duckdb_of(behind("duckdb_engine", con)) is con
    assert duckdb_of(behind("duckdb_engine", 3)) is duckdb_of(behind("psycopg", con)) is duckdb_of(None) is None


async def test_where_duckdb_is_not_installed_or_too_old_it_is_not_offered(folder, monkeypatch, tmp_path):
    package = tmp_path / "duckdb-1.0.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: duckdb\nVersion: 1.0.0\n")
    assert query.installed()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not query.installed()
    assert query.tools(Names(), DataFiles(folder)) == []


@pytest.mark.parametrize(
    ("sql", "circle"),
    [("WITH a AS (FROM b), b AS (FROM C JOIN df USING (k)), c AS (FROM a) FROM a", "a reads b, b reads c, c reads a"),
     ("WITH df AS (SELECT * FROM df) FROM df", "df reads df")],
)  # fmt: skip
async def test_a_with_that_goes_in_a_circle_is_named(folder, sql, circle):
    desk = Desk(folder, df=pd.DataFrame({"k": [1]}))
    assert f"the WITH goes in a circle: {circle}. Give a part another name" in await desk.refuses(sql)
    for fine in ("WITH RECURSIVE n AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM n WHERE k < 3) SELECT count(*) FROM n",
                 "WITH a AS (WITH b AS (SELECT 3) FROM b), b AS (FROM a) FROM b"):  # fmt: skip
        assert "| 3 |" in await desk.says(fine)
