"""The figure of an output as a picture that stays still: the one that it brings, or one drawn of its description.

Interactive ones (altair, plotly) are drawn as a model sees them (tools/data/pictures.py), apart and without the network.
Read `picture_of`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from nbagent.tools.data.figures_bundles import FACTS, Figure, figure_in
from nbagent.tools.data.pictures import PLAINLY, Pictures
from nbagent.view.report.model import Picture
from nbagent.view.text import one_line

STILL = "Interactive in the notebook; this is how it looks there at first."
PLAIN = "Interactive in the notebook; this is a plain drawing of its data, which looks otherwise there."
NOT_STILL = (
    "An interactive figure is here in the notebook. It could not be drawn as a picture: that needs vl-convert-python (altair) "
    "or kaleido (plotly)."
)
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml")
_TITLE = re.compile(r"(?:set_title|suptitle|title)\s*(?:=|\()\s*[rf]?(?P<q>[\"'])(?P<text>.+?)(?P=q)")


async def picture_of(data: Mapping[str, Any], source: str, pictures: Pictures) -> Picture | None:
    """Return the figure of a MIME bundle, None where it has none that can be had; `source` is the code of its cell."""
    figure = figure_in({kind: value for kind, value in data.items() if kind not in _PICTURES})
    for kind in _PICTURES:
        if kind in data and (found := _bytes(data[kind], kind)) is not None:
            return Picture(found, kind, _said(figure, source), STILL if figure is not None else "")
    if figure is None:
        return None
    (drawn,) = await pictures.seen([{"output_type": "display_data", "data": dict(data), "metadata": {}}])
    png = _bytes(drawn["data"].get("image/png", ""), "image/png")
    plain = PLAINLY in str(drawn["data"].get(FACTS))
    return Picture(png, "image/png", _said(figure, source), PLAIN if plain else STILL) if png else None


def _bytes(value: Any, kind: str) -> bytes | None:
    text = "".join(value) if isinstance(value, list) else str(value)
    if kind == "image/svg+xml":
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        return None


def _said(figure: Figure | None, source: str) -> str:
    """Return in words what a figure shows: its own title, else the one in the code, else that it is a figure."""
    held: Any = figure.json if figure is not None and isinstance(figure.json, dict) else {}
    title: Any = (
        (held.get("layout") or {}).get("title") if figure is not None and figure.kind == "plotly" else held.get("title")
    )
    title = title.get("text") if isinstance(title, dict) else title
    if isinstance(title, str) and title.strip():
        return one_line(re.sub(r"<[^>]*>", " ", title), 200)
    titles = [found["text"] for found in _TITLE.finditer(source)]
    return one_line("; ".join(dict.fromkeys(titles)), 200) or "A figure without a title."
