"""A run and its page: a closed tab, a reload, a restart, its cell deleted, a flood of tokens, and what the saved file shows without a kernel."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import nbconvert
import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import Reply, calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk
    from tests.browser.lab import Lab
    from tests.browser.page import Notebook
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(150)

AGENT = 1
TASK = "%%agent --again\ndo it"  # the records of the other tests lie in the same folder
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # what a kernel outside the tests has
TOO_LONG = 2_000
"""Milliseconds for which no script of ours may hold the page up, on a machine that may be busy."""
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\nprint('drawn')"


async def recorded(notebook: Notebook) -> None:
    """Return when the record stands in the view's place and is saved."""
    await notebook.until(
        f"!panel().context.model.dirty && !JSON.stringify(shared().getCell({AGENT}).toJSON()).includes('widget-view')"
    )


async def test_a_tab_closed_in_mid_run_leaves_the_kernel_alive_and_the_run_to_be_taken_up(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server, TASK, "kept = 'alive'") as desk:
        await desk.notebook.run(2)
        server.push(calls("add_cell", source="late = 1"))
        await desk.start(AGENT)
        await expect(desk.notebook.button(AGENT, "Approve")).to_be_enabled()
        again = await desk.notebook.second_tab()
        await desk.notebook.page.close()
        await again.interrupt()
        await again.kernel_idle()
        assert await again.evaluate("kept") == "'alive'"


async def test_a_reload_with_an_approval_open_brings_the_view_back_and_its_buttons_work(
    lab: Lab, server: MessagesServer
) -> None:
    """Nobody saved: the run itself did, before it asked."""
    async with agent_notebook(lab, server, TASK) as desk:
        notebook = desk.notebook
        server.push(calls("add_cell", text="The first.", source="first = 1"),
                    calls("add_cell", text="Before the reload.", source="print('late output')\nback = first"))  # fmt: skip
        await desk.start(AGENT)
        await notebook.click(AGENT, "Approve")
        await notebook.see(AGENT, "Before the reload.")
        await expect(notebook.button(AGENT, "Approve")).to_be_enabled()
        await notebook.until("!panel().context.model.dirty")
        await notebook.reload(kernel=False)
        for text in ("The first.", "Before the reload.", "print('late output')"):
            await notebook.see(AGENT, text)
        assert (await notebook.sources())[AGENT + 1 :] == ["first = 1"]
        server.push(say("After the reload."))
        await notebook.click(AGENT, "Approve")
        await notebook.see(AGENT + 2, "late output")
        await notebook.see(AGENT, "After the reload.")
        assert await notebook.evaluate("back") == "1"
        assert (await notebook.sources())[AGENT + 1 :] == ["first = 1", "print('late output')\nback = first"]
        await recorded(notebook)
        [record] = notebook.saved().cells[AGENT].outputs
        assert "After the reload." in record.data["text/plain"]
        assert "widget-view" not in str(record)


async def test_a_reload_while_synchronous_code_runs_loses_neither_the_cell_nor_its_output_nor_the_record(
    lab: Lab, server: MessagesServer
) -> None:
    wait = "import pathlib\nprint('early')\nwhile not pathlib.Path('go-later').exists(): pass\nprint('late')"
    async with agent_notebook(lab, server, TASK, env={"NBAGENT_MODE": "bypass"}) as desk:
        notebook = desk.notebook
        server.push(calls("add_cell", text="It takes long.", source=wait), say("It is over."))
        await desk.start(AGENT)
        await notebook.see(AGENT + 1, "early")
        await notebook.until("!panel().context.model.dirty")  # what runs long is saved
        await notebook.reload(kernel=False)
        await notebook.until("shared().cells.length > 2")
        (notebook.path.parent / "go-later").touch()
        await notebook.see(AGENT, "It is over.")
        await notebook.see(AGENT + 1, "late")
        await recorded(notebook)
        saved = notebook.saved()
        assert [output.text for output in saved.cells[AGENT + 1].outputs] == ["early\nlate\n"]
        assert "It is over." in saved.cells[AGENT].outputs[0].data["text/plain"]


async def test_a_restart_with_an_approval_open_says_that_the_run_has_ended_and_leaves_nothing_that_looks_alive(
    lab: Lab, server: MessagesServer
) -> None:
    """Rows 58, 59: the kernel went away with the question; nothing was executed, no button is left to press."""
    async with agent_notebook(lab, server, TASK) as desk:
        notebook = desk.notebook
        server.push(calls("add_cell", text="I will ask.", source="never = 1"))
        await desk.start(AGENT)
        await expect(notebook.button(AGENT, "Approve")).to_be_enabled()
        await notebook.restart()
        await notebook.see(AGENT, "this run has ended, and nothing more was executed")
        await expect(notebook.output(AGENT).get_by_role("button")).to_have_count(0)
        assert await notebook.evaluate("'never' in globals()") == "False"
        saved = await notebook.save()
        assert len(saved.cells) == 2
        [record] = saved.cells[AGENT].outputs
        assert "widget-view" not in str(record)
        assert "I will ask." in record.data["text/html"]
    async with lab.open(saved) as reopened:
        await reopened.see(AGENT, "this run has ended, and nothing more was executed")
        for dead in ("Error displaying widget", "Loading widget"):
            await expect(reopened.page.get_by_text(dead)).to_have_count(0)


async def command(notebook: Notebook, name: str) -> None:
    """Do what a menu's entry or a key does with the active cell; the focus may be in the view, where no key is a command."""
    await notebook.js(f"return window.jupyterapp.commands.execute('notebook:{name}')")


