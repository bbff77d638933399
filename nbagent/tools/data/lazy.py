"""The first rows of tables that are not computed yet (polars LazyFrame, DuckDB relation, dask), when the person's agent asks for them.

To read them is to run a query: it is bounded by rows, runs on another thread, and a Stop ends it where the library can.
Read `fetched`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nbagent.tools.data.kinds import names_of, type_name
from nbagent.tools.data.reading import Table, of_rows, opened
from nbagent.tools.data.sampling import CELLS, ROWS

_NOT_YET = "{kind} is lazy: nothing of it is computed. full=true runs it for its first rows, up to {rows:,}; inspect_variable shows its columns where they are known."


def not_yet(value: Any) -> str | None:
    """Return what to say of a lazy table that was not asked for; None for a value that is none that could be read."""
    return _NOT_YET.format(kind=type_name(value), rows=ROWS) if _library(value) else None


async def fetched(value: Any) -> Table | None:
    """Return the first rows of a lazy table, None for a value that is none. What the query raises is raised."""
    match _library(value):
        case "polars":
            query = value.head(ROWS).collect(background=True)
            try:
                frame = await asyncio.to_thread(query.fetch_blocking)
            except asyncio.CancelledError:
                query.cancel()
                raise
            return opened(frame)
        case "duckdb":
            labels, types = list(value.columns), [str(kind) for kind in value.types]
            rows = min(ROWS, CELLS // max(1, len(labels)))
            return of_rows("DuckDB relation", labels, types, await asyncio.to_thread(value.limit(rows).fetchall))
        case "dask":
            first = value.partitions[0] if hasattr(value, "partitions") else value
            return opened(await asyncio.to_thread(first.head, ROWS, npartitions=1, compute=True))
        case _:
            return None


def _library(value: Any) -> str:
    names = list(names_of(type(value)))
    if "polars.lazyframe.frame.LazyFrame" in names:
        return "polars"
    if any(name.rpartition(".")[2] == "DuckDBPyRelation" and name.lstrip("_").startswith("duckdb") for name in names):
        return "duckdb"
    dask = any(name.startswith(("dask.dataframe", "dask_expr")) for name in names)
    return "dask" if dask and names[0].rpartition(".")[2] in {"DataFrame", "Series"} else ""
