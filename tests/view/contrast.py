"""Colours of a style sheet under a theme: what `var()` and `color-mix()` come to, and how well text can be read on them.

Enough of CSS for nbagent's own style sheet; anything else fails loudly. Read `Colours.of`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMED = {"white": "#fff", "black": "#000", "green": "#008000", "transparent": "rgba(0,0,0,0)"}
_DECLARED = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]+)")


@dataclass(frozen=True)
class Colour:
    """Red, green and blue from 0 to 255, and how much of it covers what is below, from 0 to 1."""

    r: float
    g: float
    b: float
    alpha: float = 1.0

    def over(self, below: Colour) -> Colour:
        """What is seen of it upon an opaque colour."""
        kept = self.alpha
        return Colour(*(x * kept + y * (1 - kept) for x, y in zip(self.rgb, below.rgb, strict=True)))

    @property
    def rgb(self) -> tuple[float, float, float]:
        return self.r, self.g, self.b

    @property
    def luminance(self) -> float:
        """Relative luminance, as WCAG 2 defines it."""
        parts = [x / 255 for x in self.rgb]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(text: Colour, below: Colour) -> float:
    """The contrast of text upon an opaque colour, 1 to 21."""
    light, dark = sorted((text.over(below).luminance, below.luminance), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class Colours:
    """The custom properties of style sheets, the last declaration of a name counts; `current` is `currentcolor`."""

    def __init__(self, *sheets: str, current: Colour | None = None) -> None:
        self._values = {name: value.strip() for sheet in sheets for name, value in _DECLARED.findall(sheet)}
        self._current = current

    def of(self, value: str) -> Colour:
        """What a value is as a colour."""
        value = value.strip()
        value = NAMED.get(value, value)
        if value.lower() == "currentcolor" and self._current is not None:
            return self._current
        if value.startswith("#"):
            digits = value[1:] if len(value) == 7 else "".join(2 * digit for digit in value[1:])
            return Colour(*(int(digits[at : at + 2], 16) for at in (0, 2, 4)))
        name, inner = re.fullmatch(r"([\w-]+)\((.*)\)", value, re.DOTALL).groups()  # type: ignore[union-attr]
        parts = _split(inner)
        if name == "var":
            known = self._values.get(parts[0])
            return self.of(known if known is not None else ",".join(parts[1:]))
        if name in {"rgb", "rgba"}:
            return Colour(*map(float, parts))
        assert (name, parts[0]) == ("color-mix", "in srgb"), value
        first, share = parts[1].rsplit(" ", 1)
        return _mixed(self.of(first), self.of(parts[2]), float(share.removesuffix("%")) / 100)


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    alpha = one.alpha * share + other.alpha * (1 - share)
    rgb = [
        (x * one.alpha * share + y * other.alpha * (1 - share)) / alpha for x, y in zip(one.rgb, other.rgb, strict=True)
    ]
    return Colour(*rgb, alpha)


def _split(inner: str) -> list[str]:
    """What stands between commas that are in no brackets of their own."""
    parts, depth = [""], 0
    for char in inner:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]
