"""Columns of tables of each library: told, hidden and left out in the same way; what is lazy has no values."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nbagent.core.errors import ToolError
from nbagent.tools.data.columns import table_of
from nbagent.tools.variables import column_of
from nbagent.tools.veil import Veil

DATA = {"species": ["Adelie", "Gentoo", "Adelie", None], "mass": [3.0, 5.0, 4.0, 6.0]}


def _dataset() -> Any:
    import xarray as xr

    return xr.Dataset({name: ("row", values) for name, values in DATA.items()})


TABLES = {"pandas": lambda: pd.DataFrame(DATA), "polars": lambda: pl.DataFrame(DATA), "pyarrow": lambda: pa.table(DATA)}


@pytest.mark.slow
@pytest.mark.parametrize("make", [*TABLES.values(), _dataset], ids=[*TABLES, "xarray"])
def test_a_column_shows_values_counts_and_range(make: Any) -> None:
    text = column_of("df", make(), "species")
    assert "missing: 1" in text
    assert "'Adelie' (2), 'Gentoo' (1)" in text
    assert "min 3, mean 4.5, max 6" in column_of("df", make(), "mass")
    with pytest.raises(ToolError, match=r"Near: 'mass'"):
        column_of("df", make(), "mas")


@pytest.mark.slow
@pytest.mark.parametrize("make", [*TABLES.values(), _dataset], ids=[*TABLES, "xarray"])
def test_a_hidden_column_is_told_by_its_type_only(make: Any) -> None:
    stands = Veil(hidden=("df.species",)).told("df", make())
    text = stands.more(None)
    assert "Adelie" not in text
    assert "'mass'" in text
    assert "hidden by the person" in stands.more("species")
    assert "max 6" in stands.more("mass")


@pytest.mark.slow
def test_an_output_of_a_lazy_table_with_a_hidden_column_is_held_back() -> None:
    import duckdb

    relation = duckdb.connect().sql("SELECT 'x' AS species, 1 AS mass")
    shown = ({"output_type": "stream", "name": "stdout", "text": "1"},)
    veil = Veil(hidden=("rel.species",))
    assert "held back" in str(veil.outputs("rel.show()", shown, {"rel": relation}))
    assert veil.outputs("print(1)", shown, {"rel": relation}) == shown


@pytest.mark.slow
def test_what_is_lazy_has_names_and_types_and_no_values() -> None:
    import duckdb

    relation = duckdb.connect().sql("SELECT error('computed') AS b")
    table = table_of(relation)
    assert table is not None
    assert table.labels() == ["b"]
    assert table.values(0, 10) is None
    assert "not in memory" in column_of("rel", relation, "b")
    scan = table_of(pl.scan_csv("/nowhere/no.csv"))
    assert scan is not None
    assert scan.labels() == []


@pytest.mark.slow
def test_a_huge_column_is_told_by_its_first_rows() -> None:
    frame = pd.DataFrame({"n": range(300_000)})
    text = column_of("df", frame, "n")
    assert "the first 10,000 of 300,000 rows" in text
    assert "distinct: 10,000" in text


def test_a_value_that_is_no_table_has_no_columns() -> None:
    assert table_of([1]) is None
    with pytest.raises(ToolError, match="x is list: `column` is for tables"):
        column_of("x", [1], "a")
