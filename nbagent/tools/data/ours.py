"""Which class of which library is described by which function: the one table of the libraries that nbagent knows.

Keys as in `kinds.py`; a function is `module:function`, loaded when the first such value is met. The nearest base class
counts, so a library's base class stands for all that is made from it.
"""

from __future__ import annotations

OURS: dict[str, str] = {
    # pandas, geopandas
    "pandas:DataFrame": "of_pandas:frame",
    "pandas:Series": "of_pandas:series",
    "pandas:Index": "of_pandas:index",
    "pandas:ExtensionArray": "of_pandas:array",
    "pandas:BaseGroupBy": "of_pandas:grouped",
    "pandas:BaseWindow": "of_pandas:window",
    "pandas:Styler": "of_pandas:styler",
    "geopandas:GeoDataFrame": "of_geo:frame",
    "geopandas:GeoSeries": "of_geo:series",
    "geopandas:GeometryArray": "of_geo:array",
    "shapely:BaseGeometry": "of_geo:shape",
    # polars
    "polars:DataFrame": "of_polars:frame",
    "polars:Series": "of_polars:series",
    "polars:LazyFrame": "of_polars:lazy_frame",
    "polars:Expr": "of_polars:expression",
    **dict.fromkeys(
        ("polars:GroupBy", "polars:DynamicGroupBy", "polars:RollingGroupBy", "polars:LazyGroupBy"), "of_polars:grouped"
    ),
    # arrays
    "numpy:ndarray": "of_numpy:array",
    "numpy:generic": "of_numpy:number",
    "numpy:NpzFile": "of_numpy:archive",
    "scipy:_spbase": "of_numpy:sparse",
    "scipy:spmatrix": "of_numpy:sparse",
    "scipy:rv_frozen": "of_numpy:frozen",
    "torch:Tensor": "of_numpy:tensor",
    # pyarrow
    "pyarrow:Table": "of_arrow:table",
    "pyarrow:RecordBatch": "of_arrow:table",
    "pyarrow:Array": "of_arrow:column",
    "pyarrow:ChunkedArray": "of_arrow:column",
    "pyarrow:Scalar": "of_arrow:scalar",
    "pyarrow:Schema": "of_arrow:schema",
    "pyarrow:Field": "of_arrow:small",
    "pyarrow:DataType": "of_arrow:small",
    "pyarrow:Dataset": "of_arrow:dataset",
    "pyarrow:Scanner": "of_arrow:stream",
    "pyarrow:RecordBatchReader": "of_arrow:stream",
    "pyarrow:ParquetFile": "of_arrow:parquet",
    # xarray
    "xarray:Dataset": "of_xarray:dataset",
    "xarray:DataArray": "of_xarray:array",
    "xarray:NamedArray": "of_xarray:variable",
    "xarray:DataTree": "of_xarray:tree",
    "xarray:GroupBy": "of_xarray:grouped",
    "xarray:Rolling": "of_xarray:grouped",
    "xarray:Coarsen": "of_xarray:grouped",
    # dask
    **dict.fromkeys(("dask:FrameBase", "dask_expr:FrameBase"), "of_dask:frame"),
    "dask:Array": "of_dask:array",
    "dask:Bag": "of_dask:bag",
    "dask:Delayed": "of_dask:delayed",
    "dask:GroupBy": "of_dask:grouped",
    "distributed:Future": "of_dask:future",
    # databases
    **dict.fromkeys(("duckdb:DuckDBPyRelation", "_duckdb:DuckDBPyRelation"), "of_sql:relation"),
    **dict.fromkeys(("duckdb:DuckDBPyConnection", "_duckdb:DuckDBPyConnection"), "of_sql:connection"),
    "sqlite3:Connection": "of_sql:sqlite",
    "sqlite3:Cursor": "of_sql:sqlite",
    "sqlalchemy:Engine": "of_sql:engine",
    "sqlalchemy:AsyncEngine": "of_sql:engine",
    "sqlalchemy:URL": "of_sql:url",
    "sqlalchemy:Connection": "of_sql:bound",
    "sqlalchemy:Session": "of_sql:bound",
    "sqlalchemy:MetaData": "of_sql:metadata",
    "sqlalchemy:Table": "of_sql:table",
    "sqlalchemy:Executable": "of_sql:statement",
    "sqlalchemy:Result": "of_sql:rows",
    # models
    "sklearn:BaseEstimator": "of_models:estimator",
    "statsmodels:ResultsWrapper": "of_models:results",
    "statsmodels:Results": "of_models:results",
    "statsmodels:Model": "of_models:model",
    # figures
    "matplotlib:FigureBase": "of_figures:matplotlib",
    "matplotlib:_AxesBase": "of_figures:axes",
    "seaborn:Grid": "of_figures:grid",
    "plotly:BaseFigure": "of_figures:plotly",
    "altair:TopLevelMixin": "of_figures:altair",
    # Python
    "enum:Enum": "of_python:member",
    "enum:EnumType": "of_python:enum_class",
    "types:SimpleNamespace": "of_python:namespace",
    "collections:deque": "of_python:queue",
    "collections:Counter": "of_python:counter",
    "functools:partial": "of_python:partial",
    "array:array": "of_python:buffer",
    "builtins:memoryview": "of_python:buffer",
    "builtins:mappingproxy": "of_python:mapping_view",
    "builtins:method": "of_python:method",
    "builtins:BaseException": "of_python:failure",
    **dict.fromkeys(("builtins:generator", "builtins:async_generator", "builtins:coroutine"), "of_python:generator"),
    **dict.fromkeys(("_asyncio:Future", "asyncio:Future", "concurrent:Future"), "of_python:task"),
}
