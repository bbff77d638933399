"""Pictures of the course: SVG with its own pale ground, so that it reads the same on a light and on a dark page."""

from __future__ import annotations

import html
from base64 import b64encode
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing: `svg` is the whole element (give it a `viewBox` and a ground), `alt` what it shows, in words."""

    svg: str
    alt: str

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        data = b64encode(self.svg.encode()).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(self.alt)}" style="max-width:100%;height:auto">'
        return {  # JupyterLab cuts off an image/svg+xml that is wider than the cell, and tells nobody what it shows
            "text/html": image,
            "image/svg+xml": self.svg,
            "text/plain": self.alt,
        }
