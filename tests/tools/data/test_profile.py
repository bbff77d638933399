"""profile_table: what it says of a table is so, of any library; nothing lazy is computed, no stranger's code runs, no answer is long."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from decimal import Decimal
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.core.tools import Call, Kind
from nbagent.tools.data.columndetails import column_details
from nbagent.tools.data.columns import table_of
from nbagent.tools.data.numbers import of_numbers
from nbagent.tools.data.reading import opened
from nbagent.tools.data.sampling import CELLS, ROWS, planned
from nbagent.tools.data.tables import profile_tool, profiled
from nbagent.tools.data.tally import Tally

TODAY = dt.date(2025, 1, 1)


async def said_of(value: Any, full: bool = False, **others: Any) -> str:
    return await profiled("t", {"t": value, **others}, full=full, today=TODAY)


def block(text: str, label: str) -> str:
    """What is said of one column."""
    lines = text.splitlines()
    at = next(place for place, line in enumerate(lines) if line.removeprefix("index ").startswith(f"{label}  "))
    return "\n".join([lines[at], *(line for line in _while_indented(lines[at + 1 :]))])


def _while_indented(lines):
    for line in lines:
        if not line.startswith("    "):
            return
        yield line


HOURS = pd.date_range("2024-01-01", periods=200, freq="h")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0, -999.0, None] * 3, ["missing 3 (14.3%: NaN)", "stands for missing? -999 (3)"]),
        ([20, 30, 40, 50, 60, 33, 999, 999], ["stands for missing? 999 (2)"]),
        ([*range(1, 60), -3], ["1 negative among positive: -3"]),
        ([*range(100), 5000], ["1 far outside the quartiles: 5000"]),
        ([7] * 5, ["constant: 7"]),
        ([2001, 2002, 2003, 2004, 2005, 2006, 1900], ["years that stand for nothing? 1900 (1)"]),
        (["a", "b ", "", "N/A", "c"], ["stands for missing? 'N/A' (1)", "1 empty or blank", "with blanks before or after: 'b '"]),
        (["Berlin", "berlin ", "BERLIN", "Paris", "Paris"], ["1 spelled in more than one way"]),
        (["1.234,50", "2,5", "3,1"], ["numbers stored as text (decimal sign ',', thousands '.')"]),
        (["$1", "$2.50", "$3"], ["with signs of currency"]),
        (["01234", "00001", "99999"], ["leading zeros: codes, keep them as text"]),
        (["2024-02-30", "2024-01-31", "2024-03-01"], ["dates stored as text (%Y-%m-%d)", "1 on days that do not exist: '2024-02-30'"]),
        (["03/04/2024", "05/06/2024"], ["day and month can't be told apart"]),
        (["MÃ¼nchen", "KÃ¶ln", "Bonn"], ["2 look garbled"]),
        (["a\u00a0b", "c", "d"], ["unseen characters"]),
        ([1, "a", 2.5, "b"], ["mixed types: str (2)"]),
        ([HOURS[0], *HOURS[5:]], ["every 1 h", "1 gap longer than the usual step: 5 h after 2024-01-01"]),
        ([*HOURS, pd.Timestamp("1970-01-01")], ["days that stand for nothing? 1970-01-01 (1)", "not in order (1 time back)"]),
        ([*HOURS, pd.Timestamp("2031-01-01")], ["1 later than today"]),
        ([*pd.date_range("2024-03-30", periods=3, tz="Europe/Berlin")], ["time zone Europe/Berlin", "2024-03-30 … 2024-04-01"]),
        ([*pd.date_range("2020", periods=30, freq="MS")], ["every month (100% of steps)"]),
        ([*pd.bdate_range("2024-01-01", periods=60)], ["every business day"]),
        ([float("inf"), 1.0, 2.0], ["1 infinite"]),
        ([1, 2, 10], ["25% 1.5 · median 2 · 75% 6"]),  # as pandas takes quantiles
        ([10**400, 3], ["whole numbers of more than 1,000 bits"]),
        ([1 + 2j, 1 + 2j, 3j], ["complex128", "2 different"]),
        ([Decimal("1.5"), Decimal("NaN"), Decimal("sNaN"), Decimal(3)], ["missing 2 (50%: NaN)", "median 2.25"]),
        ([[1], [2]], ["holds list objects, which were not looked into"]),
    ],
)  # fmt: skip
async def test_what_is_suspicious_about_a_column_is_said(values, said):
    text = block(await said_of(pd.DataFrame({"x": values, "n": range(len(values))})), "'x'")
    for part in said:
        assert part in text, text


async def test_rows_and_columns_that_are_there_twice_and_keys_of_two_columns():
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [5, 6, 7, 7]})
    text = await said_of(frame)
    assert "no single column is a key; pairs that are: " in text
    assert "('a', 'b')" in text
    text = await said_of(pd.DataFrame({"a": [1, 1, 2], "b": [3, 3, 4], "c": [3, 3, 4]}))
    assert "1 rows (33.3%) are there more than once" in text
    assert "columns with the same values: 'a' = 'b', 'b' = 'c'" not in text
    assert "'b' = 'c'" in text
    assert "key candidates: 'id'" in await said_of(pd.DataFrame({"id": [3, 1, 2], "x": [1.5, 2.5, 3.5]}))
    assert "labels that occur more than once: 'a'" in await said_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


async def test_a_join_with_another_table_names_what_has_no_partner():
    orders = pd.DataFrame({"cust": [" C1", "c2", "C3", "C9"] * 10, "n": range(40)})
    text = await said_of(orders, custs=pd.DataFrame({"cust": ["C1", "C2", "C3"], "name": ["a", "b", "c"]}))
    assert "join with custs on 'cust' (unique there): 3 values (75% of rows) have no partner" in text
    assert "2 of them would match without case, blanks and signs" in text


@pytest.mark.parametrize("full", [False, True])
async def test_tables_of_other_libraries_say_the_same(full):
    values = {"i": [1, 2, 2, None], "s": ["x ", "y", "y", "z"], "d": [dt.date(2024, 1, day) for day in (1, 2, 3, 4)]}
    for table in (pl.DataFrame(values), pa.table(values), pd.DataFrame(values)):
        text = await said_of(table, full)
        assert "missing 1 (25%" in block(text, "'i'")
        assert "with blanks before or after: 'x '" in block(text, "'s'")
        assert "2024-01-01 … 2024-01-04, in order, every 1 d" in block(text, "'d'")


@pytest.mark.slow
async def test_what_is_lazy_is_read_only_when_asked_and_only_its_beginning():
    computed = []

    def compute(frame):
        computed.append(len(frame))
        return frame

    lazy = pl.LazyFrame({"a": range(200_000)}).map_batches(compute)
    assert "nothing of it is computed" in await said_of(lazy)
    assert not computed
    relation = duckdb.connect().sql("select range as i from range(1000000000000)")
    assert "nothing of it is computed" in await said_of(relation)
    assert f"{ROWS:,} rows" in await said_of(relation, full=True)
    assert f"{ROWS:,} rows x 1 columns" in await said_of(lazy, full=True)
    parts = dd.from_pandas(pd.DataFrame({"a": range(30)}), npartitions=3)
    assert "nothing of it is computed" in await said_of(parts)
    assert "10 rows x 1 columns" in await said_of(parts, full=True)


@pytest.mark.slow
async def test_a_large_table_is_sampled_and_says_so_and_in_full_it_is_read_whole():
    frame = pd.DataFrame({"id": np.arange(1_000_000), "v": 1.5})
    frame.loc[500_123, "v"] = 7
    text = await said_of(frame)
    assert "Of 100,000 of 1,000,000 rows (20 stretches of 5,000 rows" in text
    whole = await said_of(frame, full=True)
    assert "Of all 1,000,000 rows." in whole
    assert "max 7" in block(whole, "'v'")
    assert "key candidate" in block(whole, "'id'")


@pytest.mark.slow
async def test_of_thousands_of_columns_the_suspicious_ones_are_told_and_the_rest_is_summed_up():
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 2000)))
    frame[1234] = 1
    text = await said_of(frame)
    assert "constant: 1" in text
    assert "more columns (" in text
    assert len(text) < 12_000


async def test_a_look_is_bounded_in_cells_whatever_the_table_is():
    frame = pd.DataFrame({f"c{n}": np.arange(400_000) for n in range(16)})
    plan = planned(opened(frame))
    taken = sum(stop - start for start, stop in plan.stretches) * 16
    assert taken <= CELLS
    assert plan.stretches[0][0] == 0
    assert plan.stretches[-1][1] == 400_000


class Hostile:
    """Whatever is asked of it raises."""

    def __repr__(self):
        raise SystemExit

    __str__ = __repr__

    def __eq__(self, other):
        raise SystemExit

    def __hash__(self):
        raise SystemExit

    def __bool__(self):
        raise SystemExit

    def __len__(self):
        raise SystemExit


async def test_strangers_objects_in_a_table_are_not_touched():
    text = await said_of(pd.DataFrame({"o": pd.Series([Hostile(), 1, "a"], dtype=object), "n": [1, 2, 3]}))
    assert "Hostile (1)" in block(text, "'o'")


async def test_a_table_whose_own_code_fails_is_one_sentence():
    class Broken(pd.DataFrame):
        @property
        def columns(self):
            raise SystemExit

    with pytest.raises(ToolError, match="the table can't be read: <repr failed: SystemExit>"):
        await said_of(object.__new__(Broken))


async def test_secrets_are_not_looked_at():
    text = await said_of(pd.DataFrame({"password": ["swordfish", "sesame"], "n": [1, 2]}))
    assert "values hidden" in text
    assert "swordfish" not in text
    key = "sk-ant-" + "a1b2c3d4" * 4
    assert key not in await said_of(pd.DataFrame({"x": [key, key], "n": [1, 2]}))


async def test_the_table_is_as_it_was_and_other_values_are_no_table():
    frame = pd.DataFrame({"a": [1, None], "b": ["x", " y"]}, index=[5, 6])
    before = frame.copy(deep=True)
    await said_of(frame)
    await said_of(frame, full=True)
    pd.testing.assert_frame_equal(frame, before)
    with pytest.raises(ToolError, match="no table that can be profiled"):
        await said_of(3)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(), pd.DataFrame({"a": []}), pl.DataFrame(), pa.table({"a": pa.array([], pa.int64())})]
)
async def test_empty_tables_are_told(frame):
    assert "0 rows x" in await said_of(frame)


async def test_the_tool_only_looks_and_names_the_nearest_variable():
    class Names:
        def namespace(self):
            return {"sales": pd.DataFrame({"a": [1, 2]})}

    profile = profile_tool(Names())
    assert profile.kind(profile.validate({"name": "sales"})) is Kind.READ
    call = Call("c1", lambda _: None, lambda _: None)
    result = await profile.run(call, profile.validate({"name": "sales"}))
    assert "key candidate" in result.content[0]["text"]
    with pytest.raises(ToolError, match="Near: 'sales'"):
        await profile.run(call, profile.validate({"name": "sale"}))


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.none() | st.integers() | st.floats() | st.text(max_size=20) | st.booleans() | st.dates() | st.datetimes() | st.binary(max_size=3),
        max_size=30,
    )
)  # fmt: skip
def test_any_values_make_a_profile(values):
    text = asyncio.run(said_of(pd.DataFrame({"x": pd.Series(values, dtype=object), "n": range(len(values))})))
    assert len(text) < 6_000


@pytest.mark.slow
async def test_a_look_at_all_rows_ends_at_once_when_it_is_cancelled():
    begun = asyncio.Event()
    frame = pd.DataFrame({f"c{n}": np.arange(3_000_000) for n in range(10)})
    looking = asyncio.create_task(profiled("t", {"t": frame}, full=True, progress=lambda _: begun.set()))
    await asyncio.wait_for(begun.wait(), 60)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(looking, 5)


def test_quartiles_of_more_different_numbers_than_are_kept_are_those_of_all_rows():
    tally = Tally(1_000, rows=False)
    for start in range(0, 100_000, 1_000):
        tally.feed([float(n) for n in range(start, start + 1_000)], goes_on=True)
    said, _ = of_numbers(tally)
    told = {
        name: float(value) for name, value in re.findall(r"(min|25%|median|75%|max|mean) (?:about )?([\d.e+]+)", said)
    }
    assert (told["min"], told["max"], told["mean"]) == (0, 99_999, 49_999.5)
    assert abs(told["25%"] - 25_000) < 500
    assert abs(told["median"] - 50_000) < 500
    assert abs(told["75%"] - 75_000) < 500
    assert "median about" in said


def test_whole_numbers_of_one_column_are_told_to_their_last_digit():
    table = table_of(pd.DataFrame({"id": [12_345_678, 12_345_679], "huge": [10**400, 2]}))
    assert table is not None
    assert "min 12345678, mean 1.23457e+07, max 12345679" in column_details(table, 0, "id")
    assert "max an int of 1,329 bits" in column_details(table, 1, "huge")
