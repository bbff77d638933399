"""Pictures that a text cell shows, put into its text as data: attachments, and files beside the notebook.

Nothing is loaded from the network, and no file from outside of the notebook's folder. Read `embedded`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_PICTURE = re.compile(r"!\[(?P<alt>[^\]\n]*)\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"\n]*\")?\s*\)")
_HTML = re.compile(r"<img\b[^>\n]*?\bsrc\s*=\s*[\"'](?P<target>[^\"'\n]+)[\"'][^>\n]*>", re.IGNORECASE)
_ALT = re.compile(r"\balt\s*=\s*[\"']([^\"'\n]*)[\"']", re.IGNORECASE)
_KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp", ".svg": "svg+xml"}
_LARGEST = 8_000_000
_FENCE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)


def embedded(text: str, attachments: Mapping[str, Any], folder: Path | None) -> str:
    """Return Markdown with its pictures as data, as far as they can be had; others stay what they were.

    Without `folder` files stay links, as a page beside them can show them.
    """

    def data(target: str) -> str:
        if target.startswith("attachment:"):
            return _attached(attachments.get(unquote(target.removeprefix("attachment:"))))
        return _file(unquote(target), folder) if folder is not None else ""

    def markdown(match: re.Match[str]) -> str:
        found = data(match["target"])
        return f"![{match['alt']}]({found})" if found else match[0]

    def html(match: re.Match[str]) -> str:
        alt = found[1] if (found := _ALT.search(match[0])) else ""
        return f"![{alt}]({data(match['target']) or match['target']})"

    parts = _FENCE.split(text)
    return "".join(part if n % 2 else _PICTURE.sub(markdown, _HTML.sub(html, part)) for n, part in enumerate(parts))


def _attached(bundle: Any) -> str:
    if not isinstance(bundle, Mapping):
        return ""
    for kind, value in bundle.items():
        if str(kind).removeprefix("image/") in _KINDS.values():
            text = "".join(value) if isinstance(value, list) else str(value)
            if kind == "image/svg+xml" and text.lstrip().startswith("<"):
                text = base64.b64encode(text.encode()).decode()
            return f"data:{kind};base64,{''.join(text.split())}"
    return ""


def _file(target: str, folder: Path) -> str:
    """Return a picture file of the notebook's folder as data; "" for anything else."""
    if "://" in target or target.startswith(("/", "~", "data:", "//")) or ":" in target[:3]:
        return ""
    kind = _KINDS.get(Path(target).suffix.lower())
    try:
        path = (folder / target).resolve()
        inside = path.is_relative_to(folder.resolve()) and not any(
            part.startswith(".") for part in path.relative_to(folder.resolve()).parts
        )
        if not kind or not inside or not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    except (OSError, ValueError):
        return ""
