"""Keys in the view: they never edit the notebook, they reach everything, and they are enough for the whole task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)

COMMANDS = ("a", "b", "d", "d", "x", "c", "v", "z", "m", "y", "r", "1", "l", "o", "0", "0", "i", "i", "s", "k", "j",
            "ArrowUp", "ArrowDown", "Delete", "Backspace", "Shift+M")  # fmt: skip
"""What JupyterLab's command mode would do something with; none of them is a key of ours."""
HARMLESS_THERE = ("Enter", "Shift+Enter", "Control+Enter", "Alt+Enter", "Escape")
SETTLED = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)))"

FOCUS = """() => {
  const e = document.activeElement;
  return e === document.body ? "body" : e.getAttribute("aria-label") || e.innerText || e.className;
}"""


async def state(desk: Desk) -> str:
    """The notebook as a person would have edited it: cells in order, with their types, and the number of tabs."""
    return await desk.notebook.js(
        "return JSON.stringify([shared().cells.map(c => [c.getId(), c.cell_type, c.getSource()]),"
        "content().activeCellIndex, [...window.jupyterapp.shell.widgets('main')].length,"
        "!!document.querySelector('.jp-Dialog')])"
    )


async def has_focus(desk: Desk, name: str) -> None:
    """Return when what has the focus bears that name."""
    await desk.notebook.page.wait_for_function(f"({FOCUS})().includes('{name}')")


async def test_no_key_typed_in_the_view_edits_the_notebook(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay("first = 1", "second = 2")
    agent = await desk.ask(calls("add_cell", text="I plan.\n\n<b>x</b>", source="never = 1"))
    await notebook.click(agent, "Allow from now on…")
    view = desk.view(agent)
    await expect(notebook.button(agent, "Allow this code")).to_be_enabled()
    before = await state(desk)
    places = ['[tabindex="-1"]', ".nbagent-preview", ".nbagent-bar", ".nbagent-approve", ".nbagent-deny",
              ".nbagent-editing", ".nbagent-allow", ".nbagent-keep >> nth=0", ".nbagent-stop"]  # fmt: skip
    for place in places:
        await view.locator(place).first.focus()
        await notebook.press(*COMMANDS)
        await notebook.page.evaluate(SETTLED)
        assert await state(desk) == before, f"after keys at {place}"
        assert await view.evaluate("view => view.contains(document.activeElement)"), f"the focus left {place}"
    box = view.get_by_label("What to do instead", exact=True)
    await box.focus()
    await notebook.press("a", "b", "d", "d", "x", "m", "y")
    await expect(box).to_have_value("abddxmy")
    await box.fill("")
    await notebook.press(*HARMLESS_THERE)  # Enter in an empty box answers nothing
    await notebook.page.evaluate(SETTLED)
    assert await state(desk) == before
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    await notebook.click(agent, "Edit")
    code = view.locator(".nbagent-area textarea")
    await code.press("Control+A")
    await notebook.press("a", "b", "d", "d", "x", "m", "Tab", "y", "Shift+Enter", "Control+Enter")
    await expect(code).to_have_value("abddxm    y\n")
    await notebook.page.evaluate(SETTLED)
    assert await state(desk) == before
    await notebook.click(agent, "Stop")
    await desk.done()
    assert (await notebook.sources())[1:3] == ["first = 1", "second = 2"]


async def test_enter_on_the_bar_approves_and_escape_goes_to_the_box_for_words(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="once = 1"))
    bar = desk.view(agent).locator(".nbagent-bar")
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    await bar.focus()
    desk.server.push(calls("add_cell", source="twice = 2"))
    await notebook.press("Enter")
    await expect(desk.card(agent)).to_contain_text("twice = 2")
    await expect(notebook.button(agent, "Approve")).to_be_enabled()
    await has_focus(desk, "Approve or deny")  # the next bar
    desk.server.push(say("As you say."))
    await notebook.press("Escape")
    assert await notebook.page.evaluate(FOCUS) == "What to do instead"
    await notebook.page.keyboard.type("better not")
    await notebook.press("Enter")
    await desk.done()
    assert "better not" in desk.results(2)
    assert await notebook.evaluate("'once' in globals(), 'twice' in globals()") == "(True, False)"


