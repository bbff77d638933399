"""Runs in the background in a page: they work while the person does, are approved, watched, stopped, and leave their records."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.desk import agent_notebook
from tests.browser.page import PATIENCE
from tests.support.messages_server import MessagesServer, Reply, call, calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk
    from tests.browser.lab import Lab

pytestmark = pytest.mark.timeout(120)

FRAMES = "for (let n = 0; n < 30; n++) await new Promise(requestAnimationFrame)"


async def test_a_cell_whose_agent_runs_in_the_background_has_one_panel_however_often_it_is_run_or_cleared(
    desk: Desk, tmp_path: Path
) -> None:
    notebook = desk.notebook
    asking = await desk.ask(calls("run_python", code="6 * 7"), line="--background --name sevens")
    await desk.done()
    await expect(desk.card(asking)).to_have_count(1)
    os.mkfifo(tmp_path / "go")
    slow = await notebook.add(f"open({str(tmp_path / 'go')!r}).read()")
    await notebook.start(slow)
    await notebook.start(asking)
    await notebook.js(FRAMES)  # in which the page would put a view back
    await asyncio.to_thread((tmp_path / "go").write_text, "")
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


SAID: dict[str, list[Reply]] = {
    "DATES": [calls("add_cell", text="I look at the dates.", source="dates = 3\nprint('dates', dates)"), say("Three dates are wrong.")],
    "ROWS": [calls("run_python", text="I count the rows.", code="rows = 12\nprint(rows)"), say("There are 12 rows.")],
    "ASKS": [Reply([call("task", description="look up x", prompt="LOOK x up", run_in_background=True)]), say("It is looked up.")],
    "LOOK": [calls("run_python", text="I look it up.", code="x = 5\nprint(x)"), say("x is five.")],
    "TALK": [Reply("word " * 400, pace=0.1)],
    "HEAR": [say("I heard of them.")],
}  # fmt: skip
"""What the model says to a prompt with that word, reply by reply."""


def scripted(body: dict[str, Any]) -> Reply:
    """Return what is next in the conversation of a request: runs side by side ask in any order."""
    word, at = "", 0
    for index, message in enumerate(body["messages"]):
        blocks = message["content"] if message["role"] == "user" else []
        own = [
            block["text"] for block in blocks if block["type"] == "text" and not block["text"].startswith("<context>")
        ]
        if found := re.findall("|".join(SAID), " ".join(own)):
            word, at = found[-1], index
    return SAID[word][sum(message["role"] == "assistant" for message in body["messages"][at:])]


async def test_agents_in_the_background_work_while_the_person_does_and_each_leaves_its_record_in_its_own_cells(
    lab: Lab,
) -> None:
    cells = ("%%agent --background --name dates\nDATES of the sales", "%%agent --background --name rows\nROWS of the sales",
             "%%agent\nASKS somebody", "%agent agents watch rows", "'mine'", "%agent agents")  # fmt: skip
    dates, rows, asks, watch, mine, lists = range(1, 7)
    with MessagesServer(scripted) as server:
        async with agent_notebook(lab, server, *cells) as desk:
            notebook, tray = desk.notebook, desk.notebook.page.locator(".nbagent-tray")
            for cell in (dates, rows, asks, watch, mine):
                await notebook.run(cell)
            assert await notebook.text(mine) == "'mine'"
            await expect(tray.locator(".nbagent-traycount")).to_have_text("3 approvals wait")
            await notebook.run(lists)
            for name in ("“dates”", "“rows”", "“general-purpose (look up x)”"):
                assert name in await notebook.text(lists)

            await notebook.until(f"shared().getCell({asks}).executionState === 'idle'")
            assert await notebook.count(asks) == 4

            await notebook.save()
            await notebook.reload()
            await notebook.activate(dates)
            await notebook.click(dates, "Approve")
            await notebook.see(dates, "Three dates are wrong.")
            rows, asks, watch, mine, lists = (cell + 1 for cell in (rows, asks, watch, mine, lists))
            assert (await notebook.sources())[dates + 1].startswith("dates = 3")
            assert await notebook.text(dates + 1) == "dates 3\n"
            await expect(tray.locator(".nbagent-traycount")).to_have_text("2 approvals wait")

            await tray.locator(".nbagent-traytoggle").click()
            for name in ("look up x", "rows"):
                entry = tray.locator(".nbagent-trayentry").filter(has_text=name)
                await entry.get_by_role("button", name="Approve").click()
                await expect(entry).to_have_count(0)
            await expect(tray).to_be_hidden()
            for cell, said in ((rows, "12 rows"), (watch, "12 rows"), (asks, "It is looked up."), (asks, "x is five.")):
                await notebook.until(
                    f"JSON.stringify(shared().getCell({cell}).toJSON().outputs).includes({json.dumps(said)})"
                )
                await notebook.until(
                    f"!JSON.stringify(shared().getCell({cell}).toJSON().outputs).includes('widget-view')"
                )
            assert [await notebook.count(cell) for cell in (dates, rows, asks, watch, mine)] == [2, 3, 4, 5, 6]
            assert await notebook.text(mine) == "'mine'"
            await notebook.screenshot("background_records")

            gone = await notebook.add("%%agent --background --name gone\nTALK on")
            await notebook.run(gone)
            await notebook.see(gone, "word")
            await notebook.activate(gone)
            await notebook.js("return window.jupyterapp.commands.execute('notebook:delete-cell')")
            hears = await notebook.add("%%agent\nHEAR of them")
            await notebook.run(hears)
            told = json.dumps(server.requests[-1].body["messages"], ensure_ascii=False)
            for name in ("dates", "rows", "general-purpose (look up x)"):
                assert told.count(f"The agent “{name}”") == 1, name
            async with asyncio.timeout(PATIENCE):  # the page waits a moment: the cell may be moved
                while "No agent is running." not in await notebook.text(lists):
                    await notebook.run(lists)
            assert not server.refusals
