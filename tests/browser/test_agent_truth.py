"""A person tidies a messy notebook with the mouse, in one card, and has it verified from a clean kernel; links go to cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(240)
LONG = 120


async def test_a_notebook_is_tidied_in_one_card_and_verified_from_a_clean_kernel(desk: Desk) -> None:
    notebook = desk.notebook
    await desk.lay(
        "import os\nimport sys",
        "old = 1",
        "import json\njson.dumps([1, 2])",
        "low = 2",
        "low + 1",
        "import random\nrandom.random()",
        "gone = low * 2\ngone",
    )
    for cell in range(1, 8):
        await notebook.run(cell)
    await notebook.write(
        7, "gone_now = low * 2\ngone"
    )  # as a person does who renames half of it: `gone` is in the kernel yet
    await notebook.run(7)
    tidy = await notebook.add("%agent tidy")
    await desk.start(tidy)
    card = desk.card(tidy)
    await expect(card.locator(".nbagent-tick input")).to_have_count(3, timeout=30_000)
    await expect(card).to_contain_text(re.compile(r"delete In\[\d+\]: nothing uses `old`, and it shows nothing"))
    await notebook.screenshot("tidy-card")
    await card.locator(".nbagent-tick input").nth(1).uncheck()
    await notebook.click(tidy, "Approve 2 of 3")
    await desk.done(patience=LONG)
    sources = await notebook.sources()
    await notebook.see(len(sources) - 1, "2 of 3 changes made")
    assert sources[1:6] == ["import os\nimport sys\nimport json\nimport random", "old = 1", "json.dumps([1, 2])",
                            "low = 2\nlow + 1", "random.random()"]  # fmt: skip
    check = await notebook.add("%agent verify")
    await desk.start(check)
    await desk.done(patience=LONG)
    record = notebook.output(check)
    await expect(record).to_contain_text("Not reproducible: In[")
    await expect(record).to_contain_text("it was left in the old kernel by code that is gone")
    await expect(record).to_contain_text("is random")
    await record.locator("summary", has_text="What depends on what").click()
    await expect(record.locator("svg[role=img]")).to_be_visible()
    await notebook.screenshot("verify-light")
    await notebook.page.emulate_media(color_scheme="dark")
    await notebook.page.set_viewport_size({"width": 640, "height": 900})
    await notebook.screenshot("verify-dark-narrow")
    await notebook.page.set_viewport_size({"width": 1280, "height": 1000})
    await notebook.page.emulate_media(color_scheme="light")
    await notebook.page.locator(".jp-WindowedPanel-outer").first.evaluate("box => box.scrollTo(0, box.scrollHeight)")
    await record.locator('a[href^="#nbagent-cell-"]').first.click()
    await expect(notebook.cell(1)).to_be_in_viewport()
    saved = await notebook.save()
    assert "Not reproducible" in saved.cells[check].outputs[0].data["text/html"]
    assert "What depends on what" in saved.cells[check].outputs[0].data["text/plain"]
