"""Merges three versions of a notebook cell by cell, by the ids of cells, as a pure function.

Why not nbdime (4.0.4, tried): it pairs cells by likeness and not by id, so that a cell which one side moved and the other
edited comes out twice under one id; cells that both sides added at one place are a conflict, which is what a team does all
day; conflicts are written into the notebook as cells and outputs with marks; an edited cell gets the other side's outputs
of the old source. And it brings GitPython, jupyter-server and requests along (1.4 s to import).

Here a cell is a unit: its source, outputs, count and attachments come from one side together, so that no output stands
under code that did not make it. Only sources conflict, never outputs, counts or metadata. Cells without ids (before
nbformat 4.5) are paired by their text first. Read `merge_notebooks`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from nbagent.core.messages import Json
from nbagent.extend.cellkeys import Key, keyed, source_of
from nbagent.extend.cellorder import merged_order
from nbagent.extend.conflicts import Conflict, Hunk

_GONE: Any = object()
_RUN = ("outputs", "execution_count")
_WAYS = ((1, False), (2, False), (None, False), (1, True), (4, False), (2, True), (None, True))


@dataclass(frozen=True, slots=True)
class CellConflict:
    """A cell that both sides changed: its id ("" where cells have none), its place from 1, and the three sources.

    None: the cell is not there.
    """

    id: str
    place: int
    base: str | None
    ours: str | None
    theirs: str | None


def merge_notebooks(
    base: Json, ours: Json, theirs: Json, side: Literal["ours", "theirs"] | None = None
) -> tuple[Json, tuple[CellConflict, ...]]:
    """Return the merge of three notebooks (nbformat 4, as JSON) and the cells that both sides changed.

    `side` is what counts for such cells; without it the merged notebook has ours there, and they are reported.
    """
    keys = keyed([base.get("cells", []), ours.get("cells", []), theirs.get("cells", [])])
    was, our, their = keys
    conflicts: list[CellConflict] = []
    cells: dict[Key, Json] = {}
    places = {key: place for one in (their, our) for place, key in enumerate(one, 1)}
    for key in dict.fromkeys([*was, *our, *their]):
        b, o, t = was.get(key), our.get(key), their.get(key)
        told = _cell(b, o, t)
        if told is _GONE:
            conflicts.append(_conflict(places.get(key, 0), b, o, t))
            told = t if side == "theirs" else o
            if told is None and side is None:
                told = t
        if told is not None:
            cells[key] = told
    order = merged_order(list(was), list(our), list(their), cells)
    merged = _top(base, ours, theirs)
    merged["cells"] = _with_ids([cells[key] for key in order], int(merged.get("nbformat_minor", 0)))
    return merged, () if side else tuple(conflicts)


def merge_files(
    path: str, base: bytes | None, ours: bytes, theirs: bytes, side: Literal["ours", "theirs"] | None
) -> bytes | Conflict | None:
    """Merge three versions of a notebook file; None where one of them is no notebook. Written in the way that ours is."""
    read = [_read(data) for data in (base or b'{"nbformat": 4, "cells": []}', ours, theirs)]
    if read[1] is None or read[2] is None:
        return None
    was = read[0] or {"nbformat": 4, "cells": []}
    merged, cells = merge_notebooks(was, read[1], read[2], side)
    if not cells:
        return _written(merged, ours, read[1])
    hunks = tuple(Hunk(_where(c), c.base or "", c.ours or "", c.theirs or "") for c in cells)
    texts = [None if data is None else data.decode("utf-8", "replace") for data in (base, ours, theirs)]
    return Conflict(path, texts[0], texts[1], texts[2], hunks=hunks)


def problem_of(data: bytes) -> str:
    """Return why data is no notebook that can be merged, "" where it is one."""
    return "" if _read(data) is not None else "it is not the JSON of a notebook in format 4"


def _where(cell: CellConflict) -> str:
    name = f"cell {cell.place}" + (f" (id {cell.id})" if cell.id else "")
    return f"{name}, deleted on one side" if cell.ours is None or cell.theirs is None else name


# ── one cell ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cell(base: Json | None, ours: Json | None, theirs: Json | None) -> Any:
    """Return the merged cell, None where it is deleted, `_GONE` where nobody can say."""
    if ours is None or theirs is None:
        left = ours if theirs is None else theirs
        if base is None or left is None:
            return left
        return None if _same(left, base) else _GONE
    if _same(ours, theirs):
        return _finished(ours if _run(theirs) == _run(base) else theirs, base, ours, theirs)
    if base is not None and _same(ours, base):
        return _finished(theirs, base, ours, theirs)
    if base is not None and _same(theirs, base):
        return _finished(ours, base, ours, theirs)
    return _GONE


def _same(one: Json, other: Json) -> bool:
    """Whether two versions of a cell say the same, whatever came out of them."""
    return (
        one.get("cell_type") == other.get("cell_type")
        and source_of(one) == source_of(other)
        and (one.get("attachments") or {}) == (other.get("attachments") or {})
    )


def _run(cell: Json | None) -> list[Any]:
    return [(cell or {}).get(name) or None for name in _RUN]


def _finished(chosen: Json, base: Json | None, ours: Json, theirs: Json) -> Json:
    """Return the chosen side of a cell with the metadata of both, and with an id if one of them has one."""
    told = [cast("Json", (one or {}).get("metadata") or {}) for one in (base, ours, theirs)]
    cell = {**chosen, "metadata": _dicts(*told)}
    names = [one["id"] for one in (chosen, ours, theirs) if one.get("id")]
    return _named(cell, names[0]) if names else cell


def _named(cell: Json, name: str) -> Json:
    """Return a cell with this id, its keys in their order."""
    if cell.get("id") == name:
        return cell
    named = {**cell, "id": name}
    return dict(sorted(named.items())) if list(cell) == sorted(cell) else named


def _dicts(base: Json, ours: Json, theirs: Json) -> Json:
    """Merge three objects key by key; where both sides changed one, theirs counts."""
    merged: Json = {}
    for key in dict.fromkeys([*ours, *theirs]):
        b, o, t = (one.get(key, _GONE) for one in (base, ours, theirs))
        if isinstance(o, dict) and isinstance(t, dict):
            merged[key] = _dicts(cast("Json", b) if isinstance(b, dict) else {}, cast("Json", o), cast("Json", t))
        elif (value := o if _equal(t, b) else t) is not _GONE:
            merged[key] = value
    return merged


def _equal(one: Any, other: Any) -> bool:
    return one is other or (one is not _GONE and other is not _GONE and one == other)


def _conflict(place: int, base: Json | None, ours: Json | None, theirs: Json | None) -> CellConflict:
    texts = [None if cell is None else source_of(cell) for cell in (base, ours, theirs)]
    name = next((str(cell["id"]) for cell in (ours, theirs, base) if cell is not None and "id" in cell), "")
    return CellConflict(name, place, *texts)


# ── the notebook around them ─────────────────────────────────────────────────────────────────────────────────────────


def _top(base: Json, ours: Json, theirs: Json) -> Json:
    """Return all of a notebook but its cells."""
    told = [{key: value for key, value in one.items() if key != "cells"} for one in (base, ours, theirs)]
    merged = _dicts(*told)
    merged = {key: merged.get(key) for key in ours if key == "cells" or key in merged} | merged
    minors = [one.get("nbformat_minor") for one in (ours, theirs)]
    if found := [minor for minor in minors if isinstance(minor, int)]:
        merged["nbformat_minor"] = max(found)
    return merged


def _with_ids(cells: Sequence[Json], minor: int) -> list[Json]:
    """Return the cells with an id each, where the format of the notebook has them, and with no id twice."""
    if minor < 5:
        return list(cells)
    used: set[str] = set()
    named: list[Json] = []
    for cell in cells:
        name = str(cell.get("id") or "")
        turn = 0
        while not name or name in used:
            name = hashlib.sha256(f"{turn}\0{source_of(cell)}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
            turn += 1
        used.add(name)
        named.append(_named(cell, name))
    return named


def _read(data: bytes) -> Json | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, Mapping) or found.get("nbformat") != 4:
        return None
    cells: Any = found.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return None
    return cast("Json", found)


def _written(notebook: Json, like: bytes, told: Json) -> bytes:
    """Return the text of a notebook, with the indent, escapes and last line end of the file `like`, which says `told`."""
    end = "\n" if like.endswith(b"\n") else ""
    text = like.decode("utf-8", "replace")
    for indent, ascii_only in _WAYS:
        if json.dumps(told, indent=indent, ensure_ascii=ascii_only) == text.rstrip("\n"):
            return (json.dumps(notebook, indent=indent, ensure_ascii=ascii_only) + end).encode("utf-8", "surrogatepass")
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + end).encode("utf-8", "surrogatepass")
