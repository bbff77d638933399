"""read_data_head: what it says of a file is so, and the call that it gives reads the file; nothing of a file is trusted."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import sqlite3
import time
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind
from nbagent.tools import workspace
from nbagent.tools.data.spelling import reading_of
from tests.tools.calling import Calling


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Calling(workspace.tools(tmp_path))


async def read(call, name, **options):
    """What is said of a file, and what the code that is said to read it gives."""
    said = await call.text("read_data_head", path=name, **options)
    code = said.split("To read", 1)[1].split("\n", 1)[1]
    names = {"pd": pd, "np": np}
    exec(code, names)
    return said, names["df"]


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

GERMAN = "Umsatz 2024\n\nName;Betrag;Datum;PLZ\nMüller;1.234,50;31.01.2024;01234\nÄrger;2,5;01.02.2024;10115\nX;-3,0;15.03.2024;00001\nSumme;1234;;\n"


async def test_a_german_export_is_read_with_its_encoding_signs_dates_codes_title_and_total(call, tmp_path):
    (tmp_path / "de.csv").write_bytes(GERMAN.encode("cp1252"))
    said, df = await read(call, "de.csv")
    assert df["Name"].tolist() == ["Müller", "Ärger", "X"]
    assert df["Betrag"].tolist() == [1234.5, 2.5, -3.0]
    assert df["Datum"].dt.month.tolist() == [1, 2, 3]
    assert df["PLZ"].tolist() == ["01234", "10115", "00001"]
    assert "cp1252 (Western Windows) is a guess" in said
    assert "the last 1 line is no data" in said


@pytest.mark.parametrize(
    ("text", "encoding", "columns", "first"),
    [
        ('id,price,when\n1,"1,234.50",03/14/2024\n2,"12.00",04/01/2024\n', "utf-8", ["id", "price", "when"],
         [1, 1234.5, pd.Timestamp("2024-03-14")]),
        ("1,2,3\n4,5,6\n7,8,9\n", "utf-8", [0, 1, 2], [1, 2, 3]),
        ("time,temp,p\ns,degC,hPa\n1,20.5,1013\n2,20.6,1012\n3,20.7,1011\n4,21,1\n", "utf-8", ["time", "temp", "p"], [1, 20.5, 1013]),
        ("a\tb\n1\tx\n2\ty\n3\tž\n", "utf-16", ["a", "b"], [1, "x"]),
        ("a;b\n1;ü\n2;y\n", "utf-8-sig", ["a", "b"], [1, "ü"]),
        ("# made by x\n# y\na,b\n1,2\n3,4\n5,6\n", "utf-8", ["a", "b"], [1, 2]),
        ("Report;;;\n;;;\na;b;c;d\n1;2;3;4\n5;6;7;8\n", "utf-8", ["a", "b", "c", "d"], [1, 2, 3, 4]),
        ("x  y z\n1  2 3\n4 5   6\n7 8 9\n", "utf-8", ["x", "y", "z"], [1, 2, 3]),
        ("x,y\n1,2,\n4,5,\n7,8,\n", "utf-8", ["x", "y"], [1, 2]),
        ("country,2019,2020\nA,1,2\nB,3,4\nC,5,6\n", "utf-8", ["country", "2019", "2020"], ["A", 1, 2]),
        ("v|w\n1|-\n2|3\n4|?\n", "utf-8", ["v", "w"], [1, float("nan")]),
        ("a,b\r\n1,'x'\r\n2,'y, z'\r\n", "utf-8", ["a", "b"], [1, "x"]),
    ],
)  # fmt: skip
async def test_the_call_that_is_given_reads_the_file_right(call, tmp_path, text, encoding, columns, first):
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    _, df = await read(call, "a.csv")
    assert df.columns.tolist() == columns
    pd.testing.assert_series_equal(pd.Series(df.iloc[0].tolist()), pd.Series(first), check_dtype=False)


async def test_columns_of_fixed_width_with_blanks_in_values(call, tmp_path):
    (tmp_path / "f.txt").write_text(
        "name        city        n\nAnna Maria  New York   12\nBob         LA          7\nCy          Rio        99\n"
    )
    _, df = await read(call, "f.txt")
    assert df["name"].tolist() == ["Anna Maria", "Bob", "Cy"]
    assert df["n"].tolist() == [12, 7, 99]


@pytest.mark.slow
@pytest.mark.parametrize(("opened", "name"), [(gzip.open, "a.csv.gz"), (bz2.open, "a.csv.bz2"), (gzip.open, "a.bin")])
async def test_packed_files_are_looked_into_and_rows_are_an_estimate(call, tmp_path, opened, name):
    lines = "".join(f"{i},{i / 7:.3f},abc{i % 5}\n" for i in range(40_000))
    with opened(tmp_path / name, "wt") as file:
        file.write("id,v,s\n" + lines)
    said, df = await read(call, name)
    assert len(df) == 40_000
    assert "an estimate" in said
    about = int(said.split("about ")[1].split(" ")[0].replace(",", ""))
    assert 30_000 < about < 55_000


async def test_a_zip_lists_its_files_and_shows_one(call, tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "a;b\n1;2\n3;4\n")
        archive.writestr("b.csv", "x\n1\n")
    assert "a.csv" in await call.text("read_data_head", path="two.zip")
    _, df = await read(call, "two.zip", table="a.csv")
    assert df["b"].tolist() == [2, 4]
    with pytest.raises(ToolError, match=r"no file 'c' in the archive\. There are: a\.csv"):
        await call.text("read_data_head", path="two.zip", table="c")


@pytest.mark.slow
async def test_bytes_that_are_not_utf8_further_on_are_seen(call, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n" + b"1,x\n" * 300_000 + "2,\xe9\n".encode("latin-1") * 60_000)
    said = await call.text("read_data_head", path="a.csv")
    assert "not utf-8; cp1252" in said


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sep=st.sampled_from(",;\t|"),
    rows=st.lists(st.tuples(st.integers(0, 9999), st.text("abcxyzäöü ,;'\"", max_size=8), st.floats(-1e6, 1e6)), min_size=4, max_size=30),
)  # fmt: skip
async def test_any_table_that_pandas_writes_comes_back_by_the_call(call, tmp_path, sep, rows):
    made = pd.DataFrame(rows, columns=["number", "some words", "value"])
    made["some words"] = "w" + made["some words"]
    made["value"] = made["value"].round(3) + 0.5
    made.to_csv(tmp_path / "p.csv", index=False, sep=sep)
    _, df = await read(call, "p.csv")
    pd.testing.assert_frame_equal(df, made, check_dtype=False)


# ── files with types of their own ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_an_excel_file_with_two_header_rows_a_title_a_total_and_a_hidden_sheet(call, tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet["A1"] = "Report 2024"
    sheet.append([])
    sheet.append(["Region", "2023", None, "2024", None])
    sheet.append([None, "Q1", "Q2", "Q1", "Q2"])
    for area in ("B3:C3", "D3:E3", "A3:A4"):
        sheet.merge_cells(area)
    for region in ("North", "South", "East"):
        sheet.append([region, 1, 2.5, 3, 4])
    sheet.append(["Total", 3, 7.5, 9, 12])
    other = book.create_sheet("old")
    other.sheet_state = "hidden"
    for row in (["zip", "n"], ["01234", 5], ["00001", 7]):
        other.append([None, *row])
    book.save(tmp_path / "x.xlsx")
    said, df = await read(call, "x.xlsx")
    assert "'old' (hidden)" in said
    assert df["2024", "Q2"].tolist() == [4, 4, 4]
    _, old = await read(call, "x.xlsx", table="old")
    assert old.to_dict("list") == {"zip": ["01234", "00001"], "n": [5, 7]}
    with pytest.raises(ToolError, match=r"no sheet 'x'\. There are: 'Sheet', 'old'"):
        await call.text("read_data_head", path="x.xlsx", table="x")


@pytest.mark.slow
async def test_of_several_sheets_the_largest_that_holds_something_is_told_and_all_are_named(call, tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = "Cover"
    book.active["A1"] = "Sales, as of March"
    data = book.create_sheet("Data")
    for row in (["shop", "units"], *([f"S{n}", n] for n in range(40))):
        data.append(row)
    book.create_sheet("Formatted").cell(row=900, column=9).number_format = "0.00"  # claims to be the largest, is empty
    book.save(tmp_path / "x.xlsx")
    said, df = await read(call, "x.xlsx")
    assert "Excel file, 3 sheets" in said and "'Cover'  1 rows" in said
    assert "sheet 'Data': 40 rows of data" in said
    assert "below is the largest" in said
    assert df["units"].tolist() == list(range(40))


async def test_xml_with_entities_is_not_opened(call, tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><workbook/>')
    with pytest.raises(ToolError, match="declares entities"):
        await call.text("read_data_head", path="bomb.xlsx")


async def test_a_sheet_that_says_no_size_and_unpacks_to_much_is_not_searched_for_it(call, tmp_path):
    sheet = b"<worksheet><sheetData><row><c><v>" + b"1" * 65_000_000 + b"</v></c></row></sheetData></worksheet>"
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    with pytest.raises(ToolError, match="does not say how large it is"):
        await call.text("read_data_head", path="bomb.xlsx")


async def test_parquet_a_folder_of_it_and_feather(call, tmp_path):
    made = pd.DataFrame({"k": ["a", "b", "c"], "v": [1, 2, None], "d": pd.date_range("2024", periods=3)})
    made.to_parquet(tmp_path / "p.parquet")
    made.to_parquet(tmp_path / "parts", partition_cols=["k"])
    made.to_feather(tmp_path / "f.feather")
    said, df = await read(call, "p.parquet")
    assert said.startswith("p.parquet: Parquet, 3 rows x 3 columns")
    assert "1 missing, 1.0 … 2.0" in said
    pd.testing.assert_frame_equal(df, made)
    said, df = await read(call, "parts")
    assert "a folder of 3 Parquet files, 3 rows" in said
    assert "k (3 values" in said
    assert len(df) == 3
    _, df = await read(call, "f.feather")
    pd.testing.assert_frame_equal(df, made)


@pytest.mark.parametrize(
    ("value", "said", "first"),
    [
        ([{"a": 1, "z": "007"}, {"a": 2, "z": "008"}], "a list of 2 records", {"a": 1, "z": "007"}),
        ([{"a": 1, "n": {"x": 2}}, {"a": 3, "n": {"x": 4}}], "a list of 2 records", {"a": 1, "n.x": 2}),
        ({"meta": {"v": 1}, "data": {"items": [{"a": 1}, {"a": 2}]}}, "a tree with a list", {"a": 1}),
        ({"columns": ["a"], "index": [0, 1], "data": [[1], [2]]}, "orient split", {"a": 1}),
        ({"a": [1, 2], "b": ["x", "y"]}, "a list for each column", {"a": 1, "b": "x"}),
        ({"r1": {"a": 1, "b": 2}, "r2": {"a": 3, "b": 4}}, "a record for each of 2 keys", {"a": 1, "b": 2}),
    ],
)
async def test_json_in_its_shapes(call, tmp_path, value, said, first):
    (tmp_path / "a.json").write_text(json.dumps(value))
    text, df = await read(call, "a.json")
    assert said in text
    assert df.iloc[0].to_dict() == first


async def test_json_lines_and_a_json_whose_end_was_not_looked_at(call, tmp_path):
    (tmp_path / "l.jsonl").write_text("".join(json.dumps({"a": i, "zip": f"{i:05d}"}) + "\n" for i in range(5)))
    _, df = await read(call, "l.jsonl")
    assert df["zip"].tolist()[1] == "00001"
    (tmp_path / "big.json").write_text(json.dumps({"d": [{"a": i, "b": "x" * 20} for i in range(30_000)]}))
    said, df = await read(call, "big.json")
    assert "its beginning was looked at" in said
    assert len(df) == 30_000


async def test_sqlite_is_read_as_it_lies_there_and_nothing_of_it_runs(call, tmp_path):
    base = tmp_path / "x.db"
    with sqlite3.connect(base) as con:
        con.execute("create table t(id integer primary key, name text, api_key text)")
        con.executemany("insert into t values(?,?,?)", [(i, f"n{i}", "hunter2hunter2") for i in range(1, 51)])
        con.execute("create view v as select load_extension('evil') from t")
        con.execute('create table "odd ""name" (a)')
    con.close()
    before = base.read_bytes(), sorted(tmp_path.iterdir())
    said = await call.text("read_data_head", path="x.db")
    assert "views, not opened: 'v'" in said
    said, df = await read(call, "x.db", table="t")
    assert "about 50 rows" in said
    assert "hunter2" not in said
    assert len(df) == 50
    assert (base.read_bytes(), sorted(tmp_path.iterdir())) == before
    with pytest.raises(ToolError, match="no table 'v'"):
        await call.text("read_data_head", path="x.db", table="v")


async def test_headers_of_numpys_files_are_read_without_the_data(call, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4)))
    np.savez(tmp_path / "a.npz", a=np.arange(3), b=np.zeros(2))
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "shape (3, 4), type <f8, 96 bytes" in await call.text("read_data_head", path="a.npy")
    assert "'b'  shape (2,)" in await call.text("read_data_head", path="a.npz")
    assert "a pickle, which runs code" in await call.text("read_data_head", path="o.npy")


# ── what must not happen ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_rules_links_secrets_and_devices_are_as_for_read_file(call, tmp_path):
    (tmp_path.parent / "out.csv").write_text("a,b\n1,2\n")
    (tmp_path / "link.csv").symlink_to(tmp_path.parent / "out.csv")
    (tmp_path / ".env").write_text("KEY=1\n")
    os.mkfifo(tmp_path / "pipe")
    assert call.kind("read_data_head", path="link.csv") is Kind.PROTECTED
    assert call.kind("read_data_head", path=".env") is Kind.PROTECTED
    assert call.kind("read_data_head", path="a.csv") is Kind.READ
    with pytest.raises(ToolError, match="not a regular file"):
        await call.text("read_data_head", path="pipe")
    with pytest.raises(ToolError, match=r"nope\.csv: no such file"):
        await call.text("read_data_head", path="nope.csv")
    strict = Calling(workspace.tools(tmp_path, denied=lambda path: path.endswith("s.csv")))
    (tmp_path / "s.csv").write_text("a\n1\n")
    with pytest.raises(ToolError, match=r"a rule forbids to read s\.csv"):
        await strict.text("read_data_head", path="s.csv")


async def test_a_column_named_like_a_secret_and_a_key_anywhere_are_not_shown(call, tmp_path):
    key = "sk-ant-" + "a1b2c3d4" * 4
    (tmp_path / "a.csv").write_text(f"user,password,note\nann,swordfish,{key}\nbob,opensesame,x\n")
    said = await call.text("read_data_head", path="a.csv")
    assert not any(word in said for word in ("swordfish", "opensesame", key))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n\n  \n", "nothing but blanks"),
        (b"\x80\x04\x95evil", "a pickle"),
        (bytes(range(256)) * 8, "binary, of no kind"),
        (b"[" * 100_000, "nested too deeply"),
        (b"x" * 600_000, "more than 200,000 characters"),
        (b"<html><table></table></html>", "XML or HTML"),
    ],
)
async def test_what_is_no_table_is_told_in_a_sentence(call, tmp_path, content, said):
    (tmp_path / "f").write_bytes(content)
    assert said in await call.text("read_data_head", path="f")


@pytest.mark.parametrize(
    "start", [b"PAR1", b"ARROW1\0\0", b"\x93NUMPY\x01\0", b"SQLite format 3\0", b"PK\x03\x04", b"\x1f\x8b", b"BZh"]
)
async def test_a_broken_file_is_a_sentence(call, tmp_path, start):
    (tmp_path / "f").write_bytes(start + b"garbage \xff\x00" * 50)
    with pytest.raises(ToolError, match=r"\Af: .{10,300}\Z"):
        await call.text("read_data_head", path="f")


@pytest.mark.slow
async def test_a_bomb_is_not_unpacked(call, tmp_path):
    with gzip.open(tmp_path / "bomb.gz", "wb") as file:
        for _ in range(200):
            file.write(b"0,1\n" * 262_144)  # 200 MB of it
    said = await call.text("read_data_head", path="bomb.gz")
    assert "an estimate from the first 524.3 KB" in said


async def test_a_sheet_is_unpacked_no_further_than_its_first_megabytes(call, tmp_path):
    pd.DataFrame({"a": [1]}).to_excel(tmp_path / "small.xlsx", index=False)
    with (
        zipfile.ZipFile(tmp_path / "small.xlsx") as small,
        zipfile.ZipFile(tmp_path / "cell.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as large,
    ):
        for name in small.namelist():
            data = small.read(name)
            if name.startswith("xl/worksheets/sheet"):
                assert b"<dimension" in data
                cell = b'<row r="1"><c r="A1" t="inlineStr"><is><t>' + b"x" * 30_000_000 + b"</t></is></c></row>"
                data = data[: data.index(b"<sheetData>") + 11] + cell + b"</sheetData></worksheet>"
            large.writestr(name, data)
    with pytest.raises(ToolError, match="the first row of sheet 'Sheet1' is larger than"):
        await call.text("read_data_head", path="cell.xlsx")


async def test_a_file_of_ten_thousand_columns_is_told_in_a_second(call, tmp_path):
    names = ",".join(f"c{n}" for n in range(10_000))
    rows = [",".join(f"w{n % 7}" if n % 3 == 0 else f"{n * row}.25" for n in range(10_000)) for row in range(1, 12)]
    (tmp_path / "wide.csv").write_text("\n".join([names, *rows]))
    await call.text("read_data_head", path="wide.csv")  # what is imported once is imported
    began = time.process_time()
    said = await call.text("read_data_head", path="wide.csv")
    assert time.process_time() - began < 1.0
    assert "10,000 columns" in said and "'c1'  number" in said and "header in line 1" in said


@pytest.mark.parametrize("texts", [["12", "007"], ["1.50", "-3"], ["12345678", "1"], ["+5", "0.5"]])
def test_plain_numbers_are_read_as_they_are_the_long_way(texts):
    assert reading_of([*texts] * 20) == replace(reading_of([*texts] * 20 + ["~"]), strays=(), share=1.0)
