"""What plotly's JSON says that is drawn: traces, axes with their ranges, legend. Wrong and huge JSON is read as far as it goes.

The live figure's own dicts (`_data`, `_layout`) are read the same way. Must not import plotly. Read `of_plotly`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from nbagent.tools.data.figures_facts import PANELS, Axis, FigureFacts, Mark, Panel
from nbagent.tools.data.figures_values import LOOK, Column, column, is_date, items, mapping, size_of, span, text

TRACES = 400
"""Traces that are looked at; the others are counted."""

_AXIS = re.compile(r"(x|y)axis(\d{0,4})\Z")
_NOT_DRAWN_FROM = ("box", "violin")
_PARTS = ("labels", "values", "ids", "parents", "locations", "lat", "lon", "z", "open", "r", "theta", "a", "b", "c")
_SCENES = {
    "scene": ("xaxis", "yaxis", "zaxis"),
    "polar": ("radialaxis", "angularaxis"),
    "ternary": ("aaxis", "baxis", "caxis"),
}


def of_plotly(figure: Any) -> FigureFacts:
    """Tell of a figure as plotly writes it: `{"data": [trace, …], "layout": {…}}`. Never raises, whatever is given."""
    figure = mapping(figure)
    every = items(figure.get("data"))
    layout = mapping(figure.get("layout"))
    traces = [mapping(trace) for trace in every[:TRACES]]
    groups: dict[tuple[str, str], list[dict[Any, Any]]] = {}
    for trace in traces:
        groups.setdefault(_place(trace), []).append(trace)
    listed = [_panel(key, group, layout, traces) for key, group in list(groups.items())[:PANELS]]
    if not listed and any(_AXIS.match(str(name)[:20]) for name in list(layout)[:200]):
        listed = [_panel(("x", "y"), [], layout, ())]
    notes = [f"{len(every) - TRACES:,} more traces were not looked at"] if len(every) > TRACES else []
    notes += _written(layout, len(groups))
    if frames := items(figure.get("frames")):
        notes.append(f"{len(frames)} frames of an animation; the first is shown")
    notes += [f"menu: {names}" for names in _menus(layout)]
    return FigureFacts(
        "plotly figure",
        _title(layout.get("title")),
        _size(layout),
        tuple(listed),
        max(0, len(groups) - PANELS),
        tuple(notes),
    )


def _place(trace: dict[Any, Any]) -> tuple[str, str]:
    """Return the axes that a trace is drawn on: its panel's key."""
    for name in ("scene", "subplot", "geo"):
        if type(trace.get(name)) is str:
            return trace[name][:40], ""
    kind = _kind(trace)
    if kind in {
        "pie",
        "sunburst",
        "treemap",
        "icicle",
        "funnelarea",
        "indicator",
        "table",
        "sankey",
        "parcoords",
        "parcats",
    }:
        return kind, str(id(trace)) if kind in {"pie", "indicator"} else ""
    if kind.endswith(("3d", "surface", "mesh3d", "volume", "cone", "streamtube")) and "x" in trace and "z" in trace:
        return "scene", ""
    x, y = trace.get("xaxis"), trace.get("yaxis")
    return x[:20] if type(x) is str else "x", y[:20] if type(y) is str else "y"


def _kind(trace: dict[Any, Any]) -> str:
    kind = trace.get("type")
    return kind[:40] if type(kind) is str else "scatter"


def _panel(
    key: tuple[str, str], group: list[dict[Any, Any]], layout: dict[Any, Any], every: Sequence[dict[Any, Any]]
) -> Panel:
    shown = [trace for trace in group if trace.get("visible", True) is True]
    hidden = len(group) - len(shown)
    legend = [name for trace in shown if trace.get("showlegend") is not False and (name := text(trace.get("name")))]
    legend = list(dict.fromkeys(legend)) if len(shown) > 1 or any(t.get("showlegend") is True for t in shown) else []
    if layout.get("showlegend") is False:
        legend = []
    notes = [f"{hidden} traces are hidden until they are chosen"] if hidden else []
    return Panel(
        _panel_title(key, layout),
        tuple(_axes(key, shown, layout, every)),
        tuple(_mark(trace) for trace in shown),
        tuple(legend[:60]),
        _title(mapping(layout.get("legend")).get("title")),
        tuple(notes),
    )


def _mark(trace: dict[Any, Any]) -> Mark:
    kind = _kind(trace)
    mode = trace.get("mode")
    said = f"{kind} ({mode.replace('+', ' and ')[:40]})" if type(mode) is str and kind.startswith("scatter") else kind
    if trace.get("orientation") == "h":
        said += ", horizontal"
    sizes = [size for name in ("x", "y", *_PARTS) if (size := size_of(trace.get(name))) is not None]
    return Mark(said, text(trace.get("name")), max(sizes) if sizes else None)


def _axes(
    key: tuple[str, str], traces: Sequence[dict[Any, Any]], layout: dict[Any, Any], every: Sequence[dict[Any, Any]]
) -> list[Axis]:
    name = key[0]
    kind = next((scene for scene in _SCENES if name.startswith(scene)), "")
    if kind:
        scene = mapping(layout.get(name))
        found = [_axis(axis[: -len("axis")], mapping(scene.get(axis)), traces) for axis in _SCENES[kind]]
    elif name.startswith(("x", "y")) and key[1]:
        found = [
            _axis(letter, _layout_axis(layout, letter, axis), _sharing(letter, axis, traces, every, layout))
            for letter, axis in zip("xy", key, strict=True)
        ]
    else:
        labels = [part for trace in traces if (part := column(trace.get("labels"))) is not None]
        found = [span("labels", "", "category", labels)] if labels else []
    return found + _colours(traces, layout)


