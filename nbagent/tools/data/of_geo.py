"""Describes geometries: frames and series of geopandas with their CRS, kinds and bounds of a sample, shapes of shapely.

Must not import either. Read `frame`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data import of_pandas
from nbagent.tools.data.kinds import held, is_a, library
from nbagent.tools.describe import label_of, short

_LOOKED_AT = 1_000
_POINTS = 50_000  # coordinates of which bounds are worked out


def frame(value: Any) -> Iterator[str]:
    """Describe a GeoDataFrame: what pandas knows, then its geometry."""
    table = of_pandas.own_frame(value)
    lines = of_pandas.frame(value)
    yield next(lines)
    active = held(value).get("_geometry_column_name")
    labels = [
        label
        for label, dtype in itertools.islice(table.dtypes.items(), 10_000)
        if is_a(dtype, "geopandas:GeometryDtype")
    ]
    if not labels:
        yield "no column of geometries"
    for label in labels[:5]:
        role = "geometry" if type(label) is str and label == active else "other geometry"
        place = next(n for n, found in enumerate(table.columns) if found is label or label_of(found) == label_of(label))
        yield from _geometry(table.iloc[:, place].array, f"{role} {label_of(label)}")
    yield from lines


def series(value: Any) -> Iterator[str]:
    """Describe a GeoSeries."""
    yield from of_pandas.series(value)
    yield from _geometry(of_pandas.own_series(value).array, "geometry")


def array(value: Any) -> Iterator[str]:
    """Describe an array of geometries."""
    yield f"geopandas {type(value).__name__} of {len(value):,}"
    yield from _geometry(value, "geometry")


def crs_words(crs: Any) -> str:
    """Return a coordinate reference system in short: its code and its name."""
    if crs is None:
        return "no CRS set"
    if library(type(crs)) != "pyproj":
        return "a CRS of an unknown kind"
    code = short(str(crs.srs).splitlines()[0] if crs.srs else "", 40)
    return f"CRS {code} ({short(str(crs.name), 60)}{', degrees' if crs.is_geographic else ''})"


def _geometry(found: Any, what: str) -> Iterator[str]:
    """Yield the CRS, and kinds and bounds of the first geometries."""
    size = len(found)
    yield f"{what}: {crs_words(found.crs)}"
    part = found[:_LOOKED_AT]._data if size else ()  # noqa: SLF001  (the shapes themselves, without a copy)
    kinds = Counter("missing" if shape is None else type(shape).__name__ for shape in part)
    of = f"all {size:,}" if size <= _LOOKED_AT else f"the first {_LOOKED_AT:,} of {size:,}"
    yield f"  kinds in {of}: {', '.join(f'{kind} ({n:,})' for kind, n in kinds.most_common(8)) or 'none'}"
    if (bounds := _bounds(part)) is not None:
        shown, ends = bounds
        yield f"  bounds of the first {shown:,}: x {ends[0]:g} … {ends[2]:g}, y {ends[1]:g} … {ends[3]:g}"


def _bounds(part: Any) -> tuple[int, tuple[float, float, float, float]] | None:
    shapely: Any = sys.modules.get("shapely")
    if shapely is None or not len(part):
        return None
    points, shown = 0, 0
    for count in shapely.get_num_coordinates(part).tolist():
        points += count
        if points > _POINTS:
            break
        shown += 1
    if not shown:
        return None
    ends = [tuple(map(float, row)) for row in shapely.bounds(part[:shown]).tolist()]
    real = [row for row in ends if not any(map(math.isnan, row))]
    if not real:
        return None
    return shown, (min(r[0] for r in real), min(r[1] for r in real), max(r[2] for r in real), max(r[3] for r in real))


def shape(value: Any) -> Iterator[str]:
    """Describe one geometry of shapely: a point by its coordinates, others by how many they have."""
    shapely: Any = sys.modules["shapely"]
    kind = type(value).__name__
    count = int(shapely.get_num_coordinates(value))
    if kind == "Point" and count == 1:
        yield f"Point ({', '.join(f'{n:g}' for n in shapely.get_coordinates(value).tolist()[0])})"
        return
    yield f"{kind} of {count:,} coordinates" if count else f"{kind}, empty"
    if 0 < count <= _POINTS:
        low_x, low_y, high_x, high_y = shapely.bounds(value).tolist()
        yield f"bounds: x {low_x:g} … {high_x:g}, y {low_y:g} … {high_y:g}"
