"""The figure of an output as a picture that stays still: the one that it brings, or one drawn of its description.

Vega-Lite (altair) is drawn by vl-convert and plotly by kaleido, where they are installed; neither may load anything from
the network. Read `picture_of`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from nbagent.view.report.model import Picture
from nbagent.view.text import one_line

_log = logging.getLogger("nbagent")

STILL = "Interactive in the notebook; this is how it looks there at first."
NOT_STILL = (
    "An interactive figure is here in the notebook. It could not be drawn as a picture: that needs vl-convert-python (altair) "
    "or kaleido (plotly)."
)
_PATIENCE = 60.0  # seconds: kaleido starts a browser
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml")
_PLOTLY = "application/vnd.plotly.v1+json"
_VEGA = re.compile(r"application/vnd\.vega(?P<lite>lite)?\.v\d+(?:\.\d+)*\+json")
_TITLE = re.compile(r"(?:set_title|suptitle|title)\s*(?:=|\()\s*[rf]?(?P<q>[\"'])(?P<text>.+?)(?P=q)")
_ADDRESS = re.compile(r'"(?:url|source|href|src)"\s*:\s*"\s*(?!data:)[a-z]+:?//', re.IGNORECASE)


def interactive(data: Mapping[str, Any]) -> bool:
    """Whether an output is a figure that the notebook draws itself."""
    return _PLOTLY in data or any(_VEGA.fullmatch(kind) for kind in data)


def described(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a MIME bundle with the description of the figure, also where altair has put it into a script."""
    html = "".join(data.get("text/html") or "")
    if interactive(data) or "vega-lite/v" not in html:
        return data
    for place in (found.end() for found in re.finditer(r"\}\)\(|vegaEmbed\([^,{]*,\s*|spec\s*=\s*", html)):
        try:
            spec, _ = json.JSONDecoder().raw_decode(html, place)
        except ValueError:
            continue
        if isinstance(spec, dict) and "vega-lite" in str(spec.get("$schema")):
            return {**data, "application/vnd.vegalite.v5+json": spec}
    return data


async def picture_of(data: Mapping[str, Any], source: str) -> Picture | None:
    """Return the figure of a MIME bundle, None where it has none that can be had; `source` is the code of its cell."""
    moving = interactive(data)
    for kind in _PICTURES:
        if kind in data and (found := _bytes(data[kind], kind)) is not None:
            return Picture(found, kind, _said(data, source), STILL if moving else "")
    if not moving:
        return None
    try:
        async with asyncio.timeout(_PATIENCE):
            drawn = await asyncio.to_thread(_drawn, data)
    except TimeoutError:
        return None
    return None if drawn is None else Picture(drawn[0], drawn[1], _said(data, source), STILL)


def _bytes(value: Any, kind: str) -> bytes | None:
    text = "".join(value) if isinstance(value, list) else str(value)
    if kind == "image/svg+xml":
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        return None


def _drawn(data: Mapping[str, Any]) -> tuple[bytes, str] | None:
    """Draw a figure from its description; None where the package is not there or can't."""
    try:
        for kind, value in data.items():
            if (found := _VEGA.fullmatch(kind)) is not None:
                import vl_convert

                draw = vl_convert.vegalite_to_svg if found["lite"] else vl_convert.vega_to_svg
                return str(draw(value, allowed_base_urls=[])).encode(), "image/svg+xml"
        text = json.dumps(data[_PLOTLY])
        if _ADDRESS.search(text):  # it would be loaded by the browser that draws
            return None
        import plotly.io

        return plotly.io.to_image(json.loads(text), format="svg", validate=False), "image/svg+xml"
    except ImportError:
        return None
    except (
        ValueError,
        TypeError,
        KeyError,
        RuntimeError,
        OSError,
    ) as error:  # a figure that is none, a browser that is not there
        _log.info("a figure could not be drawn: %s", error)
        return None


def _said(data: Mapping[str, Any], source: str) -> str:
    """Return in words what a figure shows: its own title, else the one in the code, else that it is a figure."""
    for kind, value in data.items():
        if isinstance(value, dict) and (kind == _PLOTLY or _VEGA.fullmatch(kind)):
            layout: Any = value.get("layout") if kind == _PLOTLY else value
            title: Any = layout.get("title") if isinstance(layout, dict) else None
            title = title.get("text") if isinstance(title, dict) else title
            if isinstance(title, str) and title.strip():
                return one_line(re.sub(r"<[^>]*>", " ", title), 200)
    titles = [found["text"] for found in _TITLE.finditer(source)]
    return one_line("; ".join(dict.fromkeys(titles)), 200) or "A figure without a title."
