"""A run and more than one tab: all show it, one writes, and when its page goes another takes over; names and dirty tabs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from playwright.async_api import Route

    from tests.browser.lab import Lab
    from tests.browser.page import Notebook
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(150)

AGENT = 1
TASK = "%%agent --again\ndo it"  # the records of the other tests lie in the same folder


async def no_dialogs(*tabs: Notebook) -> None:
    """Fail on a dialog such as File Changed, which our own saves must not cause."""
    for tab in tabs:
        await expect(tab.page.locator(".jp-Dialog")).to_have_count(0)


HEAR = """
window.__heard = new Set();
panel().sessionContext.session.kernel.anyMessage.connect((_, { msg }) => window.__heard.add(msg.content?.data?.content?.op));
"""


async def told_to_follow(tab: Notebook) -> None:
    """Return when the kernel's word that another tab has saved came to a tab with HEAR, and the tab could act on it.

    A tab that does asks the server for the file; the same server has answered it by the time that it answers us.
    """
    await tab.until("window.__heard.has('follow')")
    ask = f"(await fetch('/api/contents/{tab.name}?content=1')).text()"
    await tab.js(f"await {ask}; await new Promise(done => setTimeout(done)); await {ask}")


async def recorded(tab: Notebook) -> None:
    """Return when the record stands in the view's place and is saved."""
    await tab.until(
        f"!panel().context.model.dirty && !JSON.stringify(shared().getCell({AGENT}).toJSON()).includes('widget-view')"
    )


async def test_a_second_tab_shows_the_run_and_takes_it_over_when_the_first_is_closed(
    lab: Lab, server: MessagesServer
) -> None:
    """Rows 31, 78: the click goes to another page than the one that began, and nothing lands twice or nowhere."""
    async with agent_notebook(lab, server, TASK, "'below'") as desk:
        first = desk.notebook
        await first.save()
        second = await first.second_tab()
        server.push(calls("add_cell", text="First step.", source="one = 1"), calls("add_cell", source="two = one + 1"),
                    say("Both are there."))  # fmt: skip
        await desk.start(AGENT)
        await second.see(AGENT, "First step.")
        await expect(second.button(AGENT, "Approve")).to_be_enabled()
        await first.click(AGENT, "Approve")
        await expect(second.output(AGENT).get_by_text("two = one + 1").first).to_be_visible()
        await second.until("shared().cells.some((cell) => cell.getSource() === 'one = 1')")
        await no_dialogs(first, second)
        assert (await first.sources()).count("one = 1") == 1
        await first.page.close()
        await second.click(AGENT, "Approve")
        await second.see(AGENT, "Both are there.")
        await recorded(second)
        assert (await second.sources())[AGENT + 1 :] == ["one = 1", "two = one + 1", "'below'"]
        assert await second.evaluate("two") == "2"
        saved = second.saved()
        assert [cell.source for cell in saved.cells][AGENT + 1 :] == ["one = 1", "two = one + 1", "'below'"]
        assert "Both are there." in saved.cells[AGENT].outputs[0].data["text/plain"]
        assert "widget-view" not in str(saved.cells[AGENT].outputs)
        assert await second.count(AGENT) is not None
        await no_dialogs(second)


async def test_when_the_run_is_over_every_clean_tab_shows_the_record_and_the_cells(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server, TASK) as desk:
        first = desk.notebook
        await first.save()
        second = await first.second_tab()
        await second.activate(0)
        await second.press("Enter")
        await second.js(HEAR)
        server.push(calls("add_cell", source="one = 1"), say("One cell."))
        await desk.start(AGENT)
        await expect(first.button(AGENT, "Approve")).to_be_enabled()
        await told_to_follow(second)
        assert await second.outputs(AGENT) == [], "while the person has the cursor in a cell, it stays where it is"
        await second.press("Escape")
        await second.click(AGENT, "Approve")
        await desk.done()
        for tab in (first, second):
            await tab.see(AGENT, "One cell.")
            await tab.until("shared().cells.filter((cell) => cell.getSource() === 'one = 1').length === 1")
            await expect(tab.output(AGENT).locator(".nbagent-view")).to_have_count(0)
            await tab.until("!panel().context.model.dirty")
        await second.save()
        await first.save()
        await no_dialogs(first, second)


async def test_a_tab_with_unsaved_changes_keeps_them_and_says_why_it_does_not_show_the_run(
    lab: Lab, server: MessagesServer
) -> None:
    """Row 74: what the person has not saved is theirs, whichever tab it is in."""
    async with agent_notebook(lab, server, TASK, "'below'") as desk:
        first = desk.notebook
        await first.save()
        second = await first.second_tab()
        await second.write(2, "'mine, not saved'")
        server.push(calls("add_cell", source="one = 1"), say("One cell."))
        await desk.start(AGENT)
        await first.click(AGENT, "Approve")
        await desk.done()
        await expect(second.page.locator(".nbagent-notice")).to_contain_text("changes that are not saved")
        assert (await second.sources())[AGENT:] == [TASK, "'mine, not saved'"]
        assert await second.outputs(AGENT) == []
        assert [cell.source for cell in first.saved().cells][AGENT:] == [TASK, "one = 1", "'below'"]
        await no_dialogs(first, second)
        await second.page.locator(".nbagent-notice").get_by_text("Close").click()
        await expect(second.page.locator(".nbagent-notice")).to_have_count(0)


