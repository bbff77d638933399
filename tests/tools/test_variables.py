"""Looking at variables: cheap at any size, without effects, exact about names, honest about samples."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from collections import OrderedDict, defaultdict
from typing import Any, ClassVar
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.core.tools import Call, Kind
from nbagent.tools.describe import brief
from nbagent.tools.details import details
from nbagent.tools.variables import describe_all, tools

CALL = Call("c1", lambda _: None, lambda _: None)


class Names:
    """A kernel of which only the namespace is asked."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def namespace(self) -> dict[str, Any]:
        return dict(self.values)

    async def run(self, code, *, emit, timeout):
        raise AssertionError("looking runs no code")

    async def scratch(self, code, *, timeout, emit=None):
        raise AssertionError("looking runs no code")


async def look(_name: str, _column: str | None = None, **values: Any) -> str:
    _, inspect_variable, _ = tools(Names(**values))
    given = inspect_variable.validate({"name": _name, "column": _column})
    return (await inspect_variable.run(CALL, given)).content[0]["text"]


async def listing(pattern: str = "*", limit: int = 200, **values: Any) -> str:
    list_variables, *_ = tools(Names(**values))
    return (await list_variables.run(CALL, {"pattern": pattern, "limit": limit})).content[0]["text"]


class Hostile:
    """Everything that looking might call raises, and says so."""

    touched: ClassVar[list[str]] = []

    def _fail(self, name: str):
        Hostile.touched.append(name)
        raise SystemExit(name)

    def __repr__(self): self._fail("repr")  # fmt: skip

    def __str__(self): self._fail("str")  # noqa: PLE0307  # fmt: skip

    def __len__(self): self._fail("len")  # noqa: PLE0303  # fmt: skip

    def __bool__(self): self._fail("bool")  # noqa: PLE0304  # fmt: skip

    def __iter__(self): self._fail("iter")  # fmt: skip

    def __eq__(self, other): self._fail("eq")  # fmt: skip

    def __hash__(self): self._fail("hash")  # noqa: PLE0309  # fmt: skip

    def __getattr__(self, name): self._fail("getattr " + name)  # fmt: skip

    def __getattribute__(self, name):  # fmt: skip
        if name != "_fail":
            object.__getattribute__(self, "_fail")("getattribute " + name)
        return object.__getattribute__(self, name)

    @property
    def __class__(self): self._fail("class")  # fmt: skip


class HostileList(list):
    def __len__(self):
        raise SystemExit

    def __iter__(self):
        raise SystemExit

    def __repr__(self):
        raise KeyboardInterrupt


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "line"),
    [
        (3, "3"),
        (2.5, "2.5"),
        (None, "None"),
        ("text", "'text'"),
        ("x" * 1000, "str of 1,000 characters: '" + "x" * 60 + "'…"),
        pytest.param(10**5000, "int of 16,610 bits", id="huge int"),
        ([1, "a", [2, [3, [4]]]], "list of 3: [1, 'a', list of 2: [2, list of 2: [3, list of 1: […]]]]"),
        ((1,), "tuple of 1: (1)"),
        ({"a": 1, "b": [1, 2]}, "dict of 2: {'a': 1, 'b': list of 2: [1, 2]}"),
        (set(), "set of 0: {}"),
        (OrderedDict(k=1), "collections.OrderedDict of 1: {'k': 1}"),
        (defaultdict(list), "collections.defaultdict of 0: {}"),
        (b"abc", "bytes of 3 bytes: b'abc'"),
        (dt.date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        (range(10), "range(0, 10)"),
        (np.float64(1.5), "1.5"),
        (np.arange(3), "array (3,) int64: [0, 1, 2]"),
        (np.zeros((1000, 1000)), "array (1000, 1000) float64, 8.0 MB"),
        (pd.Timestamp("2024-01-02", tz="UTC"), "Timestamp('2024-01-02 00:00:00+0000', tz='UTC')"),
        (pd.DataFrame({"a": [1], "b": [2]}), "pandas DataFrame 1 rows x 2 columns: 'a', 'b'"),
        (pd.Series([1, 2], name="s"), "pandas Series 's' of 2, int64"),
        (pl.DataFrame({"a": [1]}), "polars DataFrame 1 rows x 1 columns: 'a'"),
        (pl.LazyFrame({"a": [1]}), "polars LazyFrame 1 columns, lazy: not computed: 'a'"),
        (sys, "module sys"),
        (int, "class int"),
    ],
)
def test_a_value_is_told_in_one_line(value: Any, line: str) -> None:
    assert brief(value) == line


def test_functions_show_their_signature_with_short_defaults() -> None:
    hostile = Hostile()

    def of(frame: pd.DataFrame, bad=hostile, *names: str, n: int = 3) -> list[int]: ...

    text = brief(of)
    assert text.startswith("function of(frame: pd.DataFrame")
    assert "bad=object of class" in text
    assert text.endswith("*names: str, n: int = 3) -> list[int]")


