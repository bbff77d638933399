"""A plain drawing of a plotly figure with matplotlib, for where plotly's own can't be made: its common traces and panels.

What it can't draw it does not pretend to: a figure with nothing that it knows raises. Run beside draw.py in a process of
its own: it must not import nbagent. Read `png`.
"""

from __future__ import annotations

import base64
import io
import re
from typing import Any

POINTS = 50_000
"""Points of one trace that are drawn; of more, every n-th."""

_SCALES = {"log": "log"}
_SYMBOLS = {"circle": "o", "square": "s", "diamond": "D", "cross": "P", "x": "X", "triangle-up": "^", "star": "*"}
_DASHES = {"dash": "--", "dot": ":", "dashdot": "-.", "longdash": "--"}
_COLOURS = (
    "#636efa",
    "#EF553B",
    "#00cc96",
    "#ab63fa",
    "#FFA15A",
    "#19d3f3",
    "#FF6692",
    "#B6E880",
    "#FF97FF",
    "#FECB52",
)
_RGB = re.compile(r"rgba?\(\s*([\d.]+)\s*,\s*([\d.]+)\s*,\s*([\d.]+)\s*(?:,\s*([\d.]+)\s*)?\)")
_TAG = re.compile(r"<[^<>]{0,200}>")


def png(figure: dict[str, Any]) -> bytes:
    """Draw `{"data": …, "layout": …}`; raises ValueError where nothing of it can be drawn."""
    import matplotlib.figure

    layout = figure.get("layout") or {}
    width, height = (min(max(_number(layout.get(k), d), 200), 1568) for k, d in (("width", 800), ("height", 500)))
    drawing = matplotlib.figure.Figure(figsize=(width / 100, height / 100), dpi=100)
    panels: dict[tuple[str, str], Any] = {}
    drawn, named = 0, False
    bars = [t for t in figure["data"] if t.get("type") in {"bar", "histogram"} and _seen(t)]
    stack: dict[tuple[Any, ...], Any] = {}
    for place, trace in enumerate([t for t in figure["data"] if _seen(t)][:200]):
        axes = _panel(drawing, panels, trace, layout)
        colour = _colour(trace, place)
        if (draw := _DRAW.get(str(trace.get("type", "scatter")))) is None:
            continue
        if draw is _bar or draw is _histogram:
            draw(axes, trace, colour, layout, [b for b in bars if _key(b) == _key(trace)], stack)
        else:
            draw(axes, trace, colour, layout)
        drawn += 1
        named = named or (bool(trace.get("name")) and trace.get("showlegend") is not False)
    if not drawn:
        raise ValueError("none of its traces can be drawn by matplotlib")
    for key, axes in panels.items():
        _finish(axes, key, layout, legend=named and layout.get("showlegend") is not False and drawn > 1)
    if title := _words(layout.get("title")):
        drawing.suptitle(title)
    file = io.BytesIO()
    drawing.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


# ── panels ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _seen(trace: dict[str, Any]) -> bool:
    return trace.get("visible", True) is True


def _key(trace: dict[str, Any]) -> tuple[str, str]:
    return str(trace.get("xaxis") or "x"), str(trace.get("yaxis") or "y")


def _panel(drawing: Any, panels: dict[tuple[str, str], Any], trace: dict[str, Any], layout: dict[str, Any]) -> Any:
    kind = str(trace.get("type", "scatter"))
    key = _key(trace)
    if kind == "pie":
        box = trace.get("domain") or {}
        key = ("pie", str(box))
        x, y = box.get("x") or [0, 1], box.get("y") or [0, 1]
    else:
        x, y = (_axis(layout, name).get("domain") or [0, 1] for name in key)
    if key in panels:
        return panels[key]
    over = _axis(layout, key[1]).get("overlaying") if kind != "pie" else None
    under = next((axes for (_, name), axes in panels.items() if name == over), None)
    if under is not None:
        panels[key] = under.twinx()
        return panels[key]
    place = (0.08 + 0.84 * x[0], 0.1 + 0.76 * y[0], 0.84 * (x[1] - x[0]), 0.76 * (y[1] - y[0]))
    three = {"projection": "3d"} if kind in {"scatter3d", "surface"} else {}
    panels[key] = drawing.add_axes(place, **three)
    return panels[key]


