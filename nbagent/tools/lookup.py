"""Looks up whether what earlier runs read is still the same: the inputs as they are now, each looked at once.

One `Lookup` serves all runs that a cell's text finds: a file or variable that several of them read is hashed once, and
what is kept of it is its fingerprint, never its content. Files are read on another thread; variables are looked at on
the loop's, which is where code of the person's runs. Read `Lookup.differences`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nbagent.core.messages import Json
from nbagent.tools.fingerprints import WHOLE, Fingerprint, difference, fingerprint, surface
from nbagent.tools.inputs import MATCHES, matching, of_file


class Lookup:
    """The inputs as they are now: the variables of `namespace`, the files of `root`."""

    def __init__(self, namespace: Mapping[str, Any], root: Path) -> None:
        self._namespace, self._root = namespace, Path(os.path.realpath(root))
        self._values: dict[tuple[str, str], Fingerprint] = {}
        self._files: dict[tuple[str, int], Fingerprint | None] = {}
        self._listings: dict[tuple[str, str], frozenset[str]] = {}

    async def differences(self, kept: Json) -> list[str]:
        """Return in words what of `kept` (`Inputs.to_json`) is different now, variables first; [] where nothing is.

        Raises KeyError, TypeError or ValueError where `kept` is no such object.
        """
        told = list(self._of_variables(kept))
        for name, data in kept["files"].items():
            then = Fingerprint.from_json(data)
            told.append(_file_difference(name, then, await self._file(name, 0 if then.weak else WHOLE)))
        written = set(kept["written"])
        for folder, pattern, names in kept["listings"]:
            now = await self._listing(folder, pattern)
            told += [f"{name} is new" for name in sorted(now - set(names) - written)]
            told += [f"{name} is gone" for name in sorted(set(names) - now - written)]
        return list(dict.fromkeys(text for text in told if text))

    def _of_variables(self, kept: Json) -> Iterator[str]:
        for table in ("names", "listed"):
            for name, data in kept[table].items():
                then = Fingerprint.from_json(data)
                if name not in self._namespace:
                    yield f"{name} does not exist now"
                    continue
                if (table, name) not in self._values:
                    value = self._namespace[name]
                    now = fingerprint(name, value, self._root) if table == "names" else surface(name, value)
                    self._values[table, name] = now
                yield difference(name, then, self._values[table, name])

    async def _file(self, name: str, most: int) -> Fingerprint | None:
        if (name, most) not in self._files:  # one at a time: memory stays one piece, and Stop waits for one at most
            self._files[name, most] = await asyncio.to_thread(_of_file, self._root / name, most)
        return self._files[name, most]

    async def _listing(self, folder: str, pattern: str) -> frozenset[str]:
        if (folder, pattern) not in self._listings:
            found = await asyncio.to_thread(matching, self._root, folder, pattern)
            self._listings[folder, pattern] = frozenset(found[:MATCHES])
        return self._listings[folder, pattern]


def _of_file(path: Path, most: int) -> Fingerprint | None:
    return of_file(path, most=most) if path.is_file() else None


def _file_difference(name: str, then: Fingerprint, now: Fingerprint | None) -> str:
    if now is None:
        return f"{name} is gone"
    if then.digest == now.digest:
        return ""
    before, after = then.facets.get("bytes", 0), now.facets.get("bytes", 0)
    return f"{name} changed" + (f": {before:,} bytes then, {after:,} now" if before != after else "")
