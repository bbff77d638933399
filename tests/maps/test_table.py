"""The table of a map: a data frame, a text, HTML, files; rows in order, failures listed, nothing of others trusted."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from nbagent.app.maptable import RESULTS, Row, Table
from nbagent.core.errors import ConfigError


def row(given: dict[str, Any], fields: dict[str, Any] | None = None, **results: Any) -> Row:
    known = {"answer": "", "status": "done", "stop_reason": "end_turn", "turns": 1, "tokens": 10, "cost": 0.5, "session": "s.jsonl",
             "seconds": 1.0, "problem": ""}  # fmt: skip
    return Row.of(given, fields or {}, {**known, **results})


TABLE = Table(
    [
        row({"input": "a.csv"}, {"total": 3}, answer="three"),
        row({"input": "b.csv"}, {"total": None}, status="failed", problem="<b>no</b> file", cost=None),
    ],
    "maps/1",
)


def test_a_table_is_a_data_frame_with_its_columns_in_order() -> None:
    for frame in (pd.DataFrame(TABLE), TABLE.to_pandas()):
        assert list(frame.columns) == ["input", "total", *RESULTS]
        assert list(frame["input"]) == ["a.csv", "b.csv"]
        assert frame["total"].sum() == 3
    assert pl.DataFrame(TABLE.to_dicts()).columns == ["input", "total", *RESULTS]


def test_rows_are_mappings_with_attributes() -> None:
    first = TABLE[0]
    assert (first["answer"], first.total, dict(first)["input"]) == ("three", 3, "a.csv")
    with pytest.raises(AttributeError, match="no column 'nothing'"):
        _ = first.nothing
    assert TABLE["answer"] == ["three", ""]
    assert [one["input"] for one in TABLE[1:]] == ["b.csv"]
    with pytest.raises(KeyError):
        TABLE["nothing"]


def test_columns_of_the_input_never_hide_those_of_the_answer() -> None:
    found = row({"cost": 9, "n": 1, "total": 2}, {"total": 3, "status": "open"})
    assert (found["input.cost"], found["cost"], found["input.total"], found["total"]) == (9, 0.5, 2, 3)
    assert (found["answer.status"], found["status"]) == ("open", "done")


def test_what_came_to_nothing_is_listed_and_counted() -> None:
    assert [one["input"] for one in TABLE.failed] == ["b.csv"]
    assert TABLE.cost == 0.5
    assert TABLE.totals.sentence == "2 inputs: 1 done, 1 failed · 2 turns · 20 tokens · 0.50 USD"
    assert "failed: b.csv: <b>no</b> file" in str(TABLE)
    assert Table([row({"input": "x"}, cost=None)]).cost is None


def test_the_html_escapes_what_comes_from_others_and_says_where_all_is() -> None:
    html = TABLE._repr_html_()
    assert "&lt;b&gt;no&lt;/b&gt; file" in html
    assert "<b>no" not in html
    assert "maps/1" in html


def test_a_long_table_shows_its_first_rows_and_counts_the_rest() -> None:
    table = Table([row({"input": f"n{number}"}) for number in range(500)])
    assert "… and 480 more rows" in str(table)
    assert "n19" in table._repr_html_()
    assert "n20<" not in table._repr_html_()


def test_a_table_is_written_as_the_file_is_named(tmp_path: Path) -> None:
    with TABLE.save(tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert [one["input"] for one in csv.DictReader(file)] == ["a.csv", "b.csv"]
    assert json.loads(TABLE.save(tmp_path / "t.json").read_text("utf-8")) == TABLE.to_dicts()
    assert [
        json.loads(line) for line in TABLE.save(tmp_path / "t.jsonl").read_text("utf-8").splitlines()
    ] == TABLE.to_dicts()
    with pytest.raises(ConfigError, match=r"\.csv, \.json or \.jsonl"):
        TABLE.save(tmp_path / "t.xlsx")


async def test_a_finished_table_may_be_awaited() -> None:
    assert await TABLE is TABLE


def test_an_empty_table_says_that_there_was_nothing_to_do() -> None:
    assert str(Table(())) == "0 inputs: nothing to do"
    assert list(Table(()).to_pandas().columns) == list(RESULTS)
