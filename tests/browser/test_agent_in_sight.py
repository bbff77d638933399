"""What asks the person is in sight and can be read: the card, all of its change, and every colour, light and dark."""

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

IN_SIGHT = """card => {
  const frame = card.closest('.jp-WindowedPanel-outer').getBoundingClientRect();
  const at = (card.querySelector('.nbagent-asktitle') ?? card).getBoundingClientRect();
  return at.top >= frame.top && at.bottom <= frame.bottom;
}"""

LOW_CONTRAST = """view => {
  const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
  const paint = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(x => x / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const low = [];
  const walker = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const text = walker.currentNode, parent = text.parentElement;
    if (!text.data.trim() || !parent.checkVisibility({visibilityProperty: true})) continue;
    if (parent.closest('button:disabled, .nbagent-sr, style')) continue;
    const grounds = [];
    for (let each = parent; each; each = each.parentElement) grounds.unshift(getComputedStyle(each).backgroundColor);
    const ground = paint(['#fff', ...grounds]);
    const ink = paint([`rgb(${ground})`, getComputedStyle(parent).color]);
    const [high, less] = [light(ground), light(ink)].sort((a, b) => b - a);
    const ratio = (high + .05) / (less + .05);
    seen += 1;
    if (ratio < 4.5) low.push([text.data.trim().slice(0, 40), parent.className, Math.round(ratio * 100) / 100]);
  }
  return [seen, low];
}"""

BEFORE = "\n".join(["import pandas as pd", "@cached", "def f(x):  # a comment", *(f"    step_{n} = {n}" for n in range(30)),
                    "    return 'red', 7, print(x)"])  # fmt: skip
AFTER = BEFORE.replace("'red', 7, print(x)", "'blue', 77, print(x, len(x))")


def more(desk: Desk, cell: int) -> Locator:
    return desk.card(cell).locator(".nbagent-more")


async def test_whether_there_is_more_to_read_is_said_by_the_height_and_every_colour_can_be_read(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(lab, server, BEFORE, viewport=(1280, 1000)) as desk:
        notebook = desk.notebook
        cell = await notebook.js("return shared().getCell(1).getId()")
        long = " + ".join(f"a_long_name_of_a_variable_{n}" for n in range(24))
        edits = [call("edit_cell", cell=cell, source=AFTER), call("add_cell", source=f"# two lines\ntotal = {long}")]
        agent = await desk.ask(calls("read_cell", cell=cell), Reply(edits))
        await expect(notebook.button(agent, "Approve all 2")).to_be_enabled()
        diff, wide = more(desk, agent).nth(0), more(desk, agent).nth(1)
        await expect(diff, "34 lines, of which 30 are folded").to_be_hidden()
        await expect(wide).to_be_hidden()
        for theme in ("light", "dark"):
            await notebook.page.emulate_media(color_scheme=theme)
            await notebook.until(f"(document.body.dataset.jpThemeLight === 'true') === ({theme!r} === 'light')")
            await notebook.until("document.querySelector('#jupyterlab-splash') === null")
            await notebook.page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
            seen, low = await desk.view(agent).evaluate(LOW_CONTRAST)
            assert seen > 40
            assert low == [], theme
            await notebook.screenshot(f"in_sight_{theme}")
        await desk.card(agent).get_by_text("… 30 unchanged lines").click()
        await expect(diff).to_contain_text("There is more below")
        await notebook.page.set_viewport_size({"width": 600, "height": 900})
        await expect(wide, "two lines that do not fit").to_contain_text("There is more below")
        await notebook.screenshot("in_sight_narrow")
        await wide.get_by_role("button", name="Show all of it").click()
        await expect(wide).to_be_hidden()
        await notebook.click(agent, "Deny")
        await desk.done()


async def test_a_new_card_is_brought_into_sight_once_and_who_types_elsewhere_is_told_at_the_edge(
    lab: Lab, server: MessagesServer
) -> None:
    async with agent_notebook(
        lab, server, *(f"filler_{n} = {n}\n\n\n\n" for n in range(12)), viewport=(1000, 700)
    ) as desk:
        notebook = desk.notebook
        tall = "\n".join(f"row_{n} = {n}" for n in range(60))
        agent = await desk.ask(calls("add_cell", source=tall))
        card = desk.card(agent)
        await expect(notebook.button(agent, "Approve")).to_be_enabled()
        assert await card.evaluate(IN_SIGHT), "it came below the last line of the window"
        await notebook.button(agent, "Show all of it").click()
        await desk.view(agent).locator(".nbagent-bar").focus()
        desk.server.push(calls("add_cell", source="short = 1"))
        await notebook.press("Enter")
        await expect(card).to_contain_text("short = 1")
        await expect(notebook.button(agent, "Approve")).to_be_enabled()
        assert await card.evaluate(IN_SIGHT), "the card before it was taller"

        tray, sign = notebook.page.locator(".nbagent-tray"), notebook.page.locator(".nbagent-sign")
        await expect(tray).to_be_hidden()
        await notebook.js(
            "content().activeCellIndex = 1; content().mode = 'edit'; return content().scrollToItem(1, 'start')"
        )
        await notebook.until("document.activeElement.matches('.cm-content')")
        await expect(tray).to_contain_text("1 approval waits")
        await expect(sign).to_be_hidden()
        await notebook.page.keyboard.type("typed = 1")
        assert (await notebook.sources())[1].endswith("typed = 1") or "typed = 1" in (await notebook.sources())[1]
        await notebook.js("panel().node.removeAttribute('data-nbagent-tray')")  # as in a page that has no tray
        await expect(sign).to_have_text("↓ The agent asks you")
        await notebook.js("panel().node.dataset.nbagentTray = '1'")
        await tray.get_by_role("button", name="Go to its cell").click()
        await expect(tray).to_be_hidden()
        assert await card.evaluate(IN_SIGHT)
        desk.server.push(say("Both are there."))
        await notebook.press("Enter")
        await desk.done()
        await notebook.see(agent, "Both are there.")
        await notebook.until(
            "document.activeElement.closest('.jp-Cell') != null && document.activeElement !== document.body"
        )
