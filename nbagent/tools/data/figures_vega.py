"""What Vega-Lite's JSON (altair's) says that is drawn: layers and panels, channels with their fields, scales and ranges.

Specs of Vega itself, which is what altair's own transformers may send, are told by their marks and scales. Must not import
altair. Read `of_vega`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.figures_facts import PANELS, Axis, FigureFacts, Mark, Panel
from nbagent.tools.data.figures_values import LOOK, Column, items, mapping, span, text

_DEEP = 12
_PARTS = 200  # views and layers that are looked at
_CHANNELS = (
    "x",
    "y",
    "theta",
    "radius",
    "longitude",
    "latitude",
    "color",
    "fill",
    "stroke",
    "size",
    "shape",
    "opacity",
    "row",
    "column",
    "facet",
    "text",
)
_LEGENDS = ("color", "fill", "stroke", "shape", "size", "opacity", "strokeDash")
_TYPES = {"temporal": "date", "nominal": "category", "ordinal": "category"}


def of_vega(spec: Any) -> FigureFacts:
    """Tell of a chart as Vega-Lite (versions 4 to 6) or Vega writes it. Never raises, whatever is given."""
    spec = mapping(spec)
    if "marks" in spec and "mark" not in spec:
        return _of_marks(spec)
    datasets = mapping(spec.get("datasets"))
    views = list(_views(spec, spec, 0))[:_PARTS]
    panels = [_panel(view, datasets) for view in views[:PANELS]]
    title = _title(spec.get("title"))
    return FigureFacts(
        "altair chart", title, _size(spec), tuple(panels), max(0, len(views) - PANELS), tuple(_notes(spec))
    )


def remote(spec: Any) -> str:
    """Return the first address from which a chart would load its data or pictures, "" where it has all in itself."""
    budget = [20_000]

    def look(value: Any, depth: int) -> str:
        budget[0] -= 1
        if budget[0] < 0 or depth > 40:
            return "an unknown place (the chart is too large to look through)"
        if type(value) is dict:
            url = value.get("url")
            if url is not None and not (type(url) is str and url.startswith("data:")):
                return url[:200] if type(url) is str else "an address that is computed"
            inner = [v for k, v in value.items() if k not in {"values", "datasets"}]
        else:
            inner = list(items(value))
        return next((found for v in inner if type(v) in (dict, list) and (found := look(v, depth + 1))), "")

    return look(spec, 0)


_Spec = dict[Any, Any]


def _views(spec: _Spec, around: _Spec, depth: int) -> Iterator[_Spec]:
    """Yield the single views and layered views of a chart, each with the data and encoding of what is around it."""
    if depth > _DEEP:
        return
    spec = _inherited(spec, around) if spec is not around else spec
    for name in ("hconcat", "vconcat", "concat"):
        for part in items(spec.get(name))[:_PARTS]:
            yield from _views(mapping(part), _only_data(spec), depth + 1)
    if type(spec.get("spec")) is dict:  # facet and repeat
        facet = spec.get("facet") or spec.get("repeat")
        inner = {**spec["spec"], **({"facet_by": facet} if facet is not None else {})}
        yield from _views(inner, _only_data(spec), depth + 1)
    elif "mark" in spec or "layer" in spec:
        yield spec


def _only_data(spec: _Spec) -> _Spec:
    return {"data": spec["data"]} if "data" in spec else {}


def _inherited(spec: _Spec, around: _Spec) -> _Spec:
    encoding = {**mapping(around.get("encoding")), **mapping(spec.get("encoding"))}
    data = {"data": spec.get("data", around.get("data"))}
    return {**spec, **data, **({"encoding": encoding} if encoding else {})}


def _layers(view: _Spec, depth: int = 0) -> Iterator[_Spec]:
    if depth > _DEEP:
        return
    if "mark" in view:
        yield view
    for layer in items(view.get("layer"))[:_PARTS]:
        yield from _layers(_inherited(mapping(layer), view), depth + 1)


def _panel(view: _Spec, datasets: _Spec) -> Panel:
    layers = list(_layers(view))[:_PARTS]
    channels: dict[str, tuple[_Spec, _Spec]] = {}
    for layer in layers:
        for name, channel in list(mapping(layer.get("encoding")).items())[:30]:
            if name in _CHANNELS:
                channels.setdefault(name, (mapping(channel), layer))
    axes = [_axis(name, *channels[name], datasets) for name in _CHANNELS if name in channels]
    axes = [axis for axis in axes if axis is not None]
    marks = [Mark(_mark(layer.get("mark")), "", _rows(layer, datasets)[1]) for layer in layers]
    legend = next((axis for axis in axes if axis.name in _LEGENDS and axis.values), None)
    notes = []
    if "facet_by" in view:
        notes.append(f"one small chart for each {_facets(view['facet_by'])}")
    return Panel(
        _title(view.get("title")),
        tuple(axes),
        tuple(marks),
        legend.values if legend else (),
        legend.label if legend else "",
        tuple(notes),
    )


def _mark(mark: Any) -> str:
    kind = text(mark) or text(mapping(mark).get("type"))
    return kind[:40] or "mark"


def _axis(name: str, channel: _Spec, layer: _Spec, datasets: _Spec) -> Axis | None:
    field = channel.get("field")
    aggregate = text(channel.get("aggregate"))
    shown = text(field) or ("count" if aggregate == "count" else "")
    if not shown:
        return None
    label = _label(channel, shown, aggregate)
    scale = mapping(channel.get("scale"))
    kind = text(scale.get("type")) or _TYPES.get(text(channel.get("type")), "")
    domain = items(scale.get("domain"))
    if len(domain) >= 2 and type(channel.get("bin")) is not dict:
        return span(name, label, kind, [Column(len(domain), domain[:LOOK])])
    if aggregate or channel.get("bin") or channel.get("timeUnit") or type(field) is not str:
        return Axis(name, label, scale=kind)  # its values are computed in the page
    rows, size = _rows(layer, datasets)
    step = max(1, -(-len(rows) // LOOK))
    some = [row.get(field) for row in rows[::step] if type(row) is dict]
    return span(name, label, kind, [Column(size or 0, some)] if some else [])


def _label(channel: _Spec, field: str, aggregate: str) -> str:
    for holder in (
        channel,
        mapping(channel.get("axis")),
        mapping(channel.get("legend")),
        mapping(channel.get("header")),
    ):
        if title := _title(holder.get("title")):
            return title
    if aggregate == "count":
        return "count of records"
    unit = text(channel.get("timeUnit"))
    binned = ", binned" if channel.get("bin") else ""
    return f"{aggregate} of {field}{binned}" if aggregate else f"{field}{f' ({unit})' if unit else ''}{binned}"


def _rows(layer: _Spec, datasets: _Spec) -> tuple[Any, int | None]:
    """Return the rows that a layer draws from, and how many: () and None where they are not in the chart."""
    data = mapping(layer.get("data"))
    rows = data.get("values")
    if rows is None and type(data.get("name")) is str:
        rows = datasets.get(data["name"])
    found = items(rows)
    return (found, len(found)) if type(rows) is list else ((), None)


def _facets(facet: Any) -> str:
    if type(facet) is list:
        return "of " + ", ".join(text(part) for part in facet[:6])
    facet = mapping(facet)
    fields = [text(facet.get("field")), *(text(mapping(facet.get(side)).get("field")) for side in ("row", "column"))]
    named = [field for field in fields if field]
    repeated = [text(part) for side in ("row", "column", "layer") for part in items(facet.get(side))[:6]]
    return " and ".join(named) or ", ".join(filter(None, repeated)) or "part"


def _title(value: Any) -> str:
    if type(value) is dict:
        parts = (text(value.get("text")), text(value.get("subtitle")))
        return " – ".join(part for part in parts if part)
    return text(value)


def _size(spec: _Spec) -> str:
    width, height = text(spec.get("width")), text(spec.get("height"))
    return f"{width} x {height} pixels" if width and height and width != "container" else ""


def _notes(spec: _Spec) -> list[str]:
    chosen = [text(mapping(param).get("name")) for param in items(spec.get("params"))[:6] if "select" in mapping(param)]
    notes = [f"selections by mouse: {len(chosen)}"] if chosen else []
    if address := remote(spec):
        notes.append(f"its data is not in the chart but at {address}")
    return notes


def _of_marks(spec: _Spec) -> FigureFacts:
    """Tell of a spec of Vega itself."""
    marks: list[Mark] = []

    def walk(value: Any, depth: int) -> None:
        for mark in map(mapping, items(value)[:_PARTS]):
            if len(marks) < _PARTS:
                if mark.get("type") != "group":
                    marks.append(Mark(text(mark.get("type"))[:40] or "mark", text(mark.get("name"))))
                elif depth < _DEEP:
                    walk(mark.get("marks"), depth + 1)

    walk(spec.get("marks"), 0)
    axes = []
    for axis in map(mapping, items(spec.get("axes"))[:20]):
        title = _title(axis.get("title"))
        name = "x" if axis.get("orient") in {"bottom", "top"} else "y"
        if title and not any(known.label == title and known.name == name for known in axes):
            axes.append(Axis(name, title))
    legends = [_title(mapping(legend).get("title")) for legend in items(spec.get("legends"))[:12]]
    panel = Panel("", tuple(axes), tuple(marks), tuple(filter(None, legends)))
    return FigureFacts("vega chart", _title(spec.get("title")), _size(spec), (panel,), 0, tuple(_notes(spec)))
