"""What cells say about themselves, in a real page: kept, written by an agent, with outputs from before an edit; run all asks with its list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)

OLD = "Outputs from before the last edit"


async def test_a_kept_cell_is_edited_its_outputs_are_marked_as_old_and_running_it_is_asked_about(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay("print('old')", "%agent keep", "after = 1")
    await notebook.run(1)
    await notebook.run(2)
    await notebook.see(2, "is marked")
    ids: list[str] = await notebook.js("return shared().cells.map(cell => cell.getId())")
    number = await notebook.count(1)
    agent = await desk.ask(calls("read_notebook"), calls("edit_cell", cell=ids[1], source="print('new')"))
    await expect(desk.card(agent)).to_contain_text(f"edit In[{number}]")
    desk.server.push(calls("run_cell", cell=ids[1]))
    await desk.approve(agent)
    await expect(desk.card(agent)).to_contain_text("marked “don't rerun”")
    assert (await notebook.sources())[1] == "print('new')"
    assert await notebook.count(1) == number
    await expect(notebook.output(1)).to_contain_text(OLD)
    await expect(notebook.output(1)).to_contain_text("old")
    # the run saves before it asks: two saves at once, and JupyterLab asks which of them counts
    await notebook.js(
        "while (panel().context.model.dirty) await new Promise(done => setTimeout(done, 50)); return true"
    )
    saved = notebook.saved().cells[1]
    assert saved.metadata.nbagent.keep is True and saved.metadata.nbagent.stale is True
    assert {"session", "run", "call"} < saved.metadata.nbagent.keys()
    assert saved.outputs[0].metadata.nbagent.stale is True

    desk.server.push(calls("run_all", first=ids[1], last=ids[3]))
    await desk.approve(agent)
    await expect(desk.card(agent)).to_contain_text("run 1 cell")
    await expect(desk.card(agent)).to_contain_text("left out: marked “don't rerun”")
    assert (await notebook.text(1)).strip() == "new"
    desk.server.push(say("All done."))
    await desk.approve(agent)
    await desk.done()
    assert "Ran 1 of 1 cell" in desk.results(-1)
    await notebook.see(agent, "Ran after the last edit: In[")
    saved = (await notebook.save()).cells[1]
    assert "stale" not in saved.metadata.nbagent and saved.metadata.nbagent.keep is True
