"""`%%agent --trace` in a real page: the loop's view while the run waits for a person, what a step changes in it, and the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import Reply, call, calls

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(120)


async def test_the_loop_is_seen_live_and_its_picture_stays_in_the_record(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, "x = 1") as desk:
        notebook = desk.notebook
        agent = await desk.ask(
            calls("list_variables"),
            Reply(
                [{"type": "text", "text": "I add <b>a cell</b>."}, call("add_cell", source="y = x + 1\ny", run=True)]
            ),
            "y is **2**.",
            line="--trace",
            task="Add one to x",
        )
        await expect(notebook.button(agent, "Approve")).to_be_enabled()
        loop = notebook.output(agent).locator(".nbagent-loop")
        await expect(loop.locator("svg")).to_have_attribute(
            "aria-label",
            "The loop is in Act, turn 2. Walked so far, in 2 turns: Start → Think → Act → Observe → Think → Act.",
        )
        await expect(loop.locator(".nbl-lit").first).to_contain_text("ApprovalAsked")
        await expect(loop.locator(".nbl-transcript .nbl-said")).to_have_count(4)
        await expect(loop.locator(".nbl-new")).to_have_count(2)
        await expect(loop.locator(".nbl-new").last).to_contain_text("I add <b>a cell</b>.")
        await notebook.screenshot("loop-live")
        await notebook.button(agent, "Approve").click()
        await desk.done()
        picture = notebook.output(agent).locator('img[src^="data:image/svg+xml"]')
        await expect(picture).to_be_visible()
        assert await picture.evaluate("e => e.complete && e.naturalWidth > 300")
        await expect(notebook.output(agent).locator("table")).to_contain_text("end_turn")
        assert await notebook.page.locator(".nbagent-loop").count() == 0, "nothing live is left"
