"""What a live matplotlib figure (seaborn's too) has to show, read from its artists without drawing it.

Only objects of matplotlib's own and its companions' classes are asked: of a stranger's axes the class is named. Must not
import matplotlib. Read `of_matplotlib`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from nbagent.tools.data.figures_facts import PANELS, Axis, FigureFacts, Mark, Panel, number

VETTED = frozenset({"matplotlib", "mpl_toolkits", "seaborn", "cartopy", "pandas", "geopandas", "mpltern", "wordcloud"})
"""Packages whose artists may be asked: their code runs when the figure is drawn, and nobody overrides it in a notebook."""

_MARKS = 2_000
_TICKS = 12


def of_matplotlib(figure: Any) -> FigureFacts:
    """Tell of a `matplotlib.figure.Figure` (or SubFigure). It is not drawn; nothing of it changes that is seen."""
    every = [axes for axes in figure.axes if getattr(axes, "_colorbar", None) is None]
    bars = [axes for axes in figure.axes if getattr(axes, "_colorbar", None) is not None]
    panels = [_panel(axes, every) for axes in every[:PANELS]]
    width, height = figure.get_size_inches()
    dpi = float(figure.dpi)
    notes = [f'colour scale "{_plain(_bar_label(axes))}"{_bar_span(axes)}' for axes in bars[:4] if vetted(axes)]
    notes += [f"legend of the figure: {', '.join(_legend(legend))}" for legend in figure.legends[:2]]
    for name, side in (("_supxlabel", "x of all"), ("_supylabel", "y of all")):
        if words := _said(getattr(figure, name, None)):
            notes.append(f'{side}: "{words}"')
    title = _said(getattr(figure, "_suptitle", None))
    size = f"{width:g} x {height:g} inches ({width * dpi:.0f} x {height * dpi:.0f} pixels)"
    return FigureFacts("matplotlib figure", title, size, tuple(panels), max(0, len(every) - PANELS), tuple(notes))


def vetted(artist: Any) -> bool:
    """Whether the methods of an object are those of matplotlib and its companions, not of the person's own class."""
    return type(artist).__module__.partition(".")[0] in VETTED


def _said(artist: Any) -> str:
    return _plain(artist.get_text()) if artist is not None and vetted(artist) else ""


def _plain(words: Any) -> str:
    """Return a text without the dollars and backslashes of its formulas."""
    return words.replace("$", "").replace("\\", "") if type(words) is str else ""


def _panel(axes: Any, every: Sequence[Any]) -> Panel:
    if not vetted(axes):
        return Panel(notes=(f"axes of class {type(axes).__module__}.{type(axes).__qualname__}, not looked into",))
    names = [name for name in ("x", "y", "z") if hasattr(axes, f"get_{name}lim")]
    if getattr(axes, "name", "") == "polar":
        found = [_axis(axes, "x", "angle"), _axis(axes, "y", "radius")]
    else:
        found = [_axis(axes, name, name) for name in names] if axes.axison else []
    legend = axes.get_legend()
    notes = [f'written in it: "{words}"' for part in list(axes.texts)[:4] if (words := _said(part))]
    if any(other is not axes and other.bbox.bounds == axes.bbox.bounds for other in every[:60]):
        notes.append("shares its place with another panel (a second axis)")
    titles = [title for where in ("center", "left", "right") if (title := _plain(axes.get_title(loc=where)))]
    return Panel(
        " / ".join(titles),
        tuple(found),
        tuple(_marks(axes)),
        tuple(_legend(legend)) if legend is not None else (),
        _said(legend.get_title()) if legend is not None else "",
        tuple(notes),
    )


def _legend(legend: Any) -> list[str]:
    return [words for part in legend.get_texts()[:60] if (words := _said(part))] if vetted(legend) else []


# ── axes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _axis(axes: Any, letter: str, name: str) -> Axis:
    axis = getattr(axes, f"{letter}axis")
    label = _plain(axis.get_label_text())
    low, high = (float(end) for end in getattr(axes, f"get_{letter}lim")())
    scale = axes.name if axes.name == "polar" and letter == "x" else axis.get_scale()
    if names := _names(axis, low, high):
        return Axis(name, label, scale="category", values=tuple(names[:_TICKS]), more=max(0, len(names) - _TICKS))
    reverse = ", reversed" if low > high else ""
    if (day := _dates(axis)) is not None:
        return Axis(name, label, day(low), day(high), f"date{reverse}")
    scale = "" if scale in {"linear", "polar"} else str(scale)
    return Axis(name, label, number(low), number(high), (scale or "linear") + reverse if scale or reverse else "")


def _converter(axis: Any) -> Any:
    return axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)


def _names(axis: Any, low: float, high: float) -> list[str]:
    """Return the texts at the ticks of an axis of categories, [] for one of numbers."""
    known = getattr(axis.units, "_mapping", None) if type(axis.units).__name__ == "UnitData" else None
    if known:
        return [_plain(name) for name in list(known)[:1000]]
    formatter = axis.get_major_formatter()
    if not vetted(formatter) or low == high:
        return []
    given: Any = getattr(formatter, "seq", ()) if type(formatter).__name__ == "FixedFormatter" else _by_place(formatter)
    names = [_plain(name) for name in list(given)[:1000]]
    return [] if all(_is_number(name) for name in names) else [name for name in names if name]


