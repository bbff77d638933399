"""Describes live figures: of matplotlib (seaborn's too), plotly and altair. What is told of one is figures.py's.

A chart of altair is read from the arguments that it was made with: to write it out would check and copy all its data.
Must not import any of them. Read `matplotlib`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.figures import FigureFacts, of_matplotlib, of_plotly, of_vega
from nbagent.tools.data.figures_matplotlib import vetted
from nbagent.tools.data.kinds import held, is_a, library
from nbagent.tools.data.tabular import kind_of
from nbagent.tools.describe import brief

_DEPTH = 12
_ITEMS = 200
_WITHOUT_DATA = frozenset({"type", "mode", "name", "xaxis", "yaxis", "scene", "subplot", "geo", "fill", "stackgroup"})


def _lines(facts: FigureFacts) -> Iterator[str]:
    yield facts.brief()
    yield from facts.text().splitlines()


def matplotlib(value: Any) -> Iterator[str]:
    """Describe a figure of matplotlib; it is not drawn."""
    if not vetted(value):
        yield kind_of(value, "matplotlib figure")
        return
    yield from _lines(of_matplotlib(value))


def axes(value: Any) -> Iterator[str]:
    """Describe one panel of matplotlib by the figure that it is in."""
    if not vetted(value):
        yield kind_of(value, "matplotlib Axes")
        return
    title = value.get_title()
    yield f"matplotlib Axes{f' {brief(title, 1)}' if title else ''}"
    figure = value.get_figure()
    if figure is not None and vetted(figure):
        yield from itertools.islice(_lines(of_matplotlib(figure)), 1, None)


def grid(value: Any) -> Iterator[str]:
    """Describe a grid of seaborn by its figure."""
    figure = held(value).get("_figure")
    yield f"{kind_of(value, 'seaborn Grid')}: {brief(figure, 1)}"
    if figure is not None and vetted(figure):
        yield from itertools.islice(_lines(of_matplotlib(figure)), 1, None)


def plotly(value: Any) -> Iterator[str]:
    """Describe a figure of plotly by the JSON that it keeps; nothing of it is copied."""
    inside = held(value)
    frames = inside.get("_frame_objs")
    data, layout = inside.get("_data"), inside.get("_layout")
    traces = [trace for trace in data[:_ITEMS] if type(trace) is dict] if type(data) is list else []
    drawn = [{name: item for name, item in trace.items() if name in _WITHOUT_DATA} for trace in traces]
    yield of_plotly({"data": drawn, "layout": layout}).brief()
    yield from of_plotly({"data": data, "layout": layout, "frames": frames}).text().splitlines()


# ── altair ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_SHORTHAND = re.compile(r"(?:(?P<aggregate>[a-z]\w*)\()?(?P<field>[^():]*)\)?(?::(?P<type>[QONTG]))?\Z")
_TYPES = {"Q": "quantitative", "O": "ordinal", "N": "nominal", "T": "temporal", "G": "geojson"}
_UNITS = ("year", "quarter", "month", "date", "week", "day", "hours", "minutes", "seconds", "milliseconds", "utc")


def altair(value: Any) -> Iterator[str]:
    """Describe a chart of altair by what it was made with."""
    yield from _lines(of_vega(_spec(value, _DEPTH)))
    data = held(value).get("_kwds")
    given = data.get("data") if type(data) is dict else None
    if given is not None and not _is_unset(given):
        yield f"data: {brief(given, 1)}"


def _is_unset(value: Any) -> bool:
    return type(value).__name__ == "UndefinedType" and library(type(value)) == "altair"


def _spec(value: Any, depth: int) -> Any:
    """Return an object of altair as the JSON that it stands for, without data and as far as it goes."""
    if depth <= 0:
        return None
    if is_a(value, "altair:SchemaBase"):
        inside = held(value)
        given, positional = inside.get("_kwds"), inside.get("_args")
        made = _mapping(given if type(given) is dict else {}, depth)
        if not made and type(positional) is tuple and len(positional) == 1:
            return _spec(positional[0], depth - 1)
        return made
    if type(value) is dict:
        return _mapping(value, depth)
    if type(value) is list:
        return [_spec(item, depth - 1) for item in value[:_ITEMS]]
    return value if type(value) in {str, int, float, bool} else None


def _mapping(given: dict[Any, Any], depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, item in itertools.islice(given.items(), _ITEMS):
        if type(name) is not str or name in {"data", "datasets"} or _is_unset(item):
            continue
        if name == "shorthand":
            made = {**_shorthand(item), **made}
        elif (found := _spec(item, depth - 1)) is not None:
            made[name] = found
    return made


def _shorthand(text: Any) -> dict[str, Any]:
    """Return field, aggregate, unit of time and type of altair's short form, as in "mean(price):Q"."""
    found = _SHORTHAND.match(text) if type(text) is str else None
    if found is None:
        return {}
    parts = {name: part for name, part in found.groupdict().items() if part}
    if (function := parts.pop("aggregate", "")) and function.startswith(_UNITS):
        parts["timeUnit"] = function
    elif function:
        parts["aggregate"] = function
    if "type" in parts:
        parts["type"] = _TYPES[parts["type"]]
    return dict(parts)