def _axis(layout: dict[str, Any], name: str) -> dict[str, Any]:
    return layout.get(f"{name[:1]}axis{name[1:]}") or {}


def _finish(axes: Any, key: tuple[str, str], layout: dict[str, Any], *, legend: bool) -> None:
    if key[0] != "pie":
        for name, letter in zip(key, "xy", strict=True):
            axis = _axis(layout, name)
            getattr(axes, f"set_{letter}label")(_words(axis.get("title")))
            ends = axis.get("range") or []
            if axis.get("type") == "log":
                getattr(axes, f"set_{letter}scale")("log")
                ends = [10.0**end for end in ends if isinstance(end, int | float)]
            if len(ends) == 2 and all(isinstance(end, int | float) for end in ends):
                getattr(axes, f"set_{letter}lim")(*ends)
            elif axis.get("autorange") == "reversed":
                getattr(axes, f"invert_{letter}axis")()
        axes.grid(visible=True, alpha=0.3)
        axes.tick_params(axis="x", labelrotation=30 if _long_ticks(axes) else 0)
    if legend and axes.get_legend_handles_labels()[1]:
        axes.legend(title=_words((layout.get("legend") or {}).get("title")) or None, fontsize="small")


def _long_ticks(axes: Any) -> bool:
    return sum(len(str(tick.get_text())) for tick in axes.get_xticklabels()) > 60


# ── traces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scatter(axes: Any, trace: dict[str, Any], colour: str, _: dict[str, Any]) -> None:
    y = _thin(_values(trace.get("y")))
    x = _thin(_values(trace.get("x"))) if trace.get("x") is not None else list(range(len(y)))
    marker, line = trace.get("marker") or {}, trace.get("line") or {}
    mode = str(trace.get("mode") or ("lines+markers" if len(y) < 20 else "lines"))
    label = _words(trace.get("name")) or None
    if "lines" in mode:
        dash = _DASHES.get(str(line.get("dash")), "-")
        axes.plot(
            x, y, dash, color=colour, label=label, linewidth=_number(line.get("width"), 1.8), drawstyle=_steps(line)
        )
    if "markers" in mode:
        colours = _thin(_values(marker.get("color"))) if isinstance(marker.get("color"), dict | list) else None
        numbers = bool(colours) and all(isinstance(c, int | float) for c in colours or ())
        shown = colours if numbers and colours and len(colours) == len(x) else colour
        symbol = _SYMBOLS.get(str(marker.get("symbol")), "o")
        made = axes.scatter(x, y, c=shown, s=_number(marker.get("size"), 6) ** 2, marker=symbol, alpha=_number(marker.get("opacity"), 0.85), label=None if "lines" in mode else label)  # fmt: skip
        if numbers:
            axes.figure.colorbar(made, ax=axes)
    if str(trace.get("fill", "none")).startswith("to"):
        axes.fill_between(x, y, color=colour, alpha=0.25)


def _steps(line: dict[str, Any]) -> str:
    return "steps-post" if line.get("shape") == "hv" else "default"


