"""Cells that are run again in one kernel, headless and with a person: what is asked, what is kept, and where it goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.failures.room import Room, Shown
from tests.support.messages_server import MessagesServer, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]


@pytest.fixture
def server():
    with MessagesServer() as server:
        yield server
        server.assert_clean()


async def again(room: Room, shown: Shown, *replies: Any, source: str | None = None, click: str = "") -> Shown:
    """Run a cell of the room again; `click` is the button to press when the question is there, which offers to keep it."""
    room.server.push(*replies)
    node = shown.cell
    node.source = source if source is not None else node.source
    node.outputs.clear()
    buttons = room.page._buttons
    buttons.clear()
    running = asyncio.create_task(room.page.async_execute_cell(node, room.page.nb.cells.index(node)))
    async with asyncio.timeout(40):
        while click and not running.done():  # a click within the card's dead time does not count
            if any(face.startswith("Keep the ") for face in buttons):
                room.page.click(click)
            await asyncio.wait({running}, timeout=0.2)
        await running
    return Shown(node, 0)


def prompts(server: MessagesServer, request: int = -1) -> list[str]:
    """What the person wrote, in the messages of a request."""
    messages = server.requests[request].body["messages"]
    return [m["content"][-1]["text"] for m in messages if m["role"] == "user" and m["content"][-1]["type"] == "text"]


async def test_a_cell_goes_on_from_before_its_last_run_and_only_finished_runs_are_kept(tmp_path, server):
    async with Room(tmp_path, server) as room:
        first = await room.cell("%%agent\nfirst", "Answer one.")
        second = await room.cell("%%agent\nsecond", calls("run_python", code="1"), "I was not allowed to.")
        assert "Not refused" in (await again(room, second, "Not refused anything now.")).record, "a refusal is not kept"
        asked = len(server.requests)
        assert "Not refused" in (await again(room, second)).record and len(server.requests) == asked
        assert prompts(server) == ["first", "second", "second"], "a run that is not kept is gone on from"

        await again(room, second, "Another.", source="%%agent\nsecond, but blue")
        assert prompts(server) == ["first", "second", "second, but blue"]
        old, new = server.requests[-2].body["messages"], server.requests[-1].body["messages"]
        assert json.dumps(new[:-1]).startswith(json.dumps(old[:-1])[:-1]), "the prefix is identical"
        session = max((tmp_path / ".nbagent" / "sessions").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        about = json.loads(session.read_text().splitlines()[0])
        assert about["forked_from"]["messages"] == len(new) - 1

        await again(room, first, "Answer one, again.", source="%%agent --again\nfirst")
        assert prompts(server) == ["first"]
        third = await room.cell("%%agent\nthird", "Three.")
        assert prompts(server) == ["first", "third"]
        await room.cell("%config NbAgent.rerun = 'live'")
        assert "Live." in (await again(room, third, "Live.")).record
        assert prompts(server) == ["first", "third"]

        twice = [await room.cell("%%agent\ngo on", f"Reply {n}.") for n in range(2)]
        assert "Reply 1." in twice[1].record, "another cell with the same text is a first run of its own"
        for messages in room.transcripts():
            assert messages


async def test_a_person_is_asked_about_a_stale_answer_and_the_next_cell_goes_on_from_what_was_shown(tmp_path, server):
    ask = calls("inspect_variable", name="n")
    async with Room(tmp_path, server, interactive=True) as room:
        data = await room.cell("n = 5")
        cell = await room.cell("%%agent --out answer\nhow many?", ask, "Five.")
        record = cell.record
        assert (await again(room, cell)).record == record
        await room.cell("n = 6")
        kept = await again(room, cell, click="Keep the old answer, shown as stale")
        assert kept.record.startswith("STALE: n changed: 5 then, 6 now.") and "Five." in kept.record and not kept.error
        assert await room.value("[answer.replayed, answer.stale[:5], answer.text]") == [True, "STALE", "Five."]
        asked = len(server.requests)
        stopped = await again(room, cell, click="Stop")
        assert stopped.record == kept.record and "Stopped by you" in stopped.error, "what stood there stays"
        new = await again(room, cell, calls("inspect_variable", name="n"), "Six.", click="Run again")
        assert new.record.startswith("Six.") and "STALE" not in new.record and len(new.cell.outputs) == 1
        assert len(server.requests) == asked + 2 and prompts(server) == ["how many?"]
        record = new.record
        assert (await again(room, cell)).record == record
        await room.cell("%config NbAgent.rerun = 'ask'")
        assert (await again(room, cell, click="Keep the answer")).record == record
        await room.cell("%config NbAgent.rerun = 'replay'")
        await room.cell("%agent model haiku")
        model = await again(room, cell, click="Keep the old answer, shown as stale")
        assert model.record.startswith("STALE: the model is claude-haiku"), model.record
        await room.cell("%agent model claude-sonnet-5-5")
        stale = await again(room, cell, source="%%agent --stale show --out answer\nhow many?")
        assert stale.record == record, "options that change no answer change no key"
        await again(room, data, source="n = 7")
        shown = await again(room, cell)
        assert shown.record.startswith("STALE: In[") and "above was edited; n changed: 6 then, 7 now" in shown.record
    async with Room(tmp_path, server, interactive=True) as room:
        room.page.nb.cells[1:1] = room.page.document.cells[1:1] = [data.cell, cell.cell]
        await again(room, data, source="n = 5")
        await room.cell("n = 6")
        assert (await again(room, cell, source="%%agent\nhow many?")).record.startswith("Six.")
        await room.cell("%%agent\nand twice that?", "Twelve.")
        assert prompts(server) == ["how many?", "and twice that?"], (
            "a record that was shown is part of the conversation"
        )


async def test_a_record_answers_only_after_the_conversation_that_it_was_given_after(tmp_path, server):
    """The first cell is asked anew, so the second one's answer belongs to another conversation."""
    async with Room(tmp_path, server, interactive=True) as room:
        first = await room.cell("%%agent\nfirst", "Red.")
        second = await room.cell("%%agent\nsecond", "As I said: red.")
        asked = len(server.requests)
        for cell in (first, second, first, second):
            await again(room, cell)
        assert len(server.requests) == asked
        await room.cell("%config NbAgent.rerun = 'live'")
        await again(room, first, "Blue.")
        await room.cell("%config NbAgent.rerun = 'replay'")
        stale = await again(room, second, click="Keep the old answer, shown as stale")
        assert stale.record.startswith("STALE: the conversation before this cell is another one."), stale.record
        new = await again(room, second, "As I said: blue.", click="Run again")
        assert new.record.startswith("As I said: blue.") and prompts(server) == ["first", "second"]
        asked = len(server.requests)
        assert (await again(room, second)).record == new.record
    async with Room(tmp_path, server) as room:
        room.page.nb.cells[1:1] = room.page.document.cells[1:1] = [first.cell, second.cell]
        await again(room, first)
        assert (await again(room, second)).record == new.record and len(server.requests) == asked
        third = await room.cell("%%agent\nthird", "Three.")
        assert prompts(server) == ["first", "second", "third"]
        for cell in (first, second, third):
            await again(room, cell)
        assert len(server.requests) == asked + 1, "all of one conversation, which the new cell went on with"
        await again(room, second, "Green.", source="%%agent\nsecond, but green")
        assert prompts(server) == ["first", "second, but green"], (
            "it forks from before its own run, also of a kernel before"
        )
