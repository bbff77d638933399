"""Brings a new version of a notebook file into the notebook that is open, cell by cell, through its port.

A file must not change under a page that has it open. Read `bring_in`. It must not know where the version comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from nbagent.core.messages import Json
from nbagent.core.ports import Anchor, CellType, Notebook, source_hash
from nbagent.extend.cellkeys import source_of


async def bring_in(notebook: Notebook, before: Json, after: Json) -> int:
    """Make the open notebook, which is as `before`, as `after`; return how many cells changed, and save it.

    Cells are known by their ids. Raises `NotebookError`, as the port does, where a cell is no longer as in `before`.
    """
    was = {str(cell.get("id")): cell for cell in cast("list[Json]", before.get("cells", []))}
    will = [cell for cell in cast("list[Json]", after.get("cells", [])) if cell.get("id")]
    names = [str(cell["id"]) for cell in will]
    count = 0
    for place, cell in enumerate(will):
        old = was.get(names[place])
        changed = await _placed(notebook, names, place, cell, old)
        if old is None or source_of(old) != source_of(cell):
            changed = True
        elif cell.get("cell_type") == "code" and names[place] != notebook.own_cell and _run(old) != _run(cell):
            await _outputs(notebook, cell)
            changed = True
        count += changed
    for name in [name for name in was if name not in names]:  # last: a place in an empty notebook has no name
        if name != notebook.own_cell:  # the cell that asks for it can't go
            await notebook.delete(name, source_hash(source_of(was[name])))
            count += 1
    await notebook.save()
    return count


async def _placed(notebook: Notebook, names: Sequence[str], place: int, cell: Json, old: Json | None) -> bool:
    """See that a cell is there with its source, after the one before it; return whether it was moved."""
    name, source, kind = names[place], source_of(cell), cast("CellType", str(cell.get("cell_type")))
    if old is not None and old.get("cell_type") != kind:
        await notebook.delete(name, source_hash(source_of(old)))
        old = None
    every = [one.id for one in await notebook.cells()]
    now = [one for one in every if one in names]
    anchor = Anchor(names[place - 1]) if place else Anchor([*now, *every][0], "before")
    if old is None:
        await notebook.insert(anchor, kind, source, metadata=cell.get("metadata") or None, cell_id=name)
        if kind == "code":
            await _outputs(notebook, cell)
        return False
    if source_of(old) != source:
        await notebook.edit(name, source, source_hash(source_of(old)))
        if kind == "code":
            await _outputs(notebook, cell)
    right = now.index(name) == (now.index(names[place - 1]) + 1 if place else 0)
    if not right:
        await notebook.move(name, anchor)
    return not right


async def _outputs(notebook: Notebook, cell: Json) -> None:
    outputs = cast("list[Any]", cell.get("outputs") or [])
    await notebook.set_outputs(str(cell["id"]), outputs, cell.get("execution_count"))


def _run(cell: Json) -> tuple[Any, Any]:
    return cell.get("outputs") or [], cell.get("execution_count")
