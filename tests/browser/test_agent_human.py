"""Be the model in a real page: the task of notebook 04 is done by a person, with the mouse, and Ctrl+Enter at the end."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.async_api import expect

from tests.browser.desk import environment
from tests.source import ROOT
from tests.support.messages_server import MessagesServer

if TYPE_CHECKING:
    from playwright.async_api import Locator

    from tests.browser.lab import Lab
    from tests.browser.page import Notebook

pytestmark = pytest.mark.timeout(120)

LESSON = ROOT / "notebooks" / "04_tools.ipynb"
PLAYED = ("load", "count", "register", "agent-human")


async def begun(notebook: Notebook) -> tuple[int, Locator]:
    """Run the cells that the task needs and start it; return its cell and the card of its first turn."""
    for cell in range(len(PLAYED) - 1):
        await notebook.run(cell)
    agent = len(PLAYED) - 1
    await notebook.start(agent)
    return agent, notebook.output(agent).locator(".nbagent-human")


async def add_call(card: Locator, **fields: str) -> None:
    """Add a call and fill its form in."""
    await card.get_by_role("button", name="Add a call").click()
    for name, value in fields.items():
        box = card.get_by_label(f"call count_rows: {name}")
        await (box.select_option(value) if name == "species" else box.fill(value))


async def test_a_person_is_the_model_and_finishes_the_lessons_task(lab: Lab, server: MessagesServer) -> None:
    lesson = nbformat.read(LESSON, as_version=4)
    lesson.cells = [cell for cell in lesson.cells if cell.id in PLAYED]
    shutil.copytree(LESSON.parent / "data", lab.root / "data", dirs_exist_ok=True)
    async with lab.open(lesson, env=environment(server)) as notebook:
        agent, card = await begun(notebook)
        await expect(card).to_contain_text("Reply 1")
        await expect(card).to_contain_text("How many Gentoo penguins")
        await add_call(card, min_mass="5500")
        await expect(card.locator(".nbagent-replypreview")).to_contain_text('"min_mass": 5500')
        await notebook.click(agent, "Send reply")
        await expect(card.get_by_role("alert")).to_contain_text("species is required")
        await card.get_by_label("Check before sending").click()
        await notebook.click(agent, "Send reply")
        await expect(card).to_contain_text("Reply 2")
        await expect(card.locator(".nbagent-newmessages")).to_contain_text("species: field required")
        await add_call(card, species="Gentoo", min_mass="5500")
        await notebook.click(agent, "Send reply")
        await expect(card).to_contain_text("Reply 3")
        found = await card.locator(".nbagent-newmessages pre").last.inner_text()
        await card.get_by_label("Words").fill(f"{found.strip()} penguins.")
        await expect(notebook.button(agent, "Send reply")).to_be_enabled()
        await notebook.press("Control+Enter")
        await notebook.see(agent, f"{found.strip()} penguins.")
        await expect(card).to_have_count(0)
        assert int(found) > 1
        assert not server.requests, "no server was asked"