def _by_place(formatter: Any) -> list[str]:
    """Return the texts that were set at places (`set_xticks(places, texts)`), which matplotlib keeps in a partial."""
    held = getattr(formatter, "func", None)
    if type(held) is functools.partial and held.func.__name__ == "_format_with_dict" and type(held.args[0]) is dict:
        return list(held.args[0].values())
    return []


def _is_number(words: str) -> bool:
    return (
        not words.strip() or words.strip().replace("−", "-").lstrip("-").replace(".", "", 1).replace(",", "").isdigit()
    )


def _dates(axis: Any) -> Any:
    """Return what makes a date of a number of this axis, None where it has none."""
    dates: Any = sys.modules.get("matplotlib.dates")
    kinds = {type(_converter(axis)).__name__, type(axis.get_major_formatter()).__name__}
    if dates is not None and any("Date" in kind and "TimeSeries" not in kind for kind in kinds):

        def day(value: float) -> str:
            try:
                return dates.num2date(value).strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")
            except (ValueError, OverflowError):
                return number(value)

        return day
    return _periods(axis)


def _periods(axis: Any) -> Any:
    """The same for the axes of pandas' own plots, which count periods of `freq`."""
    pandas: Any = sys.modules.get("pandas")
    freq = getattr(axis, "freq", None)
    if pandas is None or freq is None:
        return None

    def day(value: float) -> str:
        try:
            return str(pandas.Period(ordinal=int(value), freq=freq))
        except (ValueError, OverflowError, TypeError):
            return number(value)

    return day


def _bar_label(axes: Any) -> str:
    return axes.get_ylabel() or axes.get_xlabel()


def _bar_span(axes: Any) -> str:
    bar: Any = axes._colorbar  # noqa: SLF001  (the only way from an axes to its colour bar)
    low, high = getattr(bar, "vmin", None), getattr(bar, "vmax", None)
    return f": {number(float(low))} to {number(float(high))}" if low is not None and high is not None else ""


# ── marks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_COLLECTIONS = {
    "PathCollection": "scatter",
    "QuadMesh": "heatmap",
    "LineCollection": "lines",
    "FillBetweenPolyCollection": "area",
    "Poly3DCollection": "surface",
    "Path3DCollection": "scatter",
    "QuadContourSet": "contours",
    "TriContourSet": "contours",
    "Quiver": "arrows",
    "EventCollection": "events",
}


def _marks(axes: Any) -> Iterable[Mark]:
    held: set[int] = set()
    for container in list(axes.containers)[:_MARKS]:
        kind, parts = _container(container)
        held.update(id(part) for part in parts)
        if kind:
            yield Mark(kind, _label(container), len(container) if kind == "bars" else None)
    for line in list(axes.lines)[:_MARKS]:
        if id(line) not in held and vetted(line) and len(line.get_xdata(orig=True)):
            points = len(line.get_xdata(orig=False)) if type(line).__name__ == "Line2D" else None
            yield Mark(_line_kind(line), _label(line), points)
    for found in list(axes.collections)[:_MARKS]:
        if id(found) not in held and vetted(found):
            yield _collection(found)
    for patch in list(axes.patches)[:_MARKS]:
        if id(patch) not in held and vetted(patch):
            yield Mark({"Wedge": "slice", "Rectangle": "rectangle"}.get(type(patch).__name__, "shape"), _label(patch))
    for picture in list(axes.images)[:20]:
        if vetted(picture):
            rows, columns = picture.get_size()
            yield Mark(f"image of {rows} x {columns}", _label(picture))


_CONTAINERS = {"BarContainer": "bars", "ErrorbarContainer": "error bars", "StemContainer": "stems"}
_OF_BOXES = ("boxes", "whiskers", "caps", "medians", "fliers", "means")


def _container(container: Any) -> tuple[str, list[Any]]:
    """Return what a container of artists is ("" where it is not known), and the artists that are told by it."""
    name = type(container).__name__
    if name == "BoxPlotContainer":
        return f"{len(container.boxes)} boxes", [part for kind in _OF_BOXES for part in getattr(container, kind, ())]
    parts = [part for group in container for part in (group if type(group) in (list, tuple) else (group,))]
    return (_CONTAINERS[name], parts[:100_000]) if name in _CONTAINERS else ("", [])


def _line_kind(line: Any) -> str:
    drawn = line.get_linestyle() not in {"None", "", " "}
    marked = line.get_marker() not in {"None", "", " ", None}
    return "line" if drawn else "markers" if marked else "line"


def _collection(found: Any) -> Mark:
    name = type(found).__name__
    kind = _COLLECTIONS.get(name, "shapes")
    if name == "QuadMesh":
        values = found.get_array()
        return Mark(kind, _label(found), None if values is None else int(values.size))
    if name in {"PathCollection", "Path3DCollection"}:
        return Mark(kind, _label(found), len(found.get_offsets()))
    return Mark(kind, _label(found), None)


def _label(artist: Any) -> str:
    label = artist.get_label()
    return _plain(label) if type(label) is str and not label.startswith("_") else ""
