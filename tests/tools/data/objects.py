"""Objects of an analyst's libraries for the describers' tests and benchmark: empty, huge and hostile ones.

What is lazy raises when it is computed: `Ran` is what its functions raise.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import warnings
from typing import Any, ClassVar, NamedTuple


class Ran(BaseException):
    """Something was computed, queried or called that must not be."""


def _ran(*_: Any, **__: Any) -> Any:
    raise Ran


class Hostile:
    """Raises whatever it is asked; may be a label."""

    def __repr__(self) -> str:
        raise Ran

    __str__ = __len__ = __bool__ = __iter__ = __float__ = __array__ = __repr__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise Ran


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    user: str
    password: str


@dataclasses.dataclass
class Record:
    name: str = "x"
    inner: Any = None


ODD = ["a", "a", 1, ("x", 2), "new\nline", "<b>", "", None, 2.5, "x" * 5_000]
"""Column labels that code must be able to name."""


def frames(size: int) -> dict[str, Any]:
    """Objects of pandas, polars and pyarrow with `size` rows."""
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    whole = pd.DataFrame({"n": np.arange(size), "f": np.linspace(0, 1, size), "s": ["text"] * size})
    whole["c"] = whole["s"].astype("category")
    whole["t"] = pd.date_range("1990", periods=size, freq="s")
    levels = whole.set_index(["n", "t"])
    table = pa.table({"n": np.arange(size), "s": ["text"] * size, "l": [[1, 2]] * size})
    lazy = pl.LazyFrame({"n": np.arange(size)})
    return {
        "pandas frame": whole,
        "pandas levels": levels,
        "pandas series": whole["c"],
        "pandas index": whole["t"].array if not size else levels.index,
        "pandas group": whole.groupby("s", observed=True),
        "pandas window": whole["n"].rolling(3),
        "pandas array": whole["c"].array,
        "polars frame": pl.DataFrame({"n": np.arange(size), "l": [[1]] * size, "s": ["x"] * size}),
        "polars series": pl.Series("q", np.arange(size)),
        "polars lazy": lazy,
        "polars steps": lazy.with_columns(m=pl.col("n") * 2).sort("m"),
        "arrow table": table,
        "arrow batch": pa.RecordBatch.from_arrays([pa.array(np.arange(size))], names=["n"]),
        "arrow column": table["s"],
        "arrow schema": table.schema,
    }


def arrays(size: int) -> dict[str, Any]:
    """Arrays of numpy, sparse matrices, and data of xarray and dask."""
    import dask.array as da
    import dask.dataframe as dd
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp
    import xarray as xr

    values = np.arange(size, dtype=float)
    objects = np.empty(size, dtype=object)
    objects[:] = "x"
    data = xr.Dataset({"v": ("x", values), "d": ("x", da.from_array(values, chunks=max(1, size // 2)))}, {"x": values})
    frame = pd.DataFrame({"a": np.arange(size)})
    return {
        "array": values,
        "array records": np.zeros(size, dtype=[("a", "i4"), ("b", "f8")]),
        "array masked": np.ma.masked_array(values, mask=values > 3),
        "array objects": objects,
        "array transposed": np.zeros((max(size // 10, 0), 10)).T,
        "sparse": sp.csr_matrix((values, (np.zeros(size, int), np.arange(size))), shape=(1, max(size, 1))),
        "xarray": data,
        "xarray array": data["v"],
        "xarray lazy": data["d"],
        "dask frame": dd.from_pandas(frame, npartitions=1),
        "dask array": da.zeros((max(size, 1), 3), chunks=(max(size // 2, 1), 3)),
    }


def others(size: int) -> dict[str, Any]:
    """Geometries, models, figures, databases and values of Python."""
    import altair as alt
    import duckdb
    import geopandas as gp
    import matplotlib.figure
    import numpy as np
    import pandas as pd
    import plotly.graph_objects as go
    import shapely
    import sqlalchemy as sa
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    points = shapely.points(np.arange(size, dtype=float), np.zeros(size))
    figure = matplotlib.figure.Figure()
    axes = figure.subplots()
    axes.set_title("Bills")
    axes.plot(np.arange(size), np.arange(size))
    frame = pd.DataFrame({"a": np.arange(size)})
    model = LinearRegression(positive=True)
    if size:
        model.fit(frame, frame["a"])
    metadata = sa.MetaData()
    for number in range(min(size, 100)):
        sa.Table(f"t{number}", metadata, sa.Column("a", sa.Integer, primary_key=True), sa.Column("b", sa.String(9)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chart = alt.Chart(frame, title="Bars").mark_bar().encode(x="a:Q", y="count()")
    return {
        "geo frame": gp.GeoDataFrame({"n": np.arange(size)}, geometry=points, crs=4326),
        "geo series": gp.GeoSeries(points, crs=4326),
        "estimator": model,
        "pipeline": make_pipeline(model),
        "matplotlib": figure,
        "plotly": go.Figure(go.Scatter(x=np.arange(size), y=np.arange(size))),
        "altair": chart,
        "relation": duckdb.connect().sql(f"SELECT * FROM range({size * 1_000_000}) t(n)"),
        "metadata": metadata,
        "engine": sa.create_engine("sqlite://", creator=_ran),
        "deque": collections.deque(range(size)),
        "counter": collections.Counter(range(size)),
        "records": [{"id": n, "tags": ["x"]} for n in range(size)],
        "dataclass": Record("x" * size),
        "enum": Colour.RED,
        "generator": (n for n in range(size)),
    }


def everything(size: int) -> dict[str, Any]:
    """Objects of all kinds of which each has `size` rows, values or items."""
    return {**frames(size), **arrays(size), **others(size)}


class _Overrides:
    """What a stranger's subclass may override."""

    touched: ClassVar[list[str]] = []

    @property
    def shape(self) -> Any:
        _Overrides.touched.append("shape")
        raise SystemExit

    columns = index = dtypes = dtype = name = head = size = iloc = axes = get_params = tolist = shape

    def __repr__(self) -> str:
        raise SystemExit

    def __len__(self) -> int:
        _Overrides.touched.append("len")
        raise SystemExit


