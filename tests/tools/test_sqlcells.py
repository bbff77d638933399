"""Cells of jupysql: what they make, save and read is told from their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.ports import Cell
from nbagent.tools.flowmagics import MagicNames, magic_names
from nbagent.tools.hidden import unmade
from nbagent.tools.sqlcells import head_of, sql_cell, sql_parts, tables_of, with_head
from nbagent.tools.veil_names import made_of


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


def test_what_is_made_of_hidden_frames_by_sql_is_hidden_with_them():
    cells = ["get_ipython().run_cell_magic('sql', 'few <<', 'SELECT * FROM patients LIMIT 3')",
             "get_ipython().run_cell_magic('sql', '--save q --no-execute', 'SELECT * FROM patients')",
             "get_ipython().run_cell_magic('sql', 'more << --with q', 'SELECT * FROM q')",
             "get_ipython().run_cell_magic('sql', 'other <<', 'SELECT * FROM sales')"]  # fmt: skip
    made = made_of(cells, lambda name: name == "patients", lambda _: False)
    assert {"few", "q", "more"} <= set(made)
    assert "other" not in made


def test_a_cell_below_knows_what_a_sql_cell_makes_and_what_an_earlier_one_has_saved():
    cells = [
        Cell("a", "code", "import pandas as pd\ndf = pd.DataFrame()", 0),
        Cell("b", "code", "%%sql --save big\nSELECT * FROM df", 1),
        Cell("c", "code", "%%sql few << --with big\nSELECT * FROM big", 2),
        Cell("d", "code", "few.head(), nothing", 3),
    ]
    assert unmade(cells, {"c", "d"}) == {"d": ("nothing",)}
    assert magic_names("sql", "few << --with big", "SELECT * FROM big JOIN df USING (k)") == MagicNames(
        frozenset({"few"}), frozenset({"big", "df"})
    )


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("%%sql few <<\nFROM df", "SELECT * FROM df", "%%sql few <<\nSELECT * FROM df"),
        ("%%sql few <<\nFROM df", "%%sql other <<\nFROM df", "%%sql other <<\nFROM df"),
        ("%%sql few <<\nFROM df", "few = df.head()", "few = df.head()"),
        ("x = 1", "SELECT 1", "SELECT 1"),
    ],
)
def test_bare_sql_for_a_sql_cell_keeps_that_cells_line(old, new, kept):
    assert with_head(old, new) == kept
