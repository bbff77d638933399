"""The person works on while the agent does: what they change is theirs, and what the agent adds lands in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.browser.page import Notebook
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(150)

AGENT = 1
TASK = "%%agent --again\ndo it"  # the records of the other tests lie in the same folder


async def insert(notebook: Notebook, place: int, source: str) -> None:
    """Add a code cell at `place`, as the person does."""
    await notebook.js(f"shared().insertCell({place}, {{cell_type: 'code', source: {source!r}}})")


async def test_what_the_person_writes_between_read_and_edit_is_refused_read_again_and_kept(
    lab: Lab, server: MessagesServer
) -> None:
    """Rows 73, 74: the edit is bound to what was read; the second try knows what the person wrote."""
    async with agent_notebook(lab, server, TASK, "value = 1") as desk:
        notebook = desk.notebook
        server.push(
            calls("read_notebook"),
            calls("edit_cell", cell="cell-2", source="value = 2"),
            calls("read_cell", cell="cell-2"),
            calls("edit_cell", cell="cell-2", source="value = 3  # and the person's", run=True),
            say("Done at the second try."),
        )
        await desk.start(AGENT)
        await expect(notebook.button(AGENT, "Approve")).to_be_enabled()
        await notebook.enter(2)
        await notebook.press("ControlOrMeta+End")
        await notebook.page.keyboard.type("  # the person's")
        await notebook.click(AGENT, "Approve")
        await desk.requests(4)
        assert "changed since you read it" in desk.results(2)
        assert "value = 1  # the person's" in desk.results(3)
        assert (await notebook.sources())[2] == "value = 1  # the person's"
        await expect(desk.card(AGENT)).to_contain_text("value = 3")
        await notebook.click(AGENT, "Approve")
        await desk.done()
        await notebook.see(AGENT, "Done at the second try.")
        assert (await notebook.sources())[AGENT:] == [TASK, "value = 3  # and the person's"]
        assert await notebook.evaluate("value") == "3"


async def test_three_inserts_keep_their_order_while_the_person_adds_moves_and_deletes_cells_between_them(
    lab: Lab, server: MessagesServer
) -> None:
    """Row 71: an insert has an anchor, and the anchor is a cell, wherever it stands by then."""
    async with agent_notebook(lab, server, TASK, "'below'", "'goes'") as desk:
        notebook = desk.notebook
        sources = ["a = 1", "b = 2", "c = 3"]
        server.push(*(calls("add_cell", source=source) for source in sources), say("Three."))
        await desk.start(AGENT)
        await notebook.click(AGENT, "Approve")
        await notebook.until("shared().cells.some((cell) => cell.getSource() === 'a = 1')")
        await expect(desk.card(AGENT)).to_contain_text("b = 2")
        await insert(notebook, AGENT + 1, "'mine, right below the agent'")
        await insert(notebook, AGENT, "'mine, above the agent'")
        await notebook.click(AGENT + 1, "Approve")
        await expect(desk.card(AGENT + 1)).to_contain_text("c = 3")
        last = len(await notebook.sources()) - 1
        await notebook.js(f"shared().deleteCell({last})")
        await notebook.js(f"shared().moveCell({last - 1}, 0)")  # 'below' goes to the top; all else stands one lower
        await notebook.js(f"shared().moveCell({AGENT + 2}, 1)")  # and the agent's own cell goes up, in mid-run
        await notebook.click(1, "Approve")
        await desk.done()
        await notebook.see(1, "Three.")
        after = await notebook.sources()
        assert after[0] == "'below'"
        assert after[1] == TASK
        assert [source for source in after if source in sources] == sources
        assert [source for source in after if "mine" in source] == [
            "'mine, above the agent'",
            "'mine, right below the agent'",
        ]
        assert "'goes'" not in after
        assert await notebook.evaluate("(a, b, c)") == "(1, 2, 3)"
