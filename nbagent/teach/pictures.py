"""Pictures of the course: SVG with its own pale ground, so that it reads the same on a light and on a dark page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing: `svg` is the whole element (give it a `viewBox` and a ground), `alt` what it shows, in words."""

    svg: str
    alt: str

    def __repr__(self) -> str:
        return self.alt

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.alt}
