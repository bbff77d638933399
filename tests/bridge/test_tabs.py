"""What the kernel does about tabs that come and go: the lease is handed on, others follow what was saved, names change."""

from __future__ import annotations

import asyncio

import pytest

from nbagent.core.errors import NotebookError
from nbagent.core.ports import Anchor
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.notebook import LiveNotebook
from tests.bridge.pages import Page, Pages, document
from tests.support.turns import turns, until


async def led(channel: Pages) -> Bridge:
    """A bridge whose lease the first of the channel's pages has."""
    bridge = Bridge(channel, cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None
    return bridge


async def test_the_lease_goes_to_another_tab_as_soon_as_its_page_says_goodbye():
    first, second = Page("one", document("x")), Page("two", document("x"))
    channel = Pages(first, second)
    bridge = await led(channel)
    missed = asyncio.Event()
    bridge.on_resend("run", missed.set)
    channel.pages.remove(first)
    channel.say({"v": 1, "op": "bye", "page": "one", "path": "work.ipynb"})
    await turns(5)
    async with asyncio.timeout(5):
        assert (await bridge.led()).page == "two"
        await missed.wait()


@pytest.mark.slow
async def test_a_page_that_went_without_a_word_loses_the_lease_when_another_one_comes():
    first = Page("one", document("x"))
    channel = Pages(first)
    bridge = await led(channel)
    first.deaf = True
    channel.pages.append(Page("two", document("x")))
    channel.say({"v": 1, "op": "ready", "page": "two"})
    await until(lambda: bridge.lease is not None and bridge.lease.page == "two")


async def test_a_page_that_comes_does_not_take_the_lease_from_one_that_is_there():
    first, second = Page("one", document("x")), Page("two", document("x"))
    channel = Pages(first)
    bridge = await led(channel)
    channel.pages.append(second)
    channel.say({"v": 1, "op": "ready", "page": "two"})
    await turns(5)
    assert bridge.lease is not None and bridge.lease.page == "one"
    assert first.ops() == ["ping"]
    await bridge.call("list")
    assert second.ops() == []


async def test_a_late_answer_to_an_old_hello_takes_no_lease():
    """Nor are hellos remembered for ever: a page with the lease ends the question."""
    first = Page("one", document("x"))
    channel = Pages(first)
    bridge = await led(channel)
    asked = next(message["id"] for message in channel.sent if message["op"] == "hello")
    channel.pages.clear()
    channel.say({"v": 1, "op": "bye", "page": "one"})
    await turns(5)
    late = Page("late", document("x"))
    channel.say(late.answer({"v": 1, "id": asked, "op": "hello", "cell": "cell-0"}))
    await turns(5)
    assert bridge.lease is None


async def test_the_other_tabs_follow_what_was_saved():
    first, second = Page("one", document("x")), Page("two", document("x"))
    channel = Pages(first, second)
    bridge = await led(channel)
    await LiveNotebook(bridge, bridge.lease).save()
    assert channel.sent[-1] == {"v": 1, "op": "follow", "except": "one", "path": "work.ipynb", "session": ""}


async def test_only_the_page_with_the_lease_says_that_the_cell_is_gone():
    channel = Pages(Page("one", document("x")), Page("two", document("x")))
    bridge = await led(channel)
    gone: list[bool] = []
    bridge.on_cell_gone(lambda: gone.append(True))
    channel.say({"v": 1, "op": "cell-gone", "page": "two", "cell": "cell-0"})
    await turns(5)
    assert gone == []
    channel.say({"v": 1, "op": "cell-gone", "page": "one", "cell": "cell-0"})
    await turns(5)
    assert gone == [True]


async def test_the_path_is_what_the_page_said_last_and_the_document_stays_the_same_under_a_new_name():
    one = Page("one", document("x"), session="session-1")
    channel = Pages(one, Page("two", document("x"), session="session-1"))
    bridge = await led(channel)
    live = LiveNotebook(bridge, bridge.lease)
    assert (live.path, bridge.document) == ("work.ipynb", "session-1")
    channel.say({"v": 1, "op": "moved", "page": "two", "path": "not-mine.ipynb"})
    assert live.path == "work.ipynb"
    channel.say({"v": 1, "op": "moved", "page": "one", "path": "renamed.ipynb"})
    assert (live.path, bridge.document) == ("renamed.ipynb", "session-1")


async def test_without_a_session_the_path_names_the_document():
    assert (await led(Pages(Page("one", document("x"))))).document == "work.ipynb"


async def test_an_insert_is_done_once_though_its_answer_was_lost_and_its_id_was_given():
    both = document("x")
    first, second = Page("one", both), Page("two", both)
    bridge = await led(Pages(first, second))
    with pytest.raises(NotebookError, match="there is a cell cell-0 already"):
        await LiveNotebook(bridge, bridge.lease).insert(Anchor("cell-0"), "code", "y", cell_id="cell-0")
    first.mute = {"insert", "hello"}
    done = await bridge.call("insert", timeout=0.05, cell="back", anchor={"id": "cell-0", "where": "after"},
                             cell_type="code", source="y", metadata={"nbagent": {}})  # fmt: skip
    assert done["cell"]["metadata"] == {"nbagent": {}}
    assert [cell["id"] for cell in both.cells] == ["cell-0", "back"]


async def test_outputs_and_metadata_are_set_once_more_where_the_answer_was_lost():
    both = document("x")
    first, second = Page("one", both), Page("two", both)
    bridge = await led(Pages(first, second))
    first.mute = {"set_outputs", "set_metadata", "hello"}
    stream = {"output_type": "stream", "name": "stdout", "text": "out\n"}
    done = await bridge.call("set_outputs", timeout=0.05, cell="cell-0", outputs=[stream], number=4)
    assert ([o["text"] for o in done["cell"]["outputs"]], done["cell"]["number"]) == (["out\n"], 4)
    done = await bridge.call("set_metadata", timeout=0.05, cell="cell-0", metadata={"a": 1, "b": None})
    assert done["cell"]["metadata"] == {"a": 1}
    assert len(both.cells[0].outputs) == 1


async def test_the_running_cell_keeps_its_outputs_for_the_record():
    live = LiveNotebook(bridge := await led(Pages(Page("one", document("x")))), bridge.lease)
    with pytest.raises(NotebookError, match="the one that you run in"):
        await live.set_outputs("cell-0", [], None)