async def test_the_view_comes_back_where_the_person_took_it_out_of_the_cell_while_it_asks(desk: Desk) -> None:
    """By clearing the output, by making the cell Markdown and code again, and by cutting and pasting it."""
    notebook = desk.notebook
    agent = await desk.ask(*(calls("add_cell", source=f"part_{n} = {n}") for n in range(3)), say("All three."))
    prompt = notebook.cell(agent).locator(".jp-InputPrompt").first
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    await command(notebook, "clear-cell-output")
    await expect(prompt).to_have_text("[*]:")
    await notebook.click(agent, "Approve")
    await expect(desk.card(agent)).to_contain_text("part_1")
    await notebook.activate(agent)
    await command(notebook, "change-cell-to-markdown")
    await expect(notebook.page.locator(".nbagent-notice")).to_contain_text("no code cell now")
    await notebook.page.locator(".nbagent-notice").get_by_text("Close").click()
    await notebook.activate(agent)
    await command(notebook, "change-cell-to-code")
    await expect(prompt).to_have_text("[*]:")
    await notebook.click(agent, "Approve")
    await expect(desk.card(agent)).to_contain_text("part_2")
    await notebook.activate(agent)
    await command(notebook, "cut-cell")
    await notebook.page.evaluate("new Promise(done => setTimeout(done, 500))")  # a person looks for the place
    await command(notebook, "paste-cell-below")
    moved = (await notebook.sources()).index("%%agent --new\ndo it")
    assert moved == agent + 1
    await notebook.click(moved, "Approve")
    await notebook.see(moved, "All three.")
    await notebook.kernel_idle()
    await expect(notebook.cell(moved).locator(".jp-InputPrompt").first).to_have_text(re.compile(r"\[\d+\]:"))
    assert await notebook.evaluate("(part_0, part_1, part_2)") == "(0, 1, 2)"
    assert "widget-view" not in str(await notebook.outputs(moved))


async def test_the_agents_cell_deleted_while_it_asks_ends_the_run_and_nothing_is_executed(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="never = 1"))
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    await notebook.activate(agent)
    await notebook.js("return window.jupyterapp.commands.execute('notebook:delete-cell')")
    await desk.done()
    await expect(notebook.page.locator(".nbagent-notice")).to_contain_text("cell was deleted, so its run has ended")
    assert await notebook.evaluate("'never' in globals()") == "False"
    assert not any("never" in source for source in await notebook.sources())
    await notebook.page.locator(".nbagent-notice").get_by_text("Close").click()
    await desk.works()


async def test_twenty_thousand_tokens_never_hold_the_page_up(desk: Desk) -> None:
    words = " ".join(f"word{n}" if n % 40 else f"\n\n## Part {n}\n\n- item" for n in range(20_000))
    began = await desk.notebook.now()
    agent = await desk.ask(Reply(words, odd=False, chunk=8))
    await desk.done(patience=90)
    await desk.notebook.see(agent, "word19999")
    own = [script for script in await desk.notebook.slow_scripts() if script["start"] > began and ours(script)]
    assert [script for script in own if script["ms"] > TOO_LONG] == []


async def test_the_watch_over_slow_scripts_sees_a_widgets_module(desk: Desk) -> None:
    """Else the test above could not fail: our view, too, draws in animation frames of its module."""
    began = await desk.notebook.now()
    slow = f"requestAnimationFrame(() => {{ const end = performance.now() + {2 * TOO_LONG}; while (performance.now() < end); }})"
    cell = await desk.notebook.add(
        f"import anywidget\nclass Slow(anywidget.AnyWidget):\n    _esm = 'export default {{ render() {{ {slow} }} }}'\nSlow()"
    )
    await desk.notebook.run(cell)
    await desk.notebook.until(f"window.__scripts.some((s) => s.source.startsWith('blob:') && s.ms > {TOO_LONG})")
    own = [script for script in await desk.notebook.slow_scripts() if script["start"] > began and ours(script)]
    assert any(script["ms"] > TOO_LONG for script in own)


def ours(script: dict[str, object]) -> bool:
    """Whether a script of the page is a widget's module, which is served from a blob: address."""
    return str(script["source"]).startswith("blob:")


async def test_the_saved_notebook_shows_the_record_without_a_kernel(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, TASK, env={"NBAGENT_MODE": "bypass", **INLINE}) as desk:
        notebook = desk.notebook
        server.push(calls("add_cell", text="I **draw**.", source=PLOT), say("The plot shows *three* points."))
        await desk.start(AGENT)
        await desk.done()
        saved = await notebook.save()
    text = notebook.path.read_text(encoding="utf-8")
    assert "application/vnd.jupyter.widget-view+json" not in text
    assert "widgets" not in saved.metadata
    [record] = saved.cells[AGENT].outputs
    assert "The plot shows *three* points." in record.data["text/markdown"]
    assert "<script" not in record.data["text/html"]

    page, _ = await asyncio.to_thread(nbconvert.HTMLExporter().from_notebook_node, saved)
    assert "The plot shows <em>three</em> points." in page
    assert 'src="data:image/png;base64' in page

    async with lab.open(saved) as reopened:
        await reopened.see(AGENT, "The plot shows three points.")
        for dead in ("Error displaying widget", "Loading widget"):
            await expect(reopened.page.get_by_text(dead)).to_have_count(0)
        steps = reopened.output(AGENT).get_by_text("Steps:")
        await steps.click()
        await reopened.see(AGENT, "I draw.")
        await expect(reopened.output(AGENT + 1).locator("img")).to_be_visible()
