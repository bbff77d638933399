"""Which cell, output or variable a person means: `cell 7`, `In[7]`, `output 3`, `@cell:7`, an id, "the one above".

Pure functions of a notebook's cells. Must not know what is done with them. Read `cell_meant`, then `cells_meant`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nbagent.core.errors import ConfigError
from nbagent.core.ports import Cell
from nbagent.tools.cells import first_line, starts_agent

_NUMBER = re.compile(r"@?(?:cell:|in|out)?\s*\[?(\d+)\]?", re.IGNORECASE)
_SPLIT = re.compile(r"[,\s]+")
_LISTED = 12


def cell_meant(given: str, cells: Sequence[Cell]) -> Cell | None:
    """Return the cell that `given` names: the number of its last run, or an id (its beginning, if no other begins so).

    A number that no cell ran under counts from the top, as people do in a notebook that has not run. None for anything else.
    """
    text = given.strip().removeprefix("@cell:").removeprefix("#")
    exact = [cell for cell in cells if cell.id == text]
    if exact:
        return exact[0]
    if found := _NUMBER.fullmatch(given.strip()):
        number = int(found[1])
        ran = [cell for cell in cells if cell.number == number]
        if ran:
            return ran[-1]
        never = all(cell.number is None for cell in cells if cell.type == "code")
        return cells[number - 1] if never and 0 < number <= len(cells) else None
    begun = [cell for cell in cells if len(text) >= 4 and cell.id.startswith(text)]
    return begun[0] if len(begun) == 1 else None


def cell_named(given: str, cells: Sequence[Cell]) -> Cell:
    """Return the cell that `given` names; raises `ConfigError` with those that there are."""
    found = cell_meant(given, cells)
    if found is None:
        there = ", ".join(name_of(cell) for cell in cells if cell.type == "code")[:300] or "none"
        raise ConfigError(f"There is no cell {given!r}. Cells are named by their number or id; there are: {there}.")
    return found


def cells_meant(words: str, cells: Sequence[Cell]) -> tuple[list[Cell], str]:
    """Return the cells that `words` begin with ("3", "In[3], 5", "cell 3 cells 4-6"), and the words after them."""
    parts = [part for part in _SPLIT.split(words.strip()) if part]
    found: list[Cell] = []
    while parts:
        if parts[0].lower() in {"cell", "cells"} and len(parts) > 1:
            parts.pop(0)
            continue
        first, dash, last = parts[0].partition("-")
        if dash and first.isdigit() and last.isdigit():
            ends = cell_named(first, cells), cell_named(last, cells)
            found += cells[min(ends[0].index, ends[1].index) : max(ends[0].index, ends[1].index) + 1]
        elif (one := cell_meant(parts[0], cells)) is not None:
            found.append(one)
        elif _NUMBER.fullmatch(parts[0]) and not found:
            cell_named(parts[0], cells)
        else:
            break
        parts.pop(0)
    return list({cell.id: cell for cell in found}.values()), " ".join(parts)


def cell_above(cells: Sequence[Cell], own: str | None) -> Cell | None:
    """Return the cell right above the one that runs now, agent cells left out; the last one where that is not known."""
    place = next((cell.index for cell in cells if cell.id == own), len(cells))
    before = [cell for cell in cells if cell.index < place and cell.source.strip() and not starts_agent(cell.source)]
    return before[-1] if before else None


def name_of(cell: Cell) -> str:
    """Return how people and the model know a cell: In[7], or `cell` and its id where it has not run."""
    return f"In[{cell.number}]" if cell.number is not None else f"cell {cell.id}"


def listed(cells: Sequence[Cell]) -> str:
    """Return a few cells in words."""
    names = [name_of(cell) if cell.type == "code" else f"“{first_line(cell.source, 30)}”" for cell in cells]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
