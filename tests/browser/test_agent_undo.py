"""Taking a run back in a real page: by the button in its record with the mouse, and by `%agent undo` with the keyboard."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import Reply, call, calls, say

if TYPE_CHECKING:
    from playwright.async_api import Locator

    from tests.browser.desk import Desk
    from tests.browser.lab import Lab
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(120)


async def ids(desk: Desk) -> list[str]:
    found: list[str] = await desk.notebook.js("return shared().cells.map(cell => cell.getId())")
    return found


async def work(desk: Desk) -> tuple[int, int | None]:
    """A run that adds two cells, edits one and rebinds `df`; return where the agent's cell is, and the old count of the other."""
    notebook = desk.notebook
    await desk.lay("df = [1, 2, 3]", "print('total', sum(df))")
    await notebook.run(1)
    await notebook.run(2)
    total, count = (await ids(desk))[2], await notebook.count(2)
    await desk.set_env(NBAGENT_MODE="bypass")
    agent = await desk.ask(
        calls("read_cell", cell=total),
        Reply(
            [
                call("add_cell", source="df = [10, 20]\ndf"),
                call("edit_cell", cell=total, source="print('mean', sum(df) / len(df))", run=True),
                call("add_cell", source="## What it says", cell_type="markdown"),
            ]
        ),
        say("The mean is **15**."),
        task="the mean, please",
    )
    await desk.done()
    assert await notebook.evaluate("df") == "[10, 20]"
    return agent, count


def button(desk: Desk, cell: int, op: str) -> Locator:
    return desk.notebook.output(cell).locator(f'a[href^="#nbagent-{op}-"]')


BEFORE = ["%load_ext nbagent", "df = [1, 2, 3]", "print('total', sum(df))"]


async def test_the_button_in_the_record_takes_the_run_back_and_gives_it_again(desk: Desk) -> None:
    notebook = desk.notebook
    agent, count = await work(desk)
    there, sources = await ids(desk), await notebook.sources()
    await expect(button(desk, agent, "undo")).to_have_css("display", "inline-block")
    await expect(notebook.page.locator(".jp-Cell.nbagent-mine")).to_have_count(3)
    await notebook.screenshot("undo-before")
    by_script = "link => (link.click(), link.getAttribute('aria-busy'))"
    assert await button(desk, agent, "undo").evaluate(by_script) is None, "a script in an output is no person"
    with_more = "link => (link.setAttribute('href', link.getAttribute('href') + '?javascript:x'), link.id = 'bent')"
    await button(desk, agent, "again").evaluate(with_more)
    await notebook.page.locator("#bent").click()
    assert await notebook.page.locator("#bent").get_attribute("aria-busy") is None, (
        "a link that is not just ours is none"
    )

    await button(desk, agent, "undo").dblclick()  # the second half of a double click is not another undo
    await notebook.see(agent, "Taken back at")
    assert await notebook.sources() == [*BEFORE, sources[3]]
    assert await notebook.text(2) == "total 6\n"
    assert await notebook.count(2) == count
    assert await notebook.evaluate("df") == "[1, 2, 3]"
    await expect(notebook.page.locator(".jp-Cell.nbagent-mine")).to_have_count(0)
    await expect(notebook.cell(2)).not_to_have_class("jp-mod-dirty")
    await expect(button(desk, agent, "undo")).to_have_count(0)
    await notebook.until("!panel().context.model.dirty")
    [record] = notebook.saved().cells[agent].outputs
    assert record.data["text/plain"].startswith("Taken back at ")
    await notebook.screenshot("undo-after")

    await button(desk, agent, "redo").click()
    await expect(button(desk, agent, "undo")).to_have_count(1)
    await expect(notebook.output(agent)).not_to_contain_text("Taken back at")
    assert await notebook.sources() == sources
    assert await ids(desk) == there
    assert await notebook.text(2) == "mean 15.0\n"
    assert await notebook.evaluate("df") == "[10, 20]"


async def test_agent_undo_typed_with_the_keyboard_keeps_what_the_person_wrote_since(desk: Desk) -> None:
    notebook = desk.notebook
    agent, count = await work(desk)
    await notebook.write(agent + 1, "df = [10, 20, 30]  # mine")
    last = await notebook.add("")
    await notebook.enter(last)
    await notebook.page.keyboard.type("%agent undo")
    await notebook.press("Control+Enter")
    await notebook.see(last - 1, "Taken back: “the mean, please”")  # one cell above it went
    said = await notebook.text(last - 1)
    assert "“df = [10, 20, 30]  # mine” stays: it was edited since" in said
    assert f"restored the text and output of In[{count}]" in said
    assert await notebook.sources() == [
        *BEFORE, "%%agent --new\nthe mean, please", "df = [10, 20, 30]  # mine", "%agent undo"
    ]  # fmt: skip
    assert await notebook.evaluate("df") == "[1, 2, 3]"
    await notebook.see(agent, "Taken back at")