def strangers() -> dict[str, Any]:
    """Objects of a person's own subclasses, which raise when anything of theirs is run; `touched` lists what was."""
    import numpy as np
    import pandas as pd
    import polars as pl
    from sklearn.base import BaseEstimator

    frame = type("MyFrame", (_Overrides, pd.DataFrame), {"__module__": "mine"})
    series = type("MySeries", (_Overrides, pd.Series), {"__module__": "mine"})
    array = type("MyArray", (_Overrides, np.ndarray), {"__module__": "mine"})
    model = type("MyModel", (_Overrides, BaseEstimator), {"__module__": "mine", "__init__": lambda self, rate=1: None})
    polars = type("MyPolars", (pl.DataFrame,), {"__module__": "mine", "shape": _Overrides.shape})
    made = {
        "MyFrame": object.__new__(frame),
        "MySeries": object.__new__(series),
        "MyArray": np.arange(9).view(array),
        "MyModel": object.__new__(model),
        "MyPolars": polars({"a": [1, 2]}),
    }
    object.__setattr__(made["MyFrame"], "_mgr", pd.DataFrame({"a": [1, 2]})._mgr)
    object.__setattr__(made["MySeries"], "_mgr", pd.Series([1, 2])._mgr)
    _Overrides.touched.clear()
    return made


def lazies() -> dict[str, Any]:
    """Lazy objects that raise, or leave their mark, when any part of them is computed."""
    import dask
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd
    import duckdb
    import pandas as pd
    import polars as pl
    import sqlalchemy as sa
    import xarray as xr

    block = da.from_delayed(dask.delayed(_ran)(), shape=(3,), dtype=float)
    relation = duckdb.connect()
    relation.create_function("boom", lambda n: _ran(), ["BIGINT"], "BIGINT", side_effects=True)
    parts = dd.from_delayed([dask.delayed(_ran)()], meta=pd.DataFrame({"a": [1]}), verify_meta=False)
    engine = sa.create_engine("sqlite://", creator=_ran)
    engine.url = sa.make_url("postgresql://joe:hunter2@db/sales?password=pw")
    return {
        "scan": pl.scan_csv("/nowhere/there/is/no.csv"),
        "scan step": pl.scan_parquet("/nowhere/*.parquet").select("a").filter(pl.col("a") > 1),
        "function": pl.LazyFrame({"a": [1]}).map_batches(_ran, schema={"a": pl.Int64}),
        "dask frame": parts,
        "dask set_index": parts.set_index("a", divisions=(0, 9)),
        "dask array": block,
        "dask delayed": dask.delayed(_ran)(1),
        "dask bag": db.from_sequence([1, 2]).map(_ran),
        "xarray": xr.Dataset({"v": ("x", block)}),
        "relation": relation.sql("SELECT boom(range) AS b FROM range(3)"),
        "engine": engine,
        "generator": (_ran() for _ in range(3)),
    }
