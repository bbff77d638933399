"""Makes one ES module of the plain JavaScript files in a folder: a widget's module must stand alone, and files stay short.

No build step and no tool: the files that `entry` imports, by relative paths, are put before it in order, without their
import and export words. So names at the top of the files of one folder must differ. Must not know of widgets. Read
`module`.
"""

from __future__ import annotations

import re
from pathlib import Path

_IMPORT = re.compile(r'^import\s*\{[^}]*\}\s*from\s*"\./([\w.-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const |let |class )", re.MULTILINE)
_CHECK = re.compile(r"^// @ts-check\n", re.MULTILINE)


def module(folder: Path, entry: str) -> str:
    """Return the text of the module `entry` in `folder` with all that it imports from there, each file once."""
    parts: dict[str, str] = {}
    _collect(folder, entry, parts)
    return "\n".join(parts.values())


def _collect(folder: Path, name: str, parts: dict[str, str]) -> None:
    text = (folder / name).read_text("utf-8")
    for imported in _IMPORT.findall(text):
        if imported not in parts:
            _collect(folder, imported, parts)
    parts[name] = _EXPORT.sub("", _IMPORT.sub("", _CHECK.sub("", text)))
