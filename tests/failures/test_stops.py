"""Rows 1, 35, 37, 38: wherever a run is stopped in a real kernel, it ends and the next one works.

That it ends soon is seen by its not waiting for what it does, which takes a minute or for ever.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, Silence, call
from tests.support.turns import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

SYNC = "print('it runs')\nwhile True: pass"
WAITS = "print('it runs')\nimport asyncio\nawait asyncio.sleep(60)"
PRINTED = '"text": "it runs'  # the code itself is shown before it runs
BEGUN = "begun"
"""The file that code or a command makes when it runs: that its call has begun is shown a moment before."""
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
    "in a scratch run": ([three("run_python", code=f"open({BEGUN!r}, 'w').close()\nwhile True: pass")], BEGUN, ["Interrupted", "Not started", "Not started"]),
    "in a command": ([three("shell", command=f"touch {BEGUN}; sleep 60")], BEGUN, ["Interrupted", "Not started", "Not started"]),
}  # fmt: skip


async def test_an_interrupt_ends_the_run_whatever_it_is_doing(tmp_path):
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
    """Run a cell, `stop` it when the view shows `sign` (or there is the file, or the request has come), and see it end."""
    before = len(room.server.requests)
    begun = room.folder / BEGUN
    begun.unlink(missing_ok=True)
    showing = asyncio.create_task(room.seen(sign)) if sign and sign != BEGUN else None
    running = asyncio.create_task(room.cell("%%agent\ngo", *replies))
    await asyncio.to_thread(room.server.wait_for_requests, before + 1, 60)
    if showing is not None:
        async with asyncio.timeout(60):
            await showing
    if sign == BEGUN:
        await asyncio.to_thread(wait_until, begun.exists)
    stop()
    try:
        async with asyncio.timeout(20):
            shown = await running
    except TimeoutError:
        raise AssertionError(f"{state}: it still runs after 20 s") from None
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
            asking = asyncio.create_task(room.seen(APPROVE))
            shown = await room.cell("%%agent --timeout 6\ngo", Reply([call("run_python", code="ran = 3")]))
            shown.says("time limit of the run was reached")
            assert not shown.error and asking.done(), "it was asked"
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
            await room.cell(
                "import asyncio\n"
                "while any('nbagent' in repr(t) for t in asyncio.all_tasks()): await asyncio.sleep(0.02)",
                within=20,
            )  # what closes the last view may still be about to end
        server.assert_clean()
