"""`%agent keep`: marks a cell as one that is not run again without asking, such as a training of two hours.

The mark is in the cell's metadata and so stays with the notebook. Read `keep`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbagent.app.document import open_document
from nbagent.core.errors import ConfigError, NotebookError
from nbagent.core.ports import Cell, Notebook
from nbagent.tools.cells import first_line, starts_agent
from nbagent.tools.ledger import label_of
from nbagent.tools.marks import is_kept, keeping

if TYPE_CHECKING:
    from nbagent.app.extension import Extension

_NUMBER = re.compile(r"(?:In)?\s*\[?\s*(\d+)\s*\]?\Z", re.IGNORECASE)
_USAGE = (
    "%agent keep marks the cell that ran last, %agent keep 7 marks In[7]; with off at the end it takes the mark away."
)


async def keep(extension: Extension, rest: str) -> str:
    """Carry out `%agent keep [N] [off]` in the open notebook and return what to say."""
    wanted = read(rest)
    async with open_document(extension.shell) as notebook:
        try:
            return await mark(notebook, *wanted)
        except NotebookError as error:
            raise ConfigError(f"%agent keep: {error}.") from None


def read(rest: str) -> tuple[int | None, bool]:
    """Return the number (None: the cell that ran last) and whether to set the mark; raises `ConfigError`."""
    words = rest.split()
    on = not (words and words[-1].lower() == "off")
    if words and words[-1].lower() in {"on", "off"}:
        words.pop()
    if not words:
        return None, on
    found = _NUMBER.match(" ".join(words))
    if found is None:
        raise ConfigError(f"%agent keep: {' '.join(words)!r} is not the number of a cell. {_USAGE}")
    return int(found[1]), on


async def mark(notebook: Notebook, number: int | None, on: bool) -> str:
    """Set or take away the mark of one cell and return what to say; raises `ConfigError` where there is none."""
    cell = choose(await notebook.cells(), number, own=notebook.own_cell)
    known = f"{label_of(cell)} ({first_line(cell.source, 40)})"
    if is_kept(cell) == on:
        return f"{known} is {'marked' if on else 'not marked'} already."
    await notebook.set_metadata(cell.id, keeping(cell, on=on))
    await notebook.save()
    if on:
        return f"{known} is marked: agents ask you before they run it again. %agent keep {cell.number} off takes that back."
    return f"{known} is no longer marked."


def choose(cells: Sequence[Cell], number: int | None, *, own: str | None) -> Cell:
    """Return the code cell In[`number`], or the one that ran last; never an agent's."""
    ran = [c for c in cells if c.type == "code" and c.number is not None and c.id != own and not starts_agent(c.source)]
    if number is None:
        if not ran:
            raise ConfigError(f"No cell of this notebook has run yet. {_USAGE}")
        return max(ran, key=lambda cell: cell.number or 0)
    found = [cell for cell in ran if cell.number == number]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"Two cells are In[{number}]: run the one that you mean, then use %agent keep right after it."
        )
    there = ", ".join(f"In[{cell.number}]" for cell in sorted(ran, key=lambda cell: cell.number or 0)[-8:]) or "none"
    raise ConfigError(f"There is no cell In[{number}]. Cells that ran: {there}.")
