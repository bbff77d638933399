"""Whether two images look the same: their sizes, and their pixels with a tolerance for what rendering leaves open.

Pillow is imported when two images differ byte by byte, not before. Read `images_differ`.
"""

from __future__ import annotations

import base64
import binascii
import io

PIXELS = 20_000_000
"""Pixels of an image up to which two are compared; larger ones must be equal byte by byte."""
SHADE = 24
"""Difference of a colour (of 255) from which a pixel counts as another one."""
SHARE = 0.002
"""Share of other pixels up to which two images count as one."""


def images_differ(one: str, other: str) -> str:
    """Return in a few words how two images (base64) differ, "" where they look the same."""
    if one == other:
        return ""
    from PIL import Image, ImageChops  # noqa: PLC0415  (only where they differ)

    try:
        first, second = (Image.open(io.BytesIO(base64.b64decode(data))) for data in (one, other))
        if first.size != second.size:
            return f"another image: {second.size[0]}x{second.size[1]} in place of {first.size[0]}x{first.size[1]}"
        if first.size[0] * first.size[1] > PIXELS:
            return "another image"
        changed = ImageChops.difference(first.convert("RGB"), second.convert("RGB")).convert("L")
    except (OSError, ValueError, binascii.Error, SyntaxError, Image.DecompressionBombError):
        return "another image, and one of them can't be read"
    counts = changed.histogram()
    share = sum(counts[SHADE:]) / max(1, first.size[0] * first.size[1])
    return "" if share <= SHARE else f"another image: {share:.1%} of its pixels differ"