async def test_what_is_typed_while_a_tab_loads_what_another_saved_stays(lab: Lab, server: MessagesServer) -> None:
    """Row 74: a large file takes a while, and the person does not wait for it."""
    async with agent_notebook(lab, server, TASK, "'below'") as desk:
        first = desk.notebook
        await first.save()
        second = await first.second_tab()
        asked, go = asyncio.Event(), asyncio.Event()

        async def slowly(route: Route) -> None:
            if route.request.method == "GET" and "content=1" in route.request.url:
                asked.set()
                await go.wait()
            await route.continue_()

        await second.page.route("**/api/contents/**", slowly)
        server.push(calls("add_cell", source="one = 1"), say("One cell."))
        await desk.start(AGENT)
        async with asyncio.timeout(30):
            await asked.wait()
        await second.write(2, "'typed meanwhile'")
        go.set()
        await expect(second.page.locator(".nbagent-notice")).to_contain_text("changes that are not saved")
        assert (await second.sources())[AGENT:] == [TASK, "'typed meanwhile'"]
        assert await second.js("return panel().context.model.dirty")
        await first.click(AGENT, "Approve")
        await desk.done()
        await no_dialogs(first, second)


async def test_a_renamed_notebook_stays_the_same_one_in_mid_run_and_after(lab: Lab, server: MessagesServer) -> None:
    """Row 77: the binding is to the document; its path is asked of the page each time."""
    async with agent_notebook(lab, server, TASK) as desk:
        notebook = desk.notebook
        server.push(calls("add_cell", source="one = 1"), calls("add_cell", source="two = 2"), say("Two cells."))
        await desk.start(AGENT)
        await expect(notebook.button(AGENT, "Approve")).to_be_enabled()
        old, new = notebook.name, notebook.name.replace(".ipynb", "-renamed.ipynb")
        await notebook.js(f"return panel().context.rename('{new}')")
        notebook.name, notebook.path = new, notebook.path.with_name(new)
        await notebook.click(AGENT, "Approve")
        await notebook.see(AGENT, new)
        await expect(desk.card(AGENT)).to_contain_text("two = 2")
        await notebook.click(AGENT, "Approve")
        await desk.done()
        assert not notebook.path.with_name(old).exists()
        assert [cell.source for cell in notebook.saved().cells][AGENT + 1 :] == ["one = 1", "two = 2"]

        newer = new.replace("renamed", "again")
        await notebook.js(f"return panel().context.rename('{newer}')")
        notebook.name, notebook.path = newer, notebook.path.with_name(newer)
        await notebook.reload()
        agent = await desk.ask(say("I remember."), new=False)
        await desk.done()
        await notebook.see(agent, "I remember.")
        [*_, last] = await desk.requests(4)
        assert len(last.body["messages"]) > 2, "the conversation goes on"
        assert f"renamed: it is {newer} now" in str(last.body["messages"][-1])


async def test_a_panel_closed_and_opened_again_in_the_same_page_takes_the_run_up(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server, TASK) as desk:
        notebook = desk.notebook
        server.push(calls("add_cell", text="Before it was closed.", source="one = 1"), say("After it was closed."))
        await desk.start(AGENT)
        await expect(notebook.button(AGENT, "Approve")).to_be_enabled()
        await notebook.until("!panel().context.model.dirty")
        await notebook.js(
            "panel().sessionContext.kernelPreference = {...panel().sessionContext.kernelPreference, shutdownOnDispose: false}; panel().close()"
        )
        await notebook.until("!panel()")
        await notebook.js(
            "return window.jupyterapp.commands.execute('docmanager:open', {path: name, factory: 'Notebook'})"
        )
        await notebook.until("panel()?.context?.isReady")
        await notebook.see(AGENT, "Before it was closed.")
        await notebook.click(AGENT, "Approve")
        await notebook.see(AGENT, "After it was closed.")
        await recorded(notebook)
        saved = notebook.saved()
        assert [cell.source for cell in saved.cells][AGENT + 1 :] == ["one = 1"]
        assert "After it was closed." in saved.cells[AGENT].outputs[0].data["text/plain"]


async def test_the_record_of_a_run_that_ended_without_a_page_is_written_when_one_is_back(
    lab: Lab, server: MessagesServer
) -> None:
    """Row 58: a view that nobody sees become a record must not stay behind as a dead widget."""
    async with agent_notebook(lab, server, TASK, env={"NBAGENT_MODE": "bypass"}) as desk:
        notebook = desk.notebook
        wait = "import pathlib, time\nwhile not pathlib.Path('go-alone').exists(): time.sleep(0.05)\nalone = True"
        server.push(calls("run_python", text="I work alone.", code=wait), say("Nobody was there."))
        await desk.start(AGENT)
        await notebook.see(AGENT, "I work alone.")
        await notebook.until("!panel().context.model.dirty")
        await notebook.page.close()
        (lab.root / "go-alone").touch()
        await desk.requests(2)
        again = await notebook.second_tab()
        await again.see(AGENT, "Nobody was there.")
        await recorded(again)
        saved = again.saved()
        assert "Nobody was there." in saved.cells[AGENT].outputs[0].data["text/plain"]
        assert "widget-view" not in str(saved.cells[AGENT].outputs)
