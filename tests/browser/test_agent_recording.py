"""A recorded cell played again in a real page: the same cell is added, and with recorded results nothing is run or asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.messages_server import calls, say

if TYPE_CHECKING:
    from tests.browser.desk import Desk

pytestmark = pytest.mark.timeout(120)

ADDED = "total = 1 + 1\nprint('total', total)"


async def test_a_replay_asks_no_model_and_with_recorded_results_no_person(desk: Desk) -> None:
    notebook = desk.notebook
    replies = calls("add_cell", text="I add it up.", source=ADDED), say("It is **2**.")
    agent = await desk.ask(*replies, line="--record run.jsonl", task="Add it up.", new=False)
    await desk.approve(agent)
    await desk.done()
    await notebook.see(agent, "It is 2.")
    asked, before = len(desk.server.requests), len(await notebook.sources())

    played = await desk.ask(line="--replay-loose run.jsonl --recorded-results", task="Add it up.", new=False)
    await desk.done()
    await notebook.see(played, "It is 2.")
    await notebook.see(played, "no model is asked")
    assert len(desk.server.requests) == asked
    assert len(await notebook.sources()) == before + 1