async def test_hostile_objects_are_listed_without_touching_them() -> None:
    """Rows 93, 94: neither repr nor len nor a property is called."""
    Hostile.touched.clear()
    text = await listing(bad=Hostile(), inside=[Hostile()], keys={1: Hostile()}, mock=MagicMock(), sub=HostileList([1]))
    assert Hostile.touched == []
    lines = text.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("bad: object of class ")
    assert lines[4].endswith("HostileList of 1: [1]")


async def test_hostile_objects_are_inspected_without_touching_them() -> None:
    """Rows 93, 94: also inside of containers and tables."""
    Hostile.touched.clear()
    for value in (Hostile(), [Hostile()], {"k": Hostile()}, HostileList([1])):
        assert "Hostile" in await look("x", x=value)
    assert Hostile.touched == []
    frame = pd.DataFrame({"o": [1, 2]}, dtype=object)
    frame.iloc[0, 0] = [Hostile()]
    assert "object of class" in await look("df", df=frame)
    assert Hostile.touched == []


def test_what_somebodys_subclass_of_a_frame_overrides_is_not_run() -> None:
    """Row 93: it is read as the frame that it is made from."""

    class Broken(pd.DataFrame):
        @property
        def shape(self):
            raise ValueError

    assert brief(Broken({"a": [1]})).endswith("Broken (a pandas DataFrame) 1 rows x 1 columns: 'a'")


async def test_generators_files_and_iterators_are_not_consumed() -> None:
    """Row 95: they give all of their items afterwards."""
    made = (n for n in range(3))
    iterator = iter([1, 2])
    text = await listing(made=made, iterator=iterator)
    await look("made", made=made)
    await look("iterator", iterator=iterator)
    assert "not consumed" in text
    assert (list(made), list(iterator)) == ([0, 1, 2], [1, 2])


async def test_lazy_frames_are_not_computed() -> None:
    """Row 95: the schema only."""

    def fail(_: Any) -> Any:
        raise AssertionError("computed")

    lazy = pl.LazyFrame({"a": [1], "b": ["x"]}).map_batches(fail, schema={"a": pl.Int64, "b": pl.String})
    text = await look("lazy", lazy=lazy)
    assert "not computed" in text
    assert "to resolve the plan may read files" in text
    lazy.collect_schema()  # the person asked: it is known from then on
    assert "'a'  Int64" in await look("lazy", lazy=lazy)
    dask = type("DataFrame", (Hostile,), {"__module__": "dask.dataframe.core"})
    spark = type("DataFrame", (Hostile,), {"__module__": "pyspark.sql.dataframe"})
    for kind in (dask, spark):
        assert (await look("x", x=object.__new__(kind))).endswith("lazy: not computed")


@pytest.mark.parametrize("make", [list, dict])
async def test_recursive_and_deep_containers_end(make: Any) -> None:
    """Row 97: at a bounded depth."""
    value = make()
    value.append(value) if isinstance(value, list) else value.update(me=value)
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert len(await listing(value=value, deep=deep)) < 500
    assert len(await look("value", value=value)) < 1000


@pytest.mark.slow
def test_thousands_of_variables_and_huge_ones_are_listed_in_little_time() -> None:
    big = {
        "frame": pd.DataFrame(np.zeros((1_000_000, 8))),
        "array": np.zeros(30_000_000),
        "items": [0] * 10_000_000,
        "text": "x" * 50_000_000,
        "keys": dict.fromkeys(range(1_000_000)),
    }
    values = {f"v{n}": [n, n] if n % 3 else n for n in range(2001)} | big
    best = min(_timed(lambda: describe_all(values, limit=5000)) for _ in range(3))
    assert best < 0.1  # 15 ms on an idle machine; a repr of any big one alone takes more
    assert min(_timed(lambda: [details(v) for v in big.values()]) for _ in range(3)) < 0.5


def _timed(work: Any) -> float:
    at = time.perf_counter()
    work()
    return time.perf_counter() - at


async def test_a_long_list_says_how_much_it_leaves_out_and_can_be_filtered() -> None:
    values = {f"v{n}": n for n in range(300)} | {"df_clean": 1}
    text = await listing(**values)
    assert text.startswith("the last 200 of 301 variables")
    assert text.endswith("df_clean: 1")
    assert await listing("df*", **values) == "df_clean: 1"
    assert await listing("zz*", **values) == "no variable matches 'zz*'; there are: " + ", ".join(list(values)[-20:])
    assert await listing() == "no variables yet"