def _bar(
    axes: Any,
    trace: dict[str, Any],
    colour: str,
    layout: dict[str, Any],
    bars: list[dict[str, Any]],
    stack: dict[tuple[Any, ...], Any],
) -> None:
    flat = trace.get("orientation") == "h"
    names, sizes = (_values(trace.get(k)) for k in (("y", "x") if flat else ("x", "y")))
    names = names or list(range(len(sizes)))
    names, sizes = names[:2_000], [s if isinstance(s, int | float) else 0 for s in sizes[:2_000]]
    count, mine = len(bars), next((i for i, b in enumerate(bars) if b is trace), 0)
    if layout.get("barmode") in {"stack", "relative"} or count == 1:
        bottoms = [stack.get((_key(trace), name), 0) for name in names]
        stack.update({(_key(trace), name): b + s for name, b, s in zip(names, bottoms, sizes, strict=False)})
        (axes.barh if flat else axes.bar)(names, sizes, color=colour, label=_words(trace.get("name")) or None, **{"left" if flat else "bottom": bottoms})  # fmt: skip
        return
    known = list(dict.fromkeys(str(n) for b in bars for n in _values(b.get("y" if flat else "x"))))
    wide = 0.8 / count
    at = [known.index(str(n)) - 0.4 + wide * (mine + 0.5) for n in names]
    (axes.barh if flat else axes.bar)(at, sizes, wide, color=colour, label=_words(trace.get("name")) or None)
    (axes.set_yticks if flat else axes.set_xticks)(range(len(known)), known)


def _histogram(
    axes: Any,
    trace: dict[str, Any],
    colour: str,
    layout: dict[str, Any],
    bars: list[dict[str, Any]],
    stack: dict[tuple[Any, ...], Any],
) -> None:
    values = _values(trace.get("x") if trace.get("x") is not None else trace.get("y"))
    if values and isinstance(values[0], str):
        counts: dict[Any, float] = {}
        for value in values:
            counts[value] = counts.get(value, 0) + 1
        _bar(axes, {**trace, "x": list(counts), "y": list(counts.values()), "orientation": "v"}, colour, {**layout, "barmode": "stack"}, bars, stack)  # fmt: skip
        return
    bins = int(_number(trace.get("nbinsx"), 0)) or min(60, max(5, round(len(values) ** 0.5)))
    flat = "horizontal" if trace.get("x") is None else "vertical"
    axes.hist(values, bins=bins, color=colour, alpha=0.75, label=_words(trace.get("name")) or None, orientation=flat)


def _box(axes: Any, trace: dict[str, Any], colour: str, _: dict[str, Any]) -> None:
    flat = trace.get("y") is None
    values, groups = _values(trace.get("x" if flat else "y")), _values(trace.get("y" if flat else "x"))
    split: dict[str, list[float]] = {}
    for i, value in enumerate(values):
        if isinstance(value, int | float):
            split.setdefault(str(groups[i]) if i < len(groups) else _words(trace.get("name")), []).append(value)
    before = len(getattr(axes, "nbagent_groups", []))
    axes.nbagent_groups = [*getattr(axes, "nbagent_groups", []), *split]
    draw = axes.violinplot if trace.get("type") == "violin" else axes.boxplot
    more: dict[str, Any] = (
        {} if trace.get("type") == "violin" else {"patch_artist": True, "boxprops": {"facecolor": colour, "alpha": 0.6}}
    )
    draw(
        list(split.values()), positions=range(before, before + len(split)), **({"vert": False} if flat else {}), **more
    )
    (axes.set_yticks if flat else axes.set_xticks)(range(len(axes.nbagent_groups)), axes.nbagent_groups)


