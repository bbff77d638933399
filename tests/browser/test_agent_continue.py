"""Long work in a real JupyterLab: a run that was stopped goes on with one click, the window as a picture, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(180)


async def test_a_run_at_its_limit_goes_on_with_one_click_and_the_window_is_a_picture(
    lab: Lab, server: MessagesServer
) -> None:
    """Row 119: the work is not lost at the limit; then `%agent context`, `%agent compact`, and a run that knows the summary."""
    cells = (
        "%%agent --max-turns 1\nWhat is there?",
        "%agent context",
        "%agent compact keep the count",
        "%%agent\nand now?",
    )
    async with agent_notebook(lab, server, *cells) as desk:
        notebook = desk.notebook
        server.push(calls("list_variables"), say("Done: looked once. Left: the answer."))
        await desk.start(1)
        await desk.done()
        await notebook.see(1, "Left: the answer.")
        await notebook.see(1, "Stopped at the limit of 1 turn")
        link = notebook.output(1).locator("a", has_text="Continue")
        await expect(link).to_be_visible()
        server.push(say("There is **nothing** yet."))
        await link.click()
        await notebook.see(1, "There is nothing yet.")
        await expect(link).to_have_count(0)
        told = str(server.requests[-1].body["messages"][-1])
        assert "The person wants you to go on" in told
        assert "What is there?" not in told

        await notebook.run(2)
        await notebook.see(2, "System prompt")
        await expect(notebook.output(2).get_by_role("img")).to_be_visible()
        await notebook.screenshot("context")
        server.push(say("SUMMARY: nothing is there."))
        await notebook.run(3)
        await notebook.see(3, "The conversation was summed up:")
        server.push(say("Still nothing."))
        await desk.start(4)
        await notebook.see(4, "Still nothing.")
        begins = server.requests[-1].body["messages"][0]["content"]
        assert "SUMMARY: nothing is there." in str(begins)
        assert "What is there?" in str(begins)
        server.assert_clean()
