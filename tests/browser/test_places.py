"""One visit to a notebook as a person makes it, in whatever front end is opened: JupyterLab, or Notebook 7.

`make test-places` runs this with --front-end notebook. The screenshots in build/screenshots/ are to be looked at.
"""

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


async def test_the_front_end_is_the_one_that_was_asked_for(lab: Lab, pytestconfig: pytest.Config) -> None:
    async with lab.open(["1 + 1"]) as notebook:
        name = await notebook.js("return window.jupyterapp.name")
        assert name == {"lab": "JupyterLab", "notebook": "Jupyter Notebook"}[pytestconfig.getoption("--front-end")]


async def test_a_run_with_a_no_a_yes_and_a_stop_leaves_a_record_that_is_there_when_the_notebook_is_opened_again(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server) as desk:
        notebook = desk.notebook
        plot = calls("add_cell", text="I plot it first.", source="import plotly")
        agent = await desk.ask(plot, task="Which is larger?")
        await notebook.see(agent, "import plotly")
        await notebook.screenshot(f"{lab.app}-asking")
        desk.server.push(calls("add_cell", source="larger = max(6 * 7, 41)\nprint(larger)"), say("It is **42**."))
        await desk.view(agent).get_by_label("What to do instead", exact=True).fill("no plot, please")
        await notebook.click(agent, "Deny")
        await notebook.see(agent, "larger = max(6 * 7, 41)")
        await desk.approve(agent)
        await desk.done()
        assert "no plot, please" in desk.results(1)
        assert (await notebook.sources())[agent + 1] == "larger = max(6 * 7, 41)\nprint(larger)"
        assert await notebook.text(agent + 1) == "42\n"

        waits = await desk.ask(calls("add_cell", source="never = 1"), new=False)
        await expect(notebook.button(waits, "Approve")).to_be_enabled()
        await notebook.click(waits, "Stop")
        await desk.done()
        await notebook.see(waits, "Stopped by you.")
        assert await notebook.evaluate("'never' in globals()") == "False"

        await notebook.save()
        await notebook.restart()
        await notebook.reload()
        for cell, text in ((agent, "It is 42."), (waits, "Stopped by you.")):
            await notebook.see(cell, text)
            await expect(notebook.output(cell).get_by_role("button")).to_have_count(0)
            await expect(notebook.output(cell)).not_to_contain_text("model not found")
        await notebook.screenshot(f"{lab.app}-reopened")


async def test_a_page_that_is_reloaded_while_a_question_is_open_shows_it_again_and_takes_the_answer(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server) as desk:
        notebook = desk.notebook
        agent = await desk.ask(calls("add_cell", source="kept = 7\nkept"), say("It is seven."))
        await notebook.see(agent, "kept = 7")
        await notebook.reload(kernel=False)
        await notebook.see(agent, "kept = 7")
        await notebook.click(agent, "Approve")
        await notebook.see(agent, "It is seven.")
        await notebook.until("!panel().context.model.dirty")  # a reloaded page need not know when the kernel is idle
        assert await notebook.text(agent + 1) == "7"
        saved = notebook.saved().cells
        [record] = [o for o in saved[agent].outputs if "text/markdown" in o.get("data", {})]
        assert "It is seven." in record["data"]["text/markdown"]