# ── one variable ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_frame_shows_shape_all_names_and_says_that_rows_are_a_sample() -> None:
    """Row 99: all of 40 columns are named."""
    frame = pd.DataFrame({f"c{n}": range(100) for n in range(40)})
    frame.loc[3, "c1"] = None
    text = await look("df", df=frame)
    assert "100 rows x 40 columns" in text
    assert all(f"'c{n}'" in text for n in range(40))
    assert "'c1'  float64  1" in text
    assert "sample, 3 of 100 rows, 12 of 40 columns" in text


async def test_many_columns_are_cut_and_counted_and_missing_values_come_from_a_part() -> None:
    """Row 99: what is left out is counted."""
    text = await look("df", df=pd.DataFrame(np.zeros((20_000, 100))))
    assert "and 40 more columns" in text
    assert "missing in the first 10,000 of 20,000 rows" in text


async def test_odd_labels_are_quoted_exactly() -> None:
    """Row 98: as they must be written in code."""
    frame = pd.DataFrame(
        [[1] * 7], columns=pd.Index(["a", "a", 1, "1", ("x", 2), "new\nline", "<script>"], dtype=object)
    )
    text = await look("df", df=frame)
    for label in ("'a'", "1 ", "'1'", "('x', 2)", r"'new\nline'", "'<script>'"):
        assert f"  {label}" in text
    assert "occur more than once" in text
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("p", 1), ("p", 2)]))
    assert "('p', 2)" in await look("df", df=levels)


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"a": []}), pd.DataFrame(index=[1, 2]), pl.DataFrame()])
async def test_empty_frames_say_so(frame: Any) -> None:
    assert "no rows" in await look("df", df=frame)


@pytest.mark.parametrize("library", [pd, pl])
async def test_a_column_shows_values_counts_and_range(library: Any) -> None:
    frame = library.DataFrame({"species": ["Adelie", "Gentoo", "Adelie", None], "mass": [3.0, 5.0, 4.0, 6.0]})
    text = await look("df", "species", df=frame)
    assert "missing: 1" in text
    assert "'Adelie' (2), 'Gentoo' (1)" in text
    assert "min 3, mean 4.5, max 6" in await look("df", "mass", df=frame)


async def test_a_column_may_be_named_as_it_was_shown() -> None:
    frame = pd.DataFrame({2020: [1], "x": [2]})
    assert "column 2020" in await look("df", "2020", df=frame)
    assert "column 'x'" in await look("df", "'x'", df=frame)


async def test_unknown_names_and_columns_name_the_nearest() -> None:
    with pytest.raises(ToolError, match=r"no variable is named 'penguin'\. Near: 'penguins'"):
        await look("penguin", penguins=1)
    with pytest.raises(ToolError, match=r"no column of df is named 'mas'\. Near: 'mass'"):
        await look("df", "mas", df=pd.DataFrame({"mass": [1]}))
    with pytest.raises(ToolError, match="there are none yet"):
        await look("x")
    with pytest.raises(ToolError, match="x is list: `column` is for tables"):
        await look("x", "a", x=[1])


async def test_classes_objects_arrays_and_texts_are_described() -> None:
    class Model:
        """Fits."""

        def __init__(self, rate: float = 0.1) -> None:
            self.rate = rate
            self.frame = pd.DataFrame({"a": [1]})

        def fit(self, x): ...

    assert "fit(self, x)" in await look("m", m=Model)
    text = await look("m", m=Model())
    assert "Fits." in text
    assert ".rate = 0.1" in text
    assert ".frame = pandas DataFrame" in text
    assert "methods: fit" in text
    assert "first 10 of 12 values" in await look("a", a=np.arange(12).reshape(3, 4).T)
    assert "and 5 more" in await look("x", x=list(range(15)))
    assert "the first 1,500 and the last 400" in await look("t", t="x" * 5000)


@pytest.mark.slow
async def test_a_figure_is_described_by_its_axes() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.set_title("Bills")
    axes.plot([1, 2])
    text = await look("fig", fig=figure)
    assert 'title "Bills"' in text
    assert "line (2 points)" in text


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary() | st.floats(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    )
)
def test_any_value_is_one_bounded_line(value: Any) -> None:
    line = brief(value)
    assert len(line) < 1000
    assert "\n" not in line
    assert "repr failed" not in line


def test_both_tools_only_read() -> None:
    for made in tools(Names()):
        assert made.kind({"name": "x", "pattern": "*", "column": None}) is Kind.READ


def test_looking_imports_no_library() -> None:
    code = (
        "import sys; from nbagent.tools.describe import brief; from nbagent.tools.details import details;"
        "brief([1]); details({'a': 1}); bad = {'pandas', 'numpy', 'polars', 'PIL', 'anthropic', 'pydantic'} & set(sys.modules);"
        "assert not bad, bad"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
