"""Rows 1, 35, 37, 38: wherever a run is stopped in a real kernel, it ends within a second and the next one works."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, Silence, call

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

SYNC = "print('it runs')\nwhile True: pass"
WAITS = "print('it runs')\nimport asyncio\nawait asyncio.sleep(60)"
PRINTED = '"text": "it runs'  # the code itself is shown before it runs
APPROVE = '"description": "Approve"'
THREE = ["stopped", "second", "third"]


def three(tool, **given):
    """Three calls of one reply; the run is stopped in the first."""
    return Reply([call(tool, **given), *(call("run_python", code=f"{name} = 1") for name in THREE[1:])])


STATES = {
    "before the first byte": ([Silence()], None, []),
    "in a silent stream": ([Reply("a word, then silence", chunk=40, hang_after=3)], "a word, then", []),
    "in pings": ([Reply("a word, then pings", chunk=40, ping_after=3)], "a word, then", []),
    "in synchronous code of a cell": ([three("add_cell", source=SYNC)], PRINTED, ["Interrupted", "Not started", "Not started"]),
    "in awaiting code of a cell": ([three("add_cell", source=WAITS)], PRINTED, ["Interrupted", "Not started", "Not started"]),
    "in a scratch run": ([three("run_python", code="while True: pass")], '"running"', ["Interrupted", "Not started", "Not started"]),
    "in a command": ([three("shell", command="sleep 60")], '"running"', ["Interrupted", "Not started", "Not started"]),
}  # fmt: skip


async def test_an_interrupt_ends_the_run_within_a_second_whatever_it_is_doing(tmp_path):
    """The kernel's own interrupt. Each call of the reply is answered once: interrupted, then not started."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_MODE="bypass") as room:
            await room.cell("kept = 1")
            for state, (replies, sign, expected) in STATES.items():
                await stopped(room, state, replies, sign, room.interrupt)
                begun = room.results()[-len(expected) :] if expected else []
                assert [text.split(":")[0] for text in begun] == expected, (state, room.results())
                await room.still_works()
            assert await room.value("[kept, 'second' in globals()]") == [1, False]
        server.assert_clean()


async def stopped(room, state, replies, sign, stop):
    """Run a cell, `stop` it when the view shows `sign` (or the request has come), and see it end within a second."""
    before = len(room.server.requests)
    showing = asyncio.create_task(room.seen(sign)) if sign else None
    running = asyncio.create_task(room.cell("%%agent\ngo", *replies))
    await asyncio.to_thread(room.server.wait_for_requests, before + 1, 20)
    if showing is not None:
        async with asyncio.timeout(20):
            await showing
    begin = time.monotonic()
    stop()
    shown = await running
    seconds = time.monotonic() - begin
    assert seconds < 1.5, f"{state}: {seconds:.1f} s"
    shown.says("Stopped by you.")
    for messages in room.transcripts():
        check_transcript(messages)
    return shown


async def test_an_open_approval_ends_with_the_interrupt_the_stop_button_or_the_time_limit(tmp_path):
    """A page with a person: nothing runs, the calls are answered, and a click that comes late does nothing."""
    asks = [call("run_python", code="ran = 1"), call("run_python", code="ran = 2")]
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True) as room:
            for stop in (room.interrupt, lambda: room.page.click("Stop")):
                await stopped(
                    room, "approval", [Reply([dict(a, id=f"{a['id']}{id(stop)}") for a in asks])], APPROVE, stop
                )
                assert all(text.startswith("Not started") for text in room.results()[-2:])
                room.page.click("Approve")
                await room.still_works()
            shown = await room.cell("%%agent --timeout 1\ngo", Reply([call("run_python", code="ran = 3")]))
            shown.says("time limit of the run was reached")
            assert not shown.error
            assert await room.value("'ran' in globals()") is False
            await room.still_works()
        server.assert_clean()


async def test_a_click_approves_and_the_call_runs(tmp_path):
    """Rows 27 and 29 end to end on this kernel: the click arrives while the cell runs and wakes the waiting run."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True) as room:
            asking = asyncio.create_task(room.seen(APPROVE))
            running = asyncio.create_task(
                room.cell("%%agent\ngo", Reply([call("add_cell", source="ran = 'yes'")]), "Done so.")
            )
            await asking
            while not running.done():  # a click within the card's dead time does not count, as for a double click
                room.page.click("Approve")
                await asyncio.wait({running}, timeout=0.2)
            (await running).says("Done so.", "add and run a code cell")
            assert await room.value("ran") == "yes"
        server.assert_clean()


async def test_two_interrupts_in_a_row_leave_no_run_behind(tmp_path):
    """Row 38: people press twice. The second must not leave the first run alive, nor hit the next cell."""
    with MessagesServer() as server:
        async with Room(tmp_path, server, NBAGENT_MODE="bypass") as room:
            for replies, sign in (([Silence()], None), ([Reply([call("add_cell", source=WAITS)])], PRINTED)):

                def twice():
                    room.interrupt()
                    room.interrupt()

                await stopped(room, "twice", replies, sign, twice)
                await room.still_works()
            names = await room.value(
                "[t.get_name() for t in __import__('asyncio').all_tasks() if 'nbagent' in repr(t)]"
            )
            assert names == []
        server.assert_clean()
