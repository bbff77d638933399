"""Cells of jupysql: what they make, save and read is told from their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.tools.sqlcells import head_of, sql_cell, sql_parts, tables_of


@pytest.mark.parametrize(
    ("source", "makes", "uses"),
    [
        ("%%sql\nSELECT * FROM df", "", ("df",)),
        ("%%sql res << SELECT * FROM df", "res", ("df",)),
        ('%%sql res <<\nSELECT *\nFROM df d, other o JOIN "my t" ON 1', "res", ("df", "other", "my t")),
        ("%%sql res = <<\nFROM df", "res", ("df",)),
        ("%%sql\nres << SELECT 1", "res", ()),
        ("# why\n%%sql con\nFROM df", "", ("df", "con")),
        ("%%sql duckdb:// --alias x\nFROM df", "", ("df",)),
        ("x = %sql SELECT * FROM df", "x", ("df",)),
        ("%sql res << SELECT * FROM df WHERE a = 'FROM no'", "res", ("df",)),
        ("%sql --persist df", "", ("df",)),
        ("%%sql\nSELECT * FROM {{ table }} WHERE a IN {{ names | inclause }} AND b = '{{ c.d }}'", "", ("table", "names", "c")),
        ("%%sql\n{% for col in cols %} {{ col }} {% endfor %}", "", ("cols",)),
        ("get_ipython().run_cell_magic('sql', 'res <<', 'SELECT * FROM patients')", "res", ("patients",)),
        ("x = get_ipython().run_line_magic('sql', 'SELECT 1 FROM df')", "", ("df",)),
    ],
)  # fmt: skip
def test_what_a_cell_makes_and_uses(source, makes, uses):
    (found,) = sql_parts(source)
    assert (found.makes, found.uses) == (makes, uses)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("WITH a AS (SELECT * FROM b), c AS (FROM d) SELECT * FROM a, c, e, (SELECT 1 FROM f) g, h", ("b", "d", "e", "f", "h")),
        ("SELECT extract(year FROM day), trim(BOTH ' ' FROM x) FROM t -- FROM no\n/* FROM no */", ("t",)),
        ("SELECT * FROM s.t, read_csv('x.csv') JOIN u USING (k)", ("u",)),
        ("PIVOT df ON a USING sum(b)", ("df",)),
        ("SUMMARIZE df", ("df",)),
        ('SELECT a.from, "from" FROM t1 LEFT JOIN t2 ON t1.a = t2.b WHERE t1.c, x IN (SELECT y FROM t3)', ("t1", "t2", "t3")),
        ("", ()),
    ],
)  # fmt: skip
def test_the_tables_that_sql_reads(sql, tables):
    assert tables_of(sql) == tables


def test_saved_queries_and_their_users_are_told():
    kept, used = sql_cell("%%sql --save big --no-execute\nFROM df"), sql_cell("%%sql --with big,small\nFROM big")
    assert kept is not None and (kept.saves, kept.tables) == ("big", ("df",))
    assert used is not None and used.uses_saved == ("big", "small")


def test_only_a_cell_of_sql_has_a_head_and_it_is_given_as_it_stands():
    assert head_of("%%sql res << --save x\nFROM df") == "%%sql res << --save x"
    assert head_of("x = 1") == head_of("%%sqlplot\nx") == ""
    assert sql_parts("x = 1\n# %sql") == ()


@given(st.text() | st.text("%sqlSELECT FROM df,()<=\"'{}\n-"))
def test_no_text_breaks_the_reader(text):
    sql_parts(text)
    tables_of(text)
    sql_cell(f"%%sql {text}")
