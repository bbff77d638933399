"""A mention completed by Tab in JupyterLab, told in the panel; a query shown as SQL in colours, its result as a table."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import TimeoutError as Late
from playwright.async_api import expect

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk
    from tests.browser.page import Notebook

pytestmark = pytest.mark.timeout(120)

SQL = "SELECT region, sum(amount) AS total\nFROM sales\nGROUP BY region ORDER BY region"


async def offered(notebook: Notebook, text: str) -> None:
    """Press Tab until `text` is offered: JupyterLab gives a kernel a second for its answer, which a busy machine may miss."""
    enabled = notebook.cell(2).locator(".jp-mod-completer-enabled")  # where Tab completes and does not indent
    shown = notebook.page.locator(".jp-Completer:not(.lm-mod-hidden)", has_text=text)
    for _ in range(6):
        await expect(enabled).to_have_count(1)
        await notebook.press("Tab")
        with contextlib.suppress(Late):
            await shown.wait_for(timeout=4_000)
            return
    await expect(shown).to_have_count(1)


async def test_a_mention_is_completed_by_tab_and_a_query_is_shown_with_its_table(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay(
        "import pandas as pd\nsales = pd.DataFrame({'region': ['north', 'south', 'north'], 'amount': [1, 2, 4]})",
        "%%agent --new\nSum up @sal",
    )
    await notebook.run(1)
    await notebook.enter(2)
    await notebook.press("Control+End")
    await offered(notebook, "sales")
    await notebook.press("Enter")
    await notebook.until("shared().cells[2].getSource().endsWith('@sales')")
    await notebook.page.keyboard.type(" and @cell:")
    await offered(notebook, "import\u00a0pandas")
    await notebook.screenshot("mentions-tab")
    await notebook.press("Enter")

    desk.server.push(calls("query", sql=SQL), say("North has 5, south 2."))
    await desk.start(2)
    await desk.done()
    source = (await notebook.sources())[2]
    assert source.startswith("%%agent --new\nSum up @sales and @cell:")
    first = desk.server.requests[0].body["messages"][0]["content"]
    said = "\n".join(block.get("text", "") for block in first)
    assert source.partition("\n")[2] in said
    assert "@sales: pandas DataFrame" in said
    output = notebook.output(2)
    await expect(output).to_contain_text("North has 5, south 2.")
    await output.locator("summary").first.click()
    await expect(output).to_contain_text("Given: sales (pandas DataFrame 3 × 2)")
    await output.locator("summary", has_text="query SELECT").click()
    rows = output.locator("table tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.nth(0)).to_have_text("north5")
    await expect(output.locator("code span", has_text="SELECT").first).to_be_visible()
    await notebook.screenshot("mentions-query")
