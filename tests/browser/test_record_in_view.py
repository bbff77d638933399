"""When a run ends, its record is before the person's eyes if the run was, and the page does not move if they were elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.support.messages_server import Reply, calls, say

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.browser.page import Notebook
    from tests.support.messages_server import MessagesServer

pytestmark = pytest.mark.timeout(150)

AGENT = 2
FILLER = "\n".join(f"# line {n}" for n in range(60))
TASK = "%%agent\ndo it"
LONG = "\n\n".join(f"Paragraph {n}." for n in range(60))
BYPASS = {"NBAGENT_MODE": "bypass"}

TOP = f"""
(() => {{
  const cell = document.querySelector('.jp-Notebook .jp-Cell[data-windowed-list-index="{AGENT}"]');
  const frame = cell.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
  const top = cell.querySelector('.jp-Cell-outputWrapper').getBoundingClientRect().top;
  return top >= frame.top - 1 && top < frame.bottom - 40;
}})()
"""
AT = "document.querySelector('.jp-WindowedPanel-outer').scrollTop"


async def scroll(notebook: Notebook, place: str) -> None:
    """Scroll as a person does, by the wheel over the notebook."""
    await notebook.page.mouse.move(600, 400)
    delta = {"end": 30_000, "start": -30_000}[place]
    at = await notebook.page.evaluate(AT)
    await notebook.page.mouse.wheel(0, delta)
    await notebook.page.wait_for_function(f"{AT} !== {at}")
    await notebook.page.wait_for_function(  # until it stands
        f"new Promise(done => {{ const at = {AT}; requestAnimationFrame(() => requestAnimationFrame(() => done({AT} === at))) }})"
    )


async def test_the_record_of_a_long_run_is_in_view(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, FILLER, TASK, FILLER, viewport=(1280, 800), env=BYPASS) as desk:
        server.push(
            calls("add_cell", text=LONG, source="for n in range(30): print('row', n)"), say(LONG + "\n\nThe end.")
        )
        await desk.start(AGENT)
        await desk.done()
        await expect(desk.notebook.output(AGENT).get_by_text("Steps:")).to_be_attached()
        await desk.notebook.page.wait_for_function(TOP)


async def test_the_record_of_a_stopped_run_is_in_view(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, FILLER, TASK, FILLER, viewport=(1280, 800)) as desk:
        server.push(Reply(LONG, chunk=40, hang_after=20))
        await desk.start(AGENT)
        await desk.notebook.see(AGENT, "Paragraph 30.")
        await desk.notebook.click(AGENT, "Stop")
        await desk.done()
        await expect(desk.view(AGENT)).to_have_count(0)
        await desk.notebook.page.wait_for_function(TOP)


async def test_a_person_who_looks_elsewhere_is_not_moved(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, FILLER, TASK, *[FILLER] * 4, viewport=(1280, 800)) as desk:
        server.push(calls("add_cell", text=LONG, source="x = 1"), say("The end."))
        await desk.start(AGENT)
        await expect(desk.notebook.button(AGENT, "Approve")).to_be_enabled()
        await scroll(desk.notebook, "start")
        await scroll(desk.notebook, "end")
        # the answer reaches the kernel without the mouse, which would be at the buttons
        await desk.notebook.js("document.querySelector('.nbagent-bar').focus({preventScroll: true})")
        await desk.notebook.press("Enter")
        await desk.done()
        await expect(desk.view(AGENT)).to_have_count(0)
        assert not await desk.notebook.page.evaluate(TOP)