def shows(name: str, **trusted: bool) -> dict[str, Any]:
    """A cell that has shown HTML with a script, as in a notebook that this person has made, or somebody else."""
    html = f"<b>{name}</b><script>window.__scripts_of.push('{name}')</script>"
    output = {"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}
    return {"cell_type": "code", "source": f"# {name}", "metadata": trusted, "execution_count": 1,
            "outputs": [output]}  # fmt: skip


async def test_a_cell_that_comes_back_runs_its_scripts_only_if_the_page_had_trusted_it(desk: Desk) -> None:
    notebook = desk.notebook
    cells = [shows("mine", trusted=True), shows("theirs"), shows("edited", trusted=False)]
    await notebook.js(f"window.__scripts_of = []; shared().insertCells(1, {json.dumps(cells)})")
    for number, name in enumerate(("mine", "theirs", "edited"), 1):
        await notebook.see(number, name)
    await notebook.until("window.__scripts_of.length")
    assert await notebook.page.evaluate("window.__scripts_of") == ["mine"]
    _, mine, theirs, edited = await ids(desk)
    await desk.set_env(NBAGENT_MODE="bypass")
    agent = await desk.ask(
        Reply([call("read_cell", cell=cell) for cell in (mine, theirs, edited)]),
        Reply(
            [
                call("delete_cell", cell=mine),
                call("delete_cell", cell=theirs),
                call("edit_cell", cell=edited, source="print('anew')", run=True),
            ]
        ),
        say("Gone."),
    )
    await desk.done()
    assert await notebook.text(1) == "anew\n"
    await notebook.js("window.__scripts_of.length = 0")

    await button(desk, agent - 2, "undo").click()
    await notebook.see(agent, "Taken back at")
    assert (await ids(desk))[1:4] == [mine, theirs, edited]
    for number, name in enumerate(("mine", "theirs", "edited"), 1):
        await notebook.see(number, name)
    await notebook.until("window.__scripts_of.length")
    assert await notebook.page.evaluate("window.__scripts_of") == ["mine"]
    await notebook.until("!panel().context.model.dirty")
    trusted = "return [1, 2, 3].map(cell => content().widgets[cell].model.trusted)"
    assert await notebook.js(trusted) == [True, False, False]
    assert [output.data["text/html"] for cell in notebook.saved().cells[1:4] for output in cell.outputs] == [
        cell["outputs"][0]["data"]["text/html"] for cell in cells
    ]


async def test_a_reloaded_page_has_its_buttons_again_and_a_copy_beside_it_and_a_dead_kernel_have_none(
    lab: Lab, server: MessagesServer
) -> None:
    """Row 58: no button looks alive that is not."""
    async with agent_notebook(lab, server, env={"NBAGENT_MODE": "bypass"}) as desk:
        notebook = desk.notebook
        agent = await desk.ask(calls("add_cell", source="n = 1"), say("Made."))
        await desk.done()
        await notebook.save()
        await notebook.reload()
        await expect(button(desk, agent, "undo")).to_have_css("display", "inline-block")
        await expect(notebook.cell(agent + 1)).to_have_class(re.compile("nbagent-mine"))

        copy = notebook.path.with_name(f"copy-{notebook.name}")
        copy.write_bytes(notebook.path.read_bytes())
        await notebook.js(f"await window.jupyterapp.commands.execute('docmanager:open', {{path: '{copy.name}'}})")
        other = notebook.page.get_by_label(copy.name).locator('.jp-OutputArea a[href^="#nbagent-undo-"]')
        await expect(other).to_have_css("display", "inline")
        await notebook.page.get_by_role("tab", name=copy.name).click()
        await other.click()
        await expect(notebook.page.locator("[data-nbagent-desk]")).to_have_count(1)
        # closing it would ask whether to save it, if JupyterLab counts what it has just opened as changed
        await notebook.js("window.jupyterapp.shell.currentWidget.dispose()")
        await expect(other).to_have_count(0)

        server.push(say("Asked anew."))
        await button(desk, agent, "again").click()
        await notebook.see(agent, "Asked anew.")
        assert await notebook.evaluate("n") == "1"
        assert len(server.requests) == 3

        await notebook.restart()
        await expect(notebook.page.locator("[data-nbagent-desk]")).to_have_count(0)
        await expect(notebook.page.locator(".nbagent-mine")).to_have_count(0)
        await expect(button(desk, agent, "again")).to_have_css("display", "inline")
        await expect(button(desk, agent, "undo"), "the run that was asked anew did nothing").to_have_count(0)


async def test_after_a_restart_a_line_of_agent_brings_the_buttons_back(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, env={"NBAGENT_MODE": "bypass"}) as desk:
        notebook = desk.notebook
        agent = await desk.ask(calls("add_cell", source="n = 1"), say("Made."))
        await desk.done()
        await notebook.save()
        await notebook.restart()
        await expect(button(desk, agent, "undo")).to_have_css("display", "inline")
        await notebook.write(0, "%load_ext nbagent\n%agent status")
        await notebook.run(0)
        await expect(button(desk, agent, "undo")).to_have_css("display", "inline-block")
        await button(desk, agent, "undo").click()
        await notebook.see(agent, "Taken back at")
        assert "n = 1" not in await notebook.sources()
