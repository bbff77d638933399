"""The main job in a real page: `%%agent`, approve, deny, stop; the model is played over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.messages_server import MessagesServer, Reply, call, calls, say

if TYPE_CHECKING:
    from tests.browser.lab import Lab
    from tests.browser.page import Notebook

pytestmark = pytest.mark.timeout(180)

AGENT = 1


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running
        running.assert_clean()


@asynccontextmanager
async def agent_notebook(lab: Lab, server: MessagesServer, *more: str, line: str = "", **options) -> AsyncIterator[Notebook]:
    """A notebook with nbagent loaded, an agent cell at `AGENT`, and `more` cells below it."""
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test"}
    cells = ["%load_ext nbagent", f"%%agent {line}\ndo it", *more]
    async with lab.open(cells, env=env, **options) as notebook:
        await notebook.run(0)
        yield notebook


async def test_approve_adds_the_cell_below_runs_it_and_the_variable_exists(lab: Lab, server: MessagesServer) -> None:
    async with agent_notebook(lab, server, "df + 1") as notebook:
        server.push(calls("add_cell", text="I make it.", source="df = 41\nprint('made')\ndf"))
        await notebook.start(AGENT)
        await notebook.see(AGENT, "df = 41")
        await notebook.screenshot("approval")
        server.push(say("There it is: **41**."))
        await notebook.click(AGENT, "Approve")
        await notebook.done(AGENT)
        assert (await notebook.sources())[AGENT + 1] == "df = 41\nprint('made')\ndf"
        assert "made" in await notebook.text(AGENT + 1)
        await notebook.run(AGENT + 2)
        assert await notebook.text(AGENT + 2) == "42"
        await notebook.screenshot("record")
