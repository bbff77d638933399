"""Draws one interactive figure as a PNG, in a process of its own: `python -I draw.py JOB` (see pictures.py).

A job is a JSON file: `kind` (plotly, vega-lite, vega, svg), `figure`, `png` (where the picture goes), `path` (where packages
are looked for), `engine`. Nothing is loaded over the network. Exits with 3 and a sentence where the engine is not there or
can't draw it. It is run as a file: it must not import nbagent. Read `main`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY = 3_000_000_000
"""Bytes of data that the process may have."""

_DEAD = "127.0.0.1:9"  # a proxy that nothing listens at: no page of the browser gets out
_REMOTE = ("choropleth", "scattergeo", "scattermap", "densitymap")  # kinds that load maps from elsewhere


class CannotDraw(Exception):
    """This engine is not there, or can't draw this figure; the text says why."""


def main(job: Path) -> int:
    """Do one job; return the exit code."""
    given = json.loads(job.read_text("utf-8"))
    sys.path[:] = [*given["path"], *(part for part in sys.path if part not in given["path"])]
    try:
        picture = ENGINES[given["engine"]](given["kind"], given["figure"])
    except (CannotDraw, ImportError) as error:
        sys.stderr.write(f"CANNOT: {error}")
        return 3
    Path(given["png"]).write_bytes(picture)
    return 0


def _limit() -> None:
    """Bound what the process may take, where the system can. Not for a browser: it would hang."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _by_kaleido(kind: str, figure: Any) -> bytes:
    """Plotly's own drawing, by kaleido and a Chrome."""
    if kind != "plotly":
        raise CannotDraw(f"kaleido draws no {kind}")
    if any(str(trace.get("type", "")).startswith(_REMOTE) for trace in figure["data"]):
        raise CannotDraw("its map would have to be loaded from elsewhere")
    import kaleido  # pyright: ignore[reportMissingImports]  (only where it is)

    os.environ.update(CHOREO_PROXY_SERVER=_DEAD, http_proxy=_DEAD, https_proxy=_DEAD)
    layout = dict(figure.get("layout") or {})
    pictures = layout.get("images") or []
    layout["images"] = [p for p in pictures if str(p.get("source", "")).startswith("data:image/")]
    size = {"width": _pixels(layout.get("width"), 800), "height": _pixels(layout.get("height"), 500)}
    return kaleido.calc_fig_sync(
        {"data": figure["data"], "layout": layout},
        opts={"format": "png", **size},
        kopts={"mathjax": False, "timeout": 18},
    )


def _pixels(given: Any, instead: int) -> int:
    return min(max(int(given), 200), 1568) if isinstance(given, int | float) else instead


def _by_vl_convert(kind: str, figure: Any) -> bytes:
    """Vega's own drawing, by vl-convert. Specs with addresses in them don't come here."""
    import vl_convert

    _limit()
    if kind == "svg":
        return vl_convert.svg_to_png(figure, scale=1.0)
    if kind == "vega":
        return vl_convert.vega_to_png(figure, scale=1.5, allowed_base_urls=[])
    if kind != "vega-lite":
        raise CannotDraw(f"vl-convert draws no {kind}")
    return vl_convert.vegalite_to_png(figure, scale=1.5, allowed_base_urls=[])


def _by_matplotlib(kind: str, figure: Any) -> bytes:
    """A plain drawing of plotly's common traces."""
    if kind != "plotly":
        raise CannotDraw(f"matplotlib draws no {kind}")
    _limit()
    sys.path.append(str(Path(__file__).parent))
    import draw_plotly  # pyright: ignore[reportMissingImports]  (beside this file, which is run and not imported)

    return draw_plotly.png(figure)


ENGINES: dict[str, Callable[[str, Any], bytes]] = {
    "kaleido": _by_kaleido,
    "vl-convert": _by_vl_convert,
    "matplotlib": _by_matplotlib,
}

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