def _layout_axis(layout: dict[Any, Any], letter: str, name: str) -> dict[Any, Any]:
    return mapping(layout.get(f"{letter}axis{name[1:]}"))


def _sharing(
    letter: str, axis: str, traces: Sequence[dict[Any, Any]], every: Sequence[dict[Any, Any]], layout: dict[Any, Any]
) -> Sequence[dict[Any, Any]]:
    """Return the traces whose range an axis has: those of all axes that it is bound to, as the facets of px are."""

    def root(name: str) -> str:
        bound = _layout_axis(layout, letter, name).get("matches")
        return bound[:20] if type(bound) is str else name

    if root(axis) == axis and not any(mapping(layout.get(key)).get("matches") == axis for key in list(layout)[:200]):
        return traces
    return [t for t in every if t.get("visible", True) is True and root(_place(t)["xy".index(letter)]) == root(axis)]


_COLUMNS = {"radial": "r", "angular": "theta"}


def _axis(name: str, layout: dict[Any, Any], traces: Sequence[dict[Any, Any]]) -> Axis:
    label, scale = _title(layout.get("title")), text(layout.get("type"))
    given = items(layout.get("range"))
    if len(given) == 2 and (low := _end(given[0], scale)) and (high := _end(given[1], scale)):
        scale = scale or ("date" if type(given[0]) is str and is_date(given[0]) else "")
        if scale not in {"category", "multicategory"}:
            return Axis(name, label, low, high, scale)
    look = max(100, LOOK // max(1, len(traces)))
    columns = [found for trace in traces if (found := _along(trace, name, look)) is not None]
    axis = span(name, label, "" if scale == "-" else scale, columns)
    if layout.get("autorange") == "reversed":
        return dataclasses.replace(axis, scale=f"{axis.scale or 'linear'}, reversed")
    return axis


def _along(trace: dict[Any, Any], name: str, look: int) -> Column | None:
    """Return the values of a trace along an axis; of one that is computed in the page (a histogram's counts) None."""
    if _kind(trace) in {"candlestick", "ohlc"} and name == "y":
        parts = [found for part in ("low", "high") if (found := column(trace.get(part))) is not None]
        return Column(sum(p.size for p in parts), [v for p in parts for v in p.some]) if parts else None
    return column(trace.get(_COLUMNS.get(name, name)), look)


def _end(value: Any, scale: str) -> str:
    """Return one end of a range; plotly writes those of a log axis as powers of ten."""
    if scale == "log" and type(value) in (int, float) and abs(value) < 300:
        return text(float(10**value))
    if type(value) is str:
        return value[:40]
    return text(value)


def _colours(traces: Sequence[dict[Any, Any]], layout: dict[Any, Any]) -> list[Axis]:
    """Return the colour scale, where the colours stand for numbers."""
    for trace in traces[:20]:
        marker = mapping(trace.get("marker"))
        values = column(marker.get("color"))
        holder = marker if values is not None and values.size > 1 else trace
        if holder is trace and "z" not in trace:
            continue
        axis = mapping(layout.get("coloraxis"))
        bar = mapping(holder.get("colorbar")) or mapping(axis.get("colorbar"))
        found = values if holder is marker else _flat(trace.get("z"))
        if found is not None and (told := span("colour", _title(bar.get("title")), "", [found])).low:
            return [told]
    return []


def _flat(value: Any) -> Column | None:
    """Return the values of a matrix: the rows of lists, or what stands packed in one piece."""
    rows = items(value)
    if rows and type(rows[0]) in (list, tuple):
        some = [part for row in rows[:200] if (part := column(row)) is not None]
        size = sum(len(items(row)) for row in rows[:2000])
        return Column(size, [v for part in some for v in part.some[:200]])
    return column(value)


def _title(value: Any) -> str:
    if type(value) is dict:
        subtitle = text(mapping(value.get("subtitle")).get("text"))
        return " – ".join(part for part in (text(value.get("text")), subtitle) if part)
    return text(value)


def _panel_title(key: tuple[str, str], layout: dict[Any, Any]) -> str:
    """Return the title of a panel of `make_subplots` or of px facets: an annotation that stands above its axes."""
    if key[0][:1] != "x" or not key[1]:
        return ""
    x, y = (items(_layout_axis(layout, key[i][:1], key[i]).get("domain")) for i in (0, 1))
    if len(x) != 2 or len(y) != 2:
        return ""
    try:
        middle, top = (x[0] + x[1]) / 2, y[1]
        for note in map(mapping, items(layout.get("annotations"))[:200]):
            near = abs(note.get("x", 9) - middle) < 0.02 and abs(note.get("y", 9) - top) < 0.02
            if near and note.get("xref") == note.get("yref") == "paper":
                return text(note.get("text"))
    except TypeError:  # what should be numbers is not
        return ""
    return ""


def _written(layout: dict[Any, Any], panels: int) -> list[str]:
    """Return what is written and drawn over the figure."""
    notes = [words for note in items(layout.get("annotations"))[:40] if (words := text(mapping(note).get("text")))]
    said = [f'written in it: "{words}"' for words in notes[:4]] if panels <= 1 else []
    shapes = len(items(layout.get("shapes")))
    return [*said, *([f"{shapes} lines or areas are drawn over it"] if shapes else [])]


def _menus(layout: dict[Any, Any]) -> list[str]:
    found: list[str] = []
    for menu in map(mapping, items(layout.get("updatemenus"))[:3]):
        names = [text(mapping(button).get("label")) for button in items(menu.get("buttons"))[:8]]
        found.append(", ".join(filter(None, names)))
    return [names for names in found if names]


def _size(layout: dict[Any, Any]) -> str:
    width, height = text(layout.get("width")), text(layout.get("height"))
    return f"{width} x {height} pixels" if width and height else ""
