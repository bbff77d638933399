"""A call that takes long: the page asks by itself, and interrupts what runs without ending the run, while the kernel is busy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from playwright.async_api import Locator

    from tests.browser.desk import Desk
    from tests.browser.lab import Lab
    from tests.support.messages_replies import Scripted
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(120)

BUSY = "print('it loops')\nwhile True: pass"
WAITS = "import asyncio\nprint('it waits')\nawait asyncio.sleep(1000)"
THEN = say("Then otherwise.")
BYPASS = {"NBAGENT_MODE": "bypass"}


NOTE_HIDING = (
    "bar => { window.__hid = false; new MutationObserver(() => { window.__hid ||= bar.hidden })"
    ".observe(bar, {attributes: true}) }"
)
STILL = re.compile(r"The new cell has run for \d+:\d\d \(limit \d+:\d\d\)\.")


def question(desk: Desk, cell: int) -> Locator:
    return desk.view(cell).locator(".nbagent-patience")


async def run(desk: Desk, source: str, *then: Scripted, line: str = "") -> int:
    """Start a run whose agent runs code without end, and `then` says more; return the number of its cell."""
    await desk.set_env(**BYPASS)
    agent = await desk.ask(calls("add_cell", source=source), *then, line=line)
    await desk.notebook.see(agent + 1, "it ")
    return agent


async def goes_on(desk: Desk, agent: int) -> None:
    """Fail unless the call was interrupted, the model was told, and the run went on to its end."""
    await desk.done()
    assert "The person interrupted this call (not the run)" in desk.results(1)
    await desk.notebook.see(agent, "Then otherwise.")
    await desk.set_env(NBAGENT_MODE=None)


@pytest.mark.parametrize("source", [BUSY, WAITS], ids=["busy", "waiting"])
async def test_interrupt_cell_ends_what_runs_and_the_run_goes_on(desk: Desk, source: str) -> None:
    agent = await run(desk, source, THEN)
    await expect(desk.notebook.button(agent, "Stop")).to_be_visible()
    await desk.notebook.click(agent, "Interrupt cell")
    await goes_on(desk, agent)
    await desk.works()


async def test_stop_beside_it_still_ends_the_run(desk: Desk) -> None:
    """Row 37: Stop is of the whole run, also beside a button that is not."""
    agent = await run(desk, BUSY)
    await desk.notebook.click(agent, "Stop")
    await desk.done()
    await desk.notebook.see(agent, "Stopped by you.")
    assert len(desk.server.requests) == 1
    await desk.set_env(NBAGENT_MODE=None)


async def test_the_page_asks_while_the_kernel_is_busy_and_ends_nothing_by_itself(desk: Desk) -> None:
    agent = await run(desk, BUSY, THEN, line="--cell-timeout 1")
    bar = question(desk, agent)
    await expect(bar).to_contain_text(STILL)
    text = bar.locator(".nbagent-patiencetext")
    said = await text.inner_text()
    await expect(text).not_to_have_text(said)  # the time goes on, and so does the code
    await expect(text).to_have_text(STILL)
    await bar.evaluate(NOTE_HIDING)
    await bar.get_by_role("button", name="Keep waiting", exact=True).click()
    await desk.notebook.until("window.__hid")
    await expect(bar).to_be_visible()  # asked again, a limit later
    await bar.get_by_role("button", name="Interrupt the cell", exact=True).click()
    await goes_on(desk, agent)


async def test_after_a_reload_the_page_still_asks_and_interrupts(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server) as desk:
        agent = await run(desk, WAITS, THEN, line="--cell-timeout 1")
        await expect(question(desk, agent)).to_be_visible()
        await desk.notebook.save()
        await desk.notebook.reload(kernel=False)
        await expect(question(desk, agent)).to_contain_text("has run for")
        await question(desk, agent).get_by_role("button", name="Interrupt the cell", exact=True).click()
        await desk.notebook.see(agent, "Then otherwise.")
        assert "The person interrupted this call (not the run)" in desk.results(1)