def _heatmap(axes: Any, trace: dict[str, Any], _colour: str, _: dict[str, Any]) -> None:
    rows = _matrix(trace.get("z"))
    x, y = _values(trace.get("x")), _values(trace.get("y"))
    made = axes.imshow(rows, aspect="auto", origin="lower", cmap="plasma")
    for names, ticks, size in ((x, axes.set_xticks, len(rows[0])), (y, axes.set_yticks, len(rows))):
        if names and len(names) == size:
            step = max(1, size // 12)
            ticks(range(0, size, step), [str(name)[:20] for name in names[::step]])
    axes.figure.colorbar(made, ax=axes)


def _contour(axes: Any, trace: dict[str, Any], _colour: str, _: dict[str, Any]) -> None:
    axes.figure.colorbar(axes.contourf(_matrix(trace.get("z")), cmap="plasma"), ax=axes)


def _pie(axes: Any, trace: dict[str, Any], _colour: str, _: dict[str, Any]) -> None:
    labels, values = _values(trace.get("labels")), _values(trace.get("values"))
    totals: dict[str, float] = {}
    for i, label in enumerate(labels[:10_000]):
        size = values[i] if i < len(values) else 1
        totals[str(label)] = totals.get(str(label), 0) + (size if isinstance(size, int | float) else 0)
    hole = {"wedgeprops": {"width": 1 - _number(trace.get("hole"), 0)}}
    axes.pie(list(totals.values())[:60], labels=list(totals)[:60], autopct="%1.1f%%", colors=_COLOURS, **hole)


def _scatter3d(axes: Any, trace: dict[str, Any], colour: str, _: dict[str, Any]) -> None:
    x, y, z = (_thin(_values(trace.get(k))) for k in "xyz")
    (axes.plot if trace.get("mode") == "lines" else axes.scatter)(
        x, y, z, color=colour, label=_words(trace.get("name")) or None
    )


def _candles(axes: Any, trace: dict[str, Any], _colour: str, _: dict[str, Any]) -> None:
    parts = [_values(trace.get(k))[:2_000] for k in ("x", "open", "high", "low", "close")]
    for x, first, high, low, last in zip(*parts, strict=False):
        tone = "#2ca02c" if last >= first else "#d62728"
        axes.plot([x, x], [low, high], color=tone, linewidth=1)
        axes.plot([x, x], [first, last], color=tone, linewidth=4)


def _on_map(axes: Any, trace: dict[str, Any], colour: str, layout: dict[str, Any]) -> None:
    _scatter(
        axes,
        {**trace, "x": trace.get("lon"), "y": trace.get("lat"), "mode": trace.get("mode") or "markers"},
        colour,
        layout,
    )
    axes.set_xlabel("longitude")
    axes.set_ylabel("latitude")


_DRAW: dict[str, Any] = {
    "scatter": _scatter, "scattergl": _scatter, "bar": _bar, "histogram": _histogram, "box": _box, "violin": _box,
    "heatmap": _heatmap, "contour": _contour, "pie": _pie, "scatter3d": _scatter3d, "candlestick": _candles,
    "ohlc": _candles, "scattergeo": _on_map, "scattermap": _on_map, "scattermapbox": _on_map,
}  # fmt: skip


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _values(given: Any) -> list[Any]:
    """Return a column as a list: dates as dates, what is packed unpacked."""
    if isinstance(given, dict):
        return _array(given).reshape(-1).tolist()
    values = list(given) if isinstance(given, list | tuple) else []
    if values and all(isinstance(v, str) and re.match(r"\d{4}-\d\d-\d\d", v) for v in values[:50]):
        import numpy as np

        try:
            return np.array([v[:26].rstrip("Z") for v in values], dtype="datetime64[us]").tolist()
        except ValueError:
            return values
    return values


def _array(packed: dict[str, Any]) -> Any:
    import numpy as np

    found = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
    shape = packed.get("shape")
    return found.reshape([int(n) for n in str(shape).split(",")]) if shape else found


def _matrix(given: Any) -> Any:
    import numpy as np

    rows = _array(given) if isinstance(given, dict) else given
    return np.array(rows, dtype=float)


def _thin(values: list[Any]) -> list[Any]:
    return values[:: -(-len(values) // POINTS) or 1]


def _colour(trace: dict[str, Any], place: int) -> str:
    for holder in (trace.get("line"), trace.get("marker")):
        given = holder.get("color") if isinstance(holder, dict) else None
        if isinstance(given, str):
            if rgb := _RGB.match(given):
                return "#" + "".join(f"{min(255, int(float(part))):02x}" for part in rgb.groups()[:3])
            from matplotlib.colors import is_color_like

            if is_color_like(given):
                return given
    return _COLOURS[place % len(_COLOURS)]


def _words(given: Any) -> str:
    given = given.get("text") if isinstance(given, dict) else given
    words = _TAG.sub(" ", given) if isinstance(given, str) else ""
    return words.strip()[:200].replace("$", r"\$")


def _number(given: Any, instead: float) -> float:
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else instead
