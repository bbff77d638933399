"""Cells that calls add, edit and run are told to hooks, whichever tool did it."""

from __future__ import annotations

import pytest

from nbagent.core.payloads import CellAdded, CellEdited, CellRun
from nbagent.core.ports import Anchor, source_hash
from nbagent.extend.hooks_cells import WatchedNotebook
from nbagent.headless.memory import MemoryNotebook
from tests.conformance.notebook_kit import NotebookHost, promise_name, promises
from tests.tools.desk import raw


@pytest.mark.slow
@pytest.mark.parametrize("promise", promises(), ids=promise_name)
async def test_a_watched_notebook_keeps_the_promises_of_the_one_that_it_watches(promise):
    memory = MemoryNotebook([raw("first", "# first", number=1)])

    async def user_edit(cell_id: str, source: str) -> None:
        next(cell for cell in memory.cells_ if cell["id"] == cell_id)["source"] = source

    await promise(NotebookHost(WatchedNotebook(memory), user_edit))


async def test_cell_added_edited_and_run_are_told_in_order_and_once():
    watched = WatchedNotebook(MemoryNotebook([raw("c1", "1")], path="a.ipynb"))
    new = await watched.insert(Anchor("c1"), "code", "2")
    await watched.edit("c1", "x", source_hash("1"))
    sink = await watched.begin_run("c1")
    sink.emit({"output_type": "error", "ename": "NameError", "evalue": "x", "traceback": []})
    await sink.end(7)
    where = {"cell_type": "code", "notebook_path": "a.ipynb"}
    assert watched.take() == (
        CellAdded(cell_id=new.id, source="2", **where),
        CellEdited(cell_id="c1", source="x", old_source="1", **where),
        CellRun(cell_id="c1", source="x", status="error", error="NameError: x", execution_count=7, **where),
    )
    assert watched.take() == ()


async def test_an_edit_that_changes_nothing_and_what_is_only_proposed_are_no_deeds():
    watched = WatchedNotebook(MemoryNotebook([raw("c1", "1")]))
    await watched.edit("c1", "1", source_hash("1"), metadata={"tags": ["x"]})
    await watched.set_metadata("c1", {"tags": []})
    assert watched.take() == ()
    proposing = WatchedNotebook(MemoryNotebook([raw("c1", "1")], proposes_only=True))
    await proposing.insert(Anchor("c1"), "code", "2")
    assert proposing.take() == ()
