"""Runs in the background in a real kernel with a page and a person."""

from __future__ import annotations

import json

import pytest

from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(170)]


async def test_two_branches_side_by_side_are_compared_and_told_once(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:
            await room.cell("x = 41")
            await room.cell("%%agent\nRemember the word pear.", "Pear it is.")
            one = await room.cell("%%agent --background --name plum --out a\nWhat is x?")
            two = await room.cell("%%agent --background --name fig --out b\nWhat is x?")
            assert not one.error and not two.error, one.seen + two.seen
            server.push(*(calls("run_python", code="print(x)") for _ in range(2)), "x is 41.", "x is 41.")
            assert (await room.cell("print((await a).text, (await b).text)")).record == "x is 41. x is 41.\n"
            one.says("x is 41.")
            two.says("x is 41.")
            text = (await room.cell("%agent compare a b")).cell.outputs[-1]["data"]["text/plain"]
            assert "plum" in text and "fig" in text, text
            await room.cell("%%agent\nWhat now?", "Well.")
            told = json.dumps(server.requests[-1].body["messages"], ensure_ascii=False)
            assert told.count("The agent “plum”") == told.count("The agent “fig”") == 1
            await room.cell("%%agent\nAnd now?", "Well.")
            again = json.dumps(server.requests[-1].body["messages"][-1], ensure_ascii=False)
            assert "The agent “" not in again
            stopped = await room.cell("%%agent --background --name kiwi --out c\nWhat is x?")
            await room.cell("c.stop()\n(await c).stop_reason", within=15)
            stopped.says("Stopped by you.")
            went_on = await room.cell("%agent continue", within=20)  # the model has not answered yet
            server.push(*["It goes on."] * 4)  # requests that were stopped may take some
            await room.cell("%agent agents front kiwi")
            went_on.says("It goes on.")
            for messages in room.transcripts():
                check_transcript(messages)
