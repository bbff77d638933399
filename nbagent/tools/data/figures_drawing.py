"""Draws a live matplotlib figure that nobody has shown yet, if that is quick and runs nobody's own code.

Drawing calls the methods of all artists, and the functions that write the ticks: only those of matplotlib and its
companions are let. Must not import matplotlib. Read `drawn_figure`.
"""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Iterator
from typing import Any

from nbagent.tools.data.figures_matplotlib import vetted

_ARTISTS = 3_000
_POINTS = 200_000


def drawn_figure(figure: Any) -> dict[str, Any] | None:
    """Return `{"image/png": …}` of a figure, None where it is not drawn: too much in it, or something of a stranger's."""
    artists = list(itertools.islice(_artists(figure), _ARTISTS + 1))
    if len(artists) > _ARTISTS or not all(map(_harmless, artists)) or sum(map(_points, artists)) > _POINTS:
        return None
    canvas, file = figure.canvas, io.BytesIO()
    if not vetted(canvas) and type(canvas).__module__.partition(".")[0] != "matplotlib_inline":
        return None
    try:
        figure.savefig(file, format="png", dpi=100, bbox_inches="tight")
    finally:
        if figure.canvas is not canvas:
            figure.set_canvas(canvas)
    return {"image/png": base64.b64encode(file.getvalue()).decode("ascii")}


def _artists(artist: Any) -> Iterator[Any]:
    yield artist
    if vetted(artist):
        for child in artist.get_children():
            yield from _artists(child)


def _harmless(artist: Any) -> bool:
    if not vetted(artist):
        return False
    for name in ("xaxis", "yaxis", "zaxis"):
        axis = getattr(artist, name, None)
        for ticks in (getattr(axis, "major", None), getattr(axis, "minor", None)):
            formatter: Any = getattr(ticks, "formatter", None)
            if formatter is not None and not (
                vetted(formatter) and vetted(getattr(ticks, "locator", formatter)) and _own(formatter)
            ):
                return False
    return True


def _own(formatter: Any) -> bool:
    """Whether the function of a formatter is matplotlib's own."""
    function = getattr(formatter, "func", None)
    function = getattr(function, "func", function)  # of a partial
    return function is None or str(getattr(function, "__module__", "")).startswith("matplotlib.")


def _points(artist: Any) -> int:
    if type(artist).__name__ == "Line2D":
        return len(artist.get_xdata(orig=True))
    offsets = getattr(artist, "_offsets", None)
    return len(offsets) if offsets is not None and hasattr(offsets, "__len__") else 1
