"""Finds the figure in one output of a cell, by its mime types or in the HTML that its library wrote.

Pure, but for figures that are widgets: those are looked up among the live ones. Must not import a plotting library.
Read `figure_in`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbagent.tools.data.figures import of_plotly, of_vega
from nbagent.tools.data.figures_values import items, mapping
from nbagent.tools.data.kinds import names_of
from nbagent.tools.describe import safely

FACTS = "application/vnd.nbagent.figure"
"""Under this type `pictures.py` puts what is told of a figure into the copy of an output that a model gets."""

_PLOTLY = "application/vnd.plotly.v1+json"
_VEGA_LITE = "application/vnd.vegalite.v"
_VEGA = "application/vnd.vega.v"
_WIDGET = "application/vnd.jupyter.widget-view+json"
_HTML = 8_000_000  # characters of HTML that are looked through


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as JSON. `kind` is plotly, vega-lite, vega, or svg (whose `json` is its text)."""

    kind: str
    json: Any

    def text(self) -> str:
        """Return what is told of it, "" of an SVG."""
        if self.kind == "svg":
            return ""
        return safely(lambda: (of_plotly if self.kind == "plotly" else of_vega)(self.json).text())


def figure_in(data: Mapping[Any, Any]) -> Figure | None:
    """Return the figure of a mime bundle, None where there is none."""
    for mime, value in data.items():
        if mime == _PLOTLY and type(value) is dict:
            return Figure("plotly", value)
        if str(mime).startswith(_VEGA_LITE) and type(value) is dict:
            return Figure("vega-lite", value)
        if str(mime).startswith(_VEGA) and type(value) is dict:
            return Figure("vega", value)
    if type(view := data.get(_WIDGET)) is dict and (live := _widget(view.get("model_id"))) is not None:
        return live
    if html := _text(data.get("text/html")):
        found = _in_html(html[-_HTML:])
        if found is not None:
            return found
    svg = _text(data.get("image/svg+xml"))
    return (
        Figure("svg", svg)
        if svg and not any(str(mime).startswith("image/") and mime != "image/svg+xml" for mime in data)
        else None
    )


def text_of(data: Mapping[Any, Any]) -> str:
    """Return what is told of the figure in a bundle, "" where there is none."""
    given = data.get(FACTS)
    if type(given) is str:
        return given
    found = figure_in(data)
    return found.text() if found is not None else ""


def live(value: object) -> Figure | None:
    """Return a live plotly figure or a chart that a widget shows as JSON; its own code is not run. None for others.

    Arrays of numpy stay as they are: `of_plotly` reads them.
    """
    names = set(names_of(type(value)))
    if "plotly.basedatatypes.BaseFigure" in names:
        held = _held(value)
        return Figure("plotly", {"data": items(held.get("_data")), "layout": mapping(held.get("_layout"))})
    if "altair.jupyter.jupyter_chart.JupyterChart" in names:
        spec = mapping(_held(value).get("_trait_values")).get("spec")
        return Figure("vega-lite", spec) if type(spec) is dict else None
    return None


def _held(value: object) -> dict[str, Any]:
    return mapping(object.__getattribute__(value, "__dict__"))


def _widget(model_id: Any) -> Figure | None:
    module: Any = sys.modules.get("ipywidgets.widgets.widget")
    known = getattr(module, "_instances", None)
    value = known.get(model_id) if type(known) is dict and type(model_id) is str else None
    return live(value) if value is not None else None


def _text(value: Any) -> str:
    return "".join(map(str, value)) if type(value) is list else value if type(value) is str else ""


def _in_html(html: str) -> Figure | None:
    """Return the figure whose JSON stands in a script that plotly or altair wrote."""
    decode = json.JSONDecoder().raw_decode
    try:
        if (place := html.rfind("Plotly.newPlot(")) >= 0:
            traces, end = decode(html, html.index("[", place))
            layout, _ = decode(html, html.index("{", end))
            return Figure("plotly", {"data": traces, "layout": layout})
        if "vegaEmbed" in html and (place := html.rfind("})({")) >= 0:
            spec, _ = decode(html, place + 3)
            return Figure("vega" if "marks" in spec and "mark" not in spec else "vega-lite", spec)
    except (ValueError, RecursionError):  # another script, or one that was cut
        return None
    return None
