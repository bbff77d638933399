"""A person asks about a plot with `%%ask`, has the method reviewed, jumps to a line of it, and opens the report by its link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(180)

PLOT = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots(figsize=(4, 2))\nax.plot(days, units)\nax.set_title('Units a day')\nplt.show()"
REVIEW = (
    "### 1. low: The axis begins at 3\n`In[{plot}]:3` `ax.plot(days, units)`\nIt looks steeper.\nCheck: the range.\n\n"
    "### 2. high: A day is missing\n`In[{data}]:1` `days = [1, 2, 4]`\nDay 3 is not there.\nCheck: the source."
)


async def test_a_plot_is_asked_about_reviewed_line_by_line_and_reported_on_a_page_that_opens_by_its_link(
    desk: Desk,
) -> None:
    notebook = desk.notebook
    await desk.lay("days = [1, 2, 4]\nunits = [3, 5, 4]\nprint(sum(units))\n%matplotlib inline", PLOT)
    await notebook.run(1)
    await notebook.run(2)
    data, plot = await notebook.count(1), await notebook.count(2)

    asks = await desk.ask(calls("run_python", code="6 * 7"), say("It is 42."))
    await expect(desk.card(asks)).to_be_visible()
    await notebook.enter(2)  # as after Shift+Enter: the cursor is in a cell, the card in sight
    before = await notebook.sources()
    await notebook.press("Alt+a")
    await expect(desk.card(asks).locator(".nbagent-bar")).to_be_focused()
    assert await notebook.sources() == before, "an editor took the keys for its own"
    await desk.approve(asks)
    await desk.done()

    desk.server.push(calls("run_python", code="days.append(3)"), say(f"12 units were sold; In[{plot}] shows them."))
    ask = await notebook.add("%%ask\nWhat does @plot show?")
    await desk.start(ask)
    await desk.done()
    answer = notebook.output(ask)
    await expect(answer).to_contain_text("12 units were sold")
    await expect(desk.card(ask)).to_have_count(0)
    first = desk.server.requests[2].body["messages"][-1]["content"]
    assert [block["type"] for block in first].count("image") == 1, "the very figure goes with the question"
    assert "days.append" not in "".join(await notebook.sources()) and await notebook.evaluate("days") == "[1, 2, 4]"

    desk.server.push(say(REVIEW.format(data=data, plot=plot)))
    review = await notebook.add("%agent review")
    await desk.start(review)
    await desk.done()
    found = notebook.output(review)
    await expect(found.locator("h5")).to_have_text(["1. high: A day is missing", "2. low: The axis begins at 3"])
    await expect(found).to_contain_text("2 references to lines looked up: all stand there.")
    await found.get_by_role("link", name=f"In[{plot}]:3").click()
    await expect(notebook.cell(2)).to_be_in_viewport()

    report = await notebook.add("%agent report -o units.html --title Units --force")
    await notebook.run(report)
    link = notebook.output(report).get_by_role("link", name="units.html")
    await notebook.screenshot("report-cell")
    await link.click()
    page = notebook.page.frame_locator(".jp-HTMLViewer iframe")
    await expect(page.get_by_role("heading", name="Units", exact=True)).to_be_visible()
    await expect(page.locator("figcaption")).to_contain_text("Figure 1. Units a day")
    await expect(page.locator("table.ran")).to_contain_text("agent (claude-sonnet-5-5), asked by a person")
    await notebook.screenshot("report-page")
    html = (notebook.path.parent / "units.html").read_text("utf-8")
    assert "What does @plot show?" not in html.partition('class="appendix"')[0], "a question is no part of the analysis"
    await notebook.js("await window.jupyterapp.shell.currentWidget.close(); panel().activate?.()")
