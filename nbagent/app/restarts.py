"""Tells a new conversation which cells of the notebook ran in an earlier kernel: their variables are gone.

The numbers and outputs in a notebook outlive its kernel, so they look as if everything were there. Read `gone_with`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Cell, Notebook
from nbagent.tools.cells import starts_agent

_NAMED = 12
_LOADS = "%load_ext nbagent"


async def gone_with(notebook: Notebook | None, shell: Any) -> str:
    """Return a sentence for the model about cells that did not run in this kernel, "" where all did."""
    if notebook is None or notebook.proposes_only:
        return ""
    try:
        cells = await notebook.cells()
    except NotebookError:
        return ""
    history: Sequence[str] = shell.history_manager.input_hist_raw
    return said_of([cell for cell in cells if cell.type == "code" and cell.number is not None], history)


def said_of(ran: Sequence[Cell], history: Sequence[str]) -> str:
    """Return the sentence for executed cells, and what this kernel has run, by number from 1 on ([0] is nothing)."""
    ran = [cell for cell in ran if not starts_agent(cell.source) and cell.source.strip() != _LOADS]
    here = {source.strip() for source in history}
    known = [cell for cell in ran if cell.source.strip() in here and not cell.source.lstrip().startswith("%")]
    late = [cell for cell in ran if (cell.number or 0) >= len(history)]  # this kernel has not come so far
    gone = late if known else ran
    if not gone:
        return ""
    named = ", ".join(f"In[{cell.number}] (cell {cell.id})" for cell in gone[:_NAMED])
    more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    return (
        "The kernel was restarted, or is another one, since these cells ran: the variables that they made are gone unless "
        f"they were made anew. {named}{more}. Look at what is there (list_variables) before you use it."
    )
