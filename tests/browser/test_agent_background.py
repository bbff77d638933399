"""A run in the background in a page: its cell runs again, its output is cleared, and it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.support.messages_server import calls

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)


async def test_a_cell_whose_agent_runs_in_the_background_has_one_panel_however_often_it_is_run_or_cleared(
    desk: Desk,
) -> None:
    notebook = desk.notebook
    asking = await desk.ask(calls("run_python", code="6 * 7"), line="--background --name sevens")
    await desk.done()
    await expect(desk.card(asking)).to_have_count(1)
    slow = await notebook.add("import time; time.sleep(0.5)")  # the page would put a view back in 0.1 s
    await notebook.start(slow)
    await notebook.run(asking)
    await notebook.see(asking, "here is its panel again")
    await expect(desk.view(asking)).to_have_count(1)
    assert "VBox" not in await notebook.text(asking)

    await notebook.activate(asking)
    await notebook.js("return window.jupyterapp.commands.execute('notebook:clear-cell-output')")
    await expect(desk.card(asking), "it waits for an answer: its panel comes back").to_have_count(1)
    assert await notebook.js(f"return shared().getCell({asking}).executionState") == "idle"

    await notebook.add("1 / 0")
    order = await notebook.sources()
    await notebook.start(len(order) - 1)
    await notebook.start(asking)  # it does not come to its turn
    await expect(desk.card(asking)).to_have_count(1)
    await notebook.click(asking, "Stop")
    await notebook.see(asking, "Stopped by you.")
    await expect(desk.view(asking)).to_have_count(0)
