"""Cards in a real page: several calls in one, the person's own code, keys, a fast hand, a reload, and what is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

FOUR = [call("add_cell", source=f"{name} = {number}") for number, name in enumerate("pqrs", 1)]


def ticks(desk: Desk, cell: int) -> Locator:
    return desk.view(cell).locator(".nbagent-tick input")


def area(desk: Desk, cell: int) -> Locator:
    return desk.view(cell).locator(".nbagent-area textarea")


async def awake(desk: Desk, cell: int, name: str = "Approve") -> None:
    """Return when a click on the button of that name counts."""
    await expect(desk.notebook.button(cell, name)).to_be_enabled()


async def test_several_changes_are_approved_in_one_card_but_one_with_keys_only(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(Reply(FOUR))
    await awake(desk, agent, "Approve all 4")
    await desk.view(agent).locator(".nbagent-bar").focus()
    for _ in range(8):  # back from the bar to the tick of the third
        await notebook.press("Shift+Tab")
        if await ticks(desk, agent).nth(2).evaluate("tick => tick === document.activeElement"):
            break
    await notebook.press("Space")
    await awake(desk, agent, "Approve 3 of 4")
    await notebook.press("Escape")
    assert await notebook.page.evaluate("document.activeElement.getAttribute('aria-label')") == "What to do instead"
    await ticks(desk, agent).nth(2).focus()
    desk.server.push(say("Three of four."))
    await notebook.press("Enter")
    await desk.done()
    assert (await notebook.sources())[agent + 1 :] == ["p = 1", "q = 2", "s = 4"]
    assert (
        await notebook.evaluate("'p' in globals(), 'q' in globals(), 'r' in globals(), s") == "(True, True, False, 4)"
    )
    results = desk.results(1)
    assert results.count("Go on without this one.") == 1
    assert results.count("ok.") == 3
    await notebook.see(agent, "Three of four.")


HOLD_BACK = """() => {
  const {send} = WebSocket.prototype;
  const held = [];
  WebSocket.prototype.send = function (...message) { held.push([this, message]); };
  window.__let_go = () => {
    WebSocket.prototype.send = send;
    for (const [socket, message] of held) socket.send(...message);
  };
}"""
"""What the page says to the kernel waits until `__let_go`."""


async def test_the_ticks_that_are_seen_at_the_click_count_and_the_next_card_is_not_hit(desk: Desk) -> None:
    """Row 114: a decision is of what was on screen, once."""
    notebook = desk.notebook
    agent = await desk.ask(Reply(FOUR))
    await awake(desk, agent, "Approve all 4")
    await expect(ticks(desk, agent).nth(3)).to_be_enabled()
    desk.server.push(calls("add_cell", source="later = 1"))
    # faster than any widget can sync, and then a click too much
    await notebook.page.evaluate(HOLD_BACK)
    await ticks(desk, agent).nth(2).evaluate("tick => tick.click()")  # a script in an output is no person
    for place in (0, 1, 3):
        await ticks(desk, agent).nth(place).click()
    await notebook.button(agent, "Approve all 4").dblclick()
    await notebook.page.evaluate("window.__let_go()")
    await expect(desk.card(agent)).to_contain_text("later = 1")
    await awake(desk, agent)
    assert (await notebook.sources())[agent + 1 :] == ["r = 3"]
    await notebook.click(agent, "Deny")
    await desk.done()
    assert await notebook.evaluate("'later' in globals()") == "False"


async def test_without_a_tick_there_is_nothing_to_approve_and_deny_is_of_all(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(Reply(FOUR[:2]), say("Otherwise, then."))
    await awake(desk, agent, "Approve all 2")
    for place in range(2):
        await ticks(desk, agent).nth(place).uncheck()
    await expect(notebook.button(agent, "Approve 0 of 2")).to_be_disabled()
    await notebook.see(agent, "Tick at least one, or deny.")
    await desk.view(agent).get_by_label("What to do instead", exact=True).fill("in one cell")
    await notebook.click(agent, "Deny")
    await desk.done()
    assert desk.results(1).count("in one cell") == 2
    assert len(await notebook.sources()) == 2


async def test_the_persons_own_code_runs_to_its_last_letter_and_the_model_is_told(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="mine = 1"), say("As you like it."))
    await notebook.click(agent, "Edit")
    await expect(area(desk, agent)).to_have_value("mine = 1")
    await awake(desk, agent)
    await area(desk, agent).press("Control+End")
    await notebook.page.keyboard.type("\nif mine:")
    await notebook.press("Enter", "Tab")
    await notebook.page.keyboard.insert_text("mine = 'by h'")
    await notebook.press("Escape")
    assert "Approve or deny" in await notebook.page.evaluate("document.activeElement.getAttribute('aria-label')")
    # the last letters, and the click in the same moment
    await notebook.page.evaluate(HOLD_BACK)
    await area(desk, agent).press("End")
    await notebook.press("Backspace")
    await notebook.page.keyboard.type("and'")
    await notebook.click(agent, "Approve")
    await notebook.page.evaluate("window.__let_go()")
    await desk.done()
    code = "mine = 1\nif mine:\n    mine = 'by hand'"
    assert (await notebook.sources())[agent + 1] == code
    assert await notebook.evaluate("mine") == "'by hand'"
    assert "The person changed the text" in desk.results(1)
    assert "by hand" in desk.results(1)
    for fold in ("Steps:", "done: add"):
        await notebook.output(agent).get_by_text(fold).first.click()
    await notebook.see(agent, "Approved by you, with your edit")
    await expect(notebook.output(agent).locator("pre").first).to_have_text(code)


async def test_an_edit_can_be_undone_and_a_look_is_no_edit(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="proposed = 1"))
    await notebook.click(agent, "Edit")
    await area(desk, agent).fill("other = 2")
    await notebook.click(agent, "Undo my edit")
    await expect(area(desk, agent)).to_have_count(0)
    await expect(desk.card(agent)).to_contain_text("proposed = 1")
    desk.server.push(calls("add_cell", source="looked = 1"))
    await notebook.click(agent, "Approve")
    await expect(desk.card(agent)).to_contain_text("looked = 1")
    await notebook.click(agent, "Edit")
    await expect(area(desk, agent)).to_have_value("looked = 1")
    desk.server.push(say("Both as proposed."))
    await notebook.click(agent, "Approve")
    await desk.done()
    assert (await notebook.sources())[agent + 1 :] == ["proposed = 1", "looked = 1"]
    assert "The person changed" not in desk.results(1) + desk.results(2)


async def test_a_reload_keeps_the_ticks_and_the_text_that_the_person_was_writing(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server) as desk:
        notebook = desk.notebook
        agent = await desk.ask(Reply(FOUR))
        await awake(desk, agent, "Approve all 4")
        await ticks(desk, agent).nth(3).uncheck()
        await desk.view(agent).locator(".nbagent-editing").first.click()
        await area(desk, agent).fill("p = 'mine'")
        await awake(desk, agent, "Approve 3 of 4")
        await notebook.until("panel().context.model.sharedModel != null")
        await notebook.save()
        await notebook.reload(kernel=False)
        await expect(area(desk, agent)).to_have_value("p = 'mine'")
        await expect(ticks(desk, agent).nth(3)).not_to_be_checked()
        await awake(desk, agent, "Approve 3 of 4")
        server.push(say("After the reload."))
        await notebook.click(agent, "Approve 3 of 4")
        await notebook.see(agent, "After the reload.")
        assert (await notebook.sources())[agent + 1 :] == ["p = 'mine'", "q = 2", "r = 3"]


LONG = "\n".join(["first = 1", *(f"line_{n} = {n}" for n in range(40)), "last = 'red'"])


async def test_a_change_is_shown_with_its_words_marked_and_its_equal_lines_folded(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay(LONG)
    cell = await notebook.js("return shared().getCell(1).getId()")
    new = LONG.replace("red", "blue")
    agent = await desk.ask(calls("read_cell", cell=cell), calls("edit_cell", cell=cell, source=new))
    await awake(desk, agent)
    preview = desk.card(agent).locator(".nbagent-preview")
    await expect(preview.locator(".nb-del-w")).to_have_text("red")
    await expect(preview.locator(".nb-ins-w")).to_have_text("blue")
    hidden = preview.get_by_text("line_7")
    await expect(hidden).to_be_hidden()
    await preview.get_by_text("… 38 unchanged lines").click()
    await expect(hidden).to_be_visible()
    desk.server.push(calls("delete_cell", cell=cell))
    await notebook.click(agent, "Approve")
    await expect(desk.card(agent)).to_contain_text("42 lines would be deleted")
    await notebook.click(agent, "Deny")
    await desk.done()
    assert (await notebook.sources())[1] == new
    links = await notebook.output(agent).locator("a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
    run = links[0].removeprefix("#nbagent-undo-")
    assert links == [f"#nbagent-undo-{run}", f"#nbagent-again-{run}"], (
        "what a living notebook listens to is left as it is"
    )
    assert run.startswith("run-")
