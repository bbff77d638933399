"""A data file that a prompt mentions is told as `read_data_head` tells it; any other text is shown as it is."""

from __future__ import annotations

import sqlite3

import pytest

from nbagent.app.mentioned_files import file_facts
from nbagent.tools.data.sqlfiles import DataFiles

pytestmark = pytest.mark.slow


@pytest.fixture
def told(tmp_path):
    files = DataFiles(tmp_path, denied=lambda path: "private" in path)
    return lambda name: file_facts(files, tmp_path, name).text


def test_a_table_of_text_is_told_with_the_call_that_reads_it(told, tmp_path):
    (tmp_path / "sales.csv").write_bytes("Filiale;Umsatz\nKöln;1.234,50\nHamburg;7,25\n".encode("cp1252"))
    assert 'pd.read_csv("sales.csv", sep=";"' in told("sales.csv")
    assert 'decimal=","' in told("sales.csv")


def test_parquet_excel_and_sqlite_are_told_with_their_columns(told, tmp_path):
    import pandas as pd

    table = pd.DataFrame({"shop": ["a", "b"], "units": [1, 2]})
    table.to_parquet(tmp_path / "sales.parquet")
    table.to_excel(tmp_path / "sales.xlsx", index=False)
    with sqlite3.connect(tmp_path / "sales.db") as database:
        table.to_sql("sold", database, index=False)
    database.close()
    for name in ("sales.parquet", "sales.xlsx", "sales.db"):
        assert "'units'" in told(name), name
    assert "Parquet, 2 rows x 2 columns" in told("sales.parquet")
    assert "no text" not in told("sales.xlsx")


def test_a_folder_of_parquet_files_is_told_as_one_table_without_those_that_a_rule_hides(told, tmp_path):
    import pandas as pd

    for name in ("a", "private"):
        (tmp_path / "parts" / f"of={name}").mkdir(parents=True)
        pd.DataFrame({"units": [1, 2]}).to_parquet(tmp_path / "parts" / f"of={name}" / "p.parquet")
    said = told("parts/")
    assert "a folder of 1 Parquet files, 2 rows" in said
    assert "! 1 files in it may not be read" in said


def test_any_other_text_and_what_only_claims_to_be_data_are_shown_by_their_first_bytes(told, tmp_path):
    (tmp_path / "notes.md").write_text("a;b\n1;2\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1\0\0nonsense")
    assert told("notes.md") == "a text file of 8 bytes:\na;b\n1;2\n"
    assert "Its first bytes: b'PAR1" in told("broken.parquet")
