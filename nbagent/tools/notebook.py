"""The cell tools: the model reads, adds, changes, moves, deletes and runs cells of the open notebook.

Those that only read are here; celledits.py changes cells, cellruns.py runs them, and bound.py holds what all share and
promise. This module must not know which host holds the notebook. Read `tools` first.
"""

from __future__ import annotations

from nbagent.core.messages import text_block
from nbagent.core.ports import Cell, Kernel, Notebook
from nbagent.core.tools import Call, Result, Tool, tool
from nbagent.tools.bound import Bound
from nbagent.tools.celledits import edit_tools
from nbagent.tools.cellruns import run_tools
from nbagent.tools.cells import notes, overview
from nbagent.tools.data.pictures import Pictures
from nbagent.tools.lasting import LastingCode
from nbagent.tools.ledger import Ledger
from nbagent.tools.marks import is_stale
from nbagent.tools.seen import Seen
from nbagent.tools.times import RunTimes


def tools(
    notebook: Notebook,
    kernel: Kernel,
    *,
    timeout: float | None,
    seen: Seen | None = None,
    ledger: Ledger | None = None,
    times: RunTimes | None = None,
    pictures: Pictures | None = None,
    lasting: LastingCode | None = None,
) -> list[Tool]:
    """Return the eight cell tools of one run in one open notebook.

    Args:
        notebook: the notebook that the run is bound to.
        kernel: where its code runs.
        timeout: how many seconds one cell may run (None: as long as it takes).
        seen: what the model has seen of the cells; a conversation hands it on from run to run.
        ledger: is told what happens to cells; its `closing` sentence ends the run.
        times: how long cells took in this kernel; as long-lived as the kernel.
        pictures: draws the figures of outputs; as long-lived as the kernel. Without it interactive ones are told in words.
        lasting: the run's code that may be under way while its model thinks. Without it each call waits for its code.
    """
    bound = Bound(
        notebook,
        kernel,
        timeout=timeout,
        seen=seen if seen is not None else Seen(),
        ledger=ledger if ledger is not None else Ledger(),
        times=times if times is not None else RunTimes(),
        pictures=pictures,
        lasting=lasting,
    )
    return [*_reading(bound), *edit_tools(bound), *run_tools(bound)]


def _reading(bound: Bound) -> list[Tool]:
    notebook, seen = bound.notebook, bound.seen

    @tool(title=lambda _: "read the notebook")
    async def read_notebook(_call: Call, start: int = 1, limit: int = 100) -> Result:
        """List the cells in order: id, type, In[n], source and outputs in a line each. Long sources are shortened.

        Args:
            start: place of the first cell to show, counted from 1.
            limit: how many cells to show.
        """
        every = await bound.listed()
        start, limit = max(start, 1), max(limit, 1)
        page = [await notebook.read(cell.id) if cell.type == "code" else cell for cell in every[start - 1 :][:limit]]
        text, whole = overview(page, total=len(every), own=notebook.own_cell, took=bound.times.told)
        for cell in whole:
            seen.learn(cell)
        rest = len(every) - (start - 1 + len(page))
        if rest > 0:
            text += f"\n\n… {rest} more: read_notebook(start={start + len(page)})"
        return Result((text_block(text),), f"{len(page)} of {len(every)} cells")

    @tool(title=lambda given: f"read {seen.label(given['cell'])}")
    async def read_cell(_call: Call, cell: str) -> Result:
        """Read one cell: its whole source and its outputs, images included. Read a cell before you edit or run it.

        Args:
            cell: the cell's id, as read_notebook shows it (not In[n]).
        """
        found = await bound.read(cell)
        seen.learn(found)
        number = f" In[{found.number}]" if found.number is not None else ""
        about = notes(found, notebook.own_cell, bound.times.told(found))
        head = f"Cell {found.id} ({found.type}{number}){about}, source:\n{found.source or '(empty)'}"
        if found.type != "code":
            return Result((text_block(head),), seen.label(found.id))
        said = await bound.blocks(found.outputs) if found.outputs else [text_block("(no output)")]
        return Result((text_block(f"{head}\n\n{_outputs_of(found)}"), *said), seen.label(found.id))

    return [read_notebook, read_cell]


def _outputs_of(cell: Cell) -> str:
    return "Outputs, stale (from before the last edit; the cell has not run since):" if is_stale(cell) else "Outputs:"
