"""Which cells of several versions of a notebook are the same cell: by their ids, or by their text where they have none.

Must not know how cells are merged. Read `keyed`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from nbagent.core.messages import Json

Key = tuple[str, str, int]
"""What a cell is known by: "id", "text" or "place"; its id or text; and which one it is of several that have the same."""
_LIKE = 0.5  # how like two texts must be to be versions of one cell


def keyed(versions: Sequence[Sequence[Json]]) -> tuple[dict[Key, Json], ...]:
    """Return the cells of each version by keys; the first is the one that the others came from.

    A cell without an id has the key of the cell of the first version that it is paired with, else one of its own text.
    """
    first = _own(versions[0])
    return (first, *(_paired(first, version) for version in versions[1:]))


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the text of a cell, which may be stored as a list of lines."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _own(cells: Sequence[Json]) -> dict[Key, Json]:
    found: dict[Key, Json] = {}
    for cell in cells:
        found[_new_key(cell, found)] = cell
    return found


def _new_key(cell: Json, taken: Mapping[Key, Any]) -> Key:
    """Return the key of a cell that has none yet; ids that are there twice are told apart."""
    kind, name = ("id", str(cell["id"])) if cell.get("id") else ("text", f"{cell.get('cell_type')}\0{source_of(cell)}")
    turn = 0
    while (kind, name, turn) in taken:
        turn += 1
    return kind, name, turn


def _paired(first: Mapping[Key, Json], cells: Sequence[Json]) -> dict[Key, Json]:
    """Return cells by the keys of the first version where they are its cells."""
    pairs: dict[int, Key] = {}
    for place, cell in enumerate(cells):
        key = _new_key(cell, dict.fromkeys(pairs.values()))
        if cell.get("id") and key in first:
            pairs[place] = key
    left = [place for place in range(len(cells)) if place not in pairs]
    free = [key for key in first if key not in set(pairs.values())]
    # where both have ids they say all: only cells of which one has none are compared by their text
    nameless = [key for key in free if key[0] != "id"]
    for places, keys in (
        ([place for place in left if not cells[place].get("id")], free),
        ([place for place in left if cells[place].get("id")], nameless),
    ):
        taken = set(pairs.values())
        pairs |= _by_text(first, cells, places, [key for key in keys if key not in taken])
    found: dict[Key, Json] = {}
    reserved = dict.fromkeys([*first, *pairs.values()])
    for place, cell in enumerate(cells):
        key = pairs[place] if place in pairs else _new_key(cell, {**reserved, **found})
        found[key] = cell
    return found


def _by_text(
    first: Mapping[Key, Json], cells: Sequence[Json], places: Sequence[int], keys: Sequence[Key]
) -> dict[int, Key]:
    """Pair cells by their order and their text: those that are the same, then those between them that are alike."""
    texts = [(first[key].get("cell_type"), source_of(first[key])) for key in keys]
    others = [(cells[place].get("cell_type"), source_of(cells[place])) for place in places]
    pairs: dict[int, Key] = {}
    for what, a, b, c, d in difflib.SequenceMatcher(None, texts, others, autojunk=False).get_opcodes():
        if what == "equal":
            pairs |= {places[c + n]: keys[a + n] for n in range(b - a)}
        elif what == "replace":
            pairs |= {places[c + m]: keys[a + n] for n, m in _alike(texts[a:b], others[c:d])}
    # what moved is the same text at another place
    left = {text: key for text, key in zip(texts, keys, strict=True) if key not in pairs.values()}
    for place, text in zip(places, others, strict=True):
        if place not in pairs and text in left:
            pairs[place] = left.pop(text)
    return pairs


def _alike(texts: Sequence[tuple[Any, str]], others: Sequence[tuple[Any, str]]) -> list[tuple[int, int]]:
    """Return which of the texts became which of the others, in order, each the first that is like it."""
    pairs: list[tuple[int, int]] = []
    begin = 0
    for n, (kind, text) in enumerate(texts):
        for m in range(begin, len(others)):
            if others[m][0] == kind and difflib.SequenceMatcher(None, text, others[m][1]).ratio() >= _LIKE:
                pairs.append((n, m))
                begin = m + 1
                break
    return pairs