async def test_tab_reaches_every_control_and_leaves_the_view_again(desk: Desk) -> None:
    notebook = desk.notebook
    agent = await desk.ask(calls("add_cell", source="x = 1"))
    await notebook.click(agent, "Allow from now on…")
    await expect(notebook.button(agent, "Allow this code")).to_be_enabled()
    await desk.view(agent).locator(".nbagent-timeline").first.focus()
    reached: list[str] = []
    while len(reached) < 30 and await desk.view(agent).evaluate("view => view.contains(document.activeElement)"):
        await notebook.press("Tab")
        reached.append((await notebook.page.evaluate(FOCUS)).strip())
    names = ["Approve or deny", "Approve", "Deny", "What to do instead", "Edit", "Allow from now on…",
             "Allow this code", "Allow every add_cell", "Stop"]  # fmt: skip
    order = iter(reached)
    assert all(any(found.startswith(name) for found in order) for name in names), reached
    assert len(reached) < 30, "Tab is no trap"
    await notebook.click(agent, "Stop")
    await desk.done()


async def test_the_whole_task_with_the_keyboard_only(desk: Desk) -> None:
    notebook = desk.notebook
    await notebook.activate(0)
    desk.server.push(calls("add_cell", source="by_key = 1"))
    await notebook.press("b", "Enter")
    await notebook.typing(1)
    await notebook.page.keyboard.type("%%agent --new\ndo it")
    await notebook.press("Control+Enter")
    await expect(notebook.button(1, "Approve")).to_be_enabled()
    for _ in range(20):
        await notebook.press("Tab")
        if (await notebook.page.evaluate(FOCUS)).startswith("Approve or deny"):
            break
    desk.server.push(calls("add_cell", source="by_key = 2"))
    await notebook.press("Enter")
    await expect(desk.card(1)).to_contain_text("by_key = 2")
    await expect(notebook.button(1, "Approve")).to_be_enabled()
    await has_focus(desk, "Approve or deny")
    desk.server.push(say("Done by keys."))
    await notebook.press("Enter")
    await notebook.see(1, "Done by keys.")
    assert await notebook.evaluate("by_key") == "2"


async def test_who_came_to_a_card_by_key_is_back_where_they_were_when_the_run_ends(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay("%%agent --new\ndo it", "went_on = 1")
    desk.server.push(calls("add_cell", source="added = 1"))
    await notebook.activate(1)
    await notebook.press("Shift+Enter")
    await expect(notebook.button(1, "Approve")).to_be_enabled()
    await notebook.press("Alt+a")
    await has_focus(desk, "Approve or deny")
    desk.server.push(say("Added."))
    await notebook.press("Enter")
    await notebook.until("content().activeCell?.model.sharedModel.getSource() === 'went_on = 1'")
    await desk.done()
    await notebook.press("Shift+Enter")
    await notebook.until("shared().cells.some(c => c.getSource() === 'went_on = 1' && c.execution_count != null)")


async def test_the_whole_task_with_the_mouse_only(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay("%%agent --new\ndo it", "1 + 1")
    desk.server.push(calls("add_cell", source="by_mouse = 1"))
    await notebook.cell(1).locator(".jp-InputArea-editor").click()
    await notebook.page.locator('[data-command="notebook:run-cell-and-select-next"]').first.click()
    await expect(notebook.button(1, "Approve")).to_be_enabled()
    await notebook.click(1, "Allow from now on…")
    await expect(notebook.button(1, "Allow every add_cell")).to_be_enabled()
    desk.server.push(calls("add_cell", source="by_mouse = 2"), say("Done by mouse."))
    await notebook.button(1, "Allow every add_cell").click()
    await notebook.see(1, "Done by mouse.")
    assert await notebook.evaluate("by_mouse") == "2"
