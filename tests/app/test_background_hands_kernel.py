"""What a person does to runs in the background of a real kernel: interrupt, watch, wait for one, stop one, unload."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, calls
from tests.support.turns import until

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(170)]

SPIN = "import pathlib\npathlib.Path('spins').touch()\nwhile True: pass"


def thinks() -> Reply:
    """A reply that begins and never ends."""
    return Reply("I think of it.", hang_after=5)


async def test_an_interrupt_hits_only_the_code_that_runs_and_each_run_is_watched_waited_for_stopped_or_unloaded(
    tmp_path,
):
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:
            first = await room.cell("%%agent --background --name thinks --out a\nThink.", thinks())
            await asyncio.to_thread(server.wait_for_requests, 1)
            server.push(calls("run_python", code=SPIN))
            await room.cell("%%agent --background --name spins --out b\nSpin.")
            await until((tmp_path / "spins").exists, within=30)
            room.interrupt()
            *_, told = await asyncio.to_thread(server.wait_for_requests, 3, 30)
            assert "interrupted" in json.dumps(told.body["messages"][-1])
            listed = await room.cell("%agent agents")
            listed.says("“thinks”", "“spins”", "in the background")

            watching = await room.cell("%agent agents watch thinks")
            assert "widget-view" in str(watching.cell.outputs)
            waiting = asyncio.create_task(room.cell("%agent agents front spins"))
            await until(lambda: room.page.nb.cells[-1].outputs)
            assert not waiting.done()
            server.push("It was cut short.")
            (await waiting).says("It was cut short.")
            assert await room.value("[a.done, b.done, b.answer.stop_reason]") == [False, True, "end_turn"]

            (await room.cell("%agent agents stop thinks")).says("Stopping")
            assert await room.value("(await a).stop_reason") == "interrupted"
            first.says("Stopped by you.")

            last = await room.cell("%%agent --background --name unloaded --out c\nThink again.", thinks())
            await asyncio.to_thread(server.wait_for_requests, 4)
            assert not (await room.cell("%unload_ext nbagent")).error
            assert await room.value("(await c).stop_reason") == "interrupted"
            assert "widget-view" not in str([first.cell.outputs, last.cell.outputs])
            await room.cell("%load_ext nbagent")
            await room.still_works()
            for messages in room.transcripts():
                check_transcript(messages)
