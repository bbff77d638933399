"""A stepped cell, from its first event to its end: with the mouse only, and with the keyboard only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from playwright.async_api import Locator

    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(180)


def line(desk: Desk, cell: int) -> Locator:
    """The line that says where the run rests."""
    return desk.view(cell).locator(".nbagent-stepline")


async def test_step_through_a_run_with_the_mouse_only(desk: Desk) -> None:
    notebook = desk.notebook
    cell = await desk.ask(calls("list_variables", text="I look."), say("Nothing there."), line="--step")
    await expect(line(desk, cell)).to_contain_text("event 1: run_started")
    await expect(line(desk, cell)).to_contain_text("Paused by not pulling")
    assert desk.server.requests == [], "the request is an event that nobody has pulled yet"
    await notebook.click(cell, "Next")
    await expect(line(desk, cell)).to_contain_text("request_sent")
    assert desk.server.requests == [], "it stands at the yield before the request"
    await notebook.click(cell, "Next")
    await expect(line(desk, cell)).to_contain_text("reply_ended")  # the reply is read to its end
    await notebook.click(cell, "◀ Back")
    await expect(line(desk, cell)).to_contain_text("You look back")
    await notebook.click(cell, "Forward ▶")
    await expect(line(desk, cell)).to_contain_text("Paused by not pulling")
    box = desk.view(cell).locator(".nbagent-stepbreaks input")
    await box.fill("acct")
    await box.press("Enter")
    await notebook.see(cell, "Did you mean act?")
    await box.fill("call_ended")
    await box.press("Enter")
    await notebook.click(cell, "Play")
    await expect(line(desk, cell)).to_contain_text("call_ended list_variables")
    await expect(line(desk, cell)).to_contain_text("breakpoint call_ended")
    await notebook.click(cell, "Next turn")
    await expect(line(desk, cell)).to_contain_text("turn 2")
    await notebook.click(cell, "Play")
    await desk.done()
    await notebook.see(cell, "Nothing there.")
    await expect(notebook.output(cell).locator(".nbagent-steps")).to_have_count(0)


async def test_step_through_a_run_with_the_keyboard_only(desk: Desk) -> None:
    notebook = desk.notebook
    await notebook.activate(0)
    desk.server.push(calls("add_cell", source="stepped = 1"), say("Added."))
    await notebook.press("b", "Enter")
    await notebook.typing(1)
    await notebook.page.keyboard.type("%%agent --new --step --break tool:add_cell\ndo it")
    await notebook.press("Control+Enter")
    await expect(line(desk, 1)).to_contain_text("event 1: run_started")
    for _ in range(12):
        await notebook.press("Tab")
        if await desk.view(1).evaluate("view => view.contains(document.activeElement)"):
            break
    await notebook.press("n")
    await expect(line(desk, 1)).to_contain_text("request_sent")
    await notebook.press("n")
    await expect(line(desk, 1)).to_contain_text("reply_ended")
    await notebook.press("ArrowLeft")
    await expect(line(desk, 1)).to_contain_text("You look back")
    await notebook.press("ArrowRight", "p")
    await expect(
        notebook.button(1, "Approve")
    ).to_be_enabled()  # here the person is waited for anyway, and it does not rest
    await notebook.page.wait_for_function(
        "document.activeElement.getAttribute('aria-label')?.startsWith('Approve or deny')"
    )
    await notebook.press("Enter")
    await expect(line(desk, 1)).to_contain_text("call_started add_cell")
    assert len(await notebook.sources()) == 2, "a call rests right before it runs"
    await notebook.press("t")
    await expect(line(desk, 1)).to_contain_text("turn 2")
    await notebook.press("p")
    await notebook.see(1, "Added.")
    assert await notebook.evaluate("stepped") == "1"
