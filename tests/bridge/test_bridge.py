"""Every request is answered or ends with a sentence in a bounded time, whatever pages do; one page writes."""

from __future__ import annotations

import asyncio

import pytest

from nbagent.core.errors import NotebookError, Unsure
from nbagent.core.ports import Anchor
from nbagent.jupyter.bridge import Bridge, PageRefused
from nbagent.jupyter.notebook import LiveNotebook
from tests.bridge.pages import Page, Pages, document
from tests.support.turns import turns, until

SOON = {"at": (0.0, 0.01), "total": 0.05}


async def test_the_hello_tells_who_is_there():
    bridge = Bridge(Pages(Page("p", document("x"))), cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None
    assert (hello.page, hello.path, hello.document, hello.interactive, hello.own_cell) == (
        "p",
        "work.ipynb",
        True,
        True,
        "cell-0",
    )
    assert await bridge.hello() is hello


async def test_nobody_there_is_known_in_bounded_time():
    channel = Pages()
    async with asyncio.timeout(5):
        assert await Bridge(channel).hello(**SOON) is None
    assert [message["op"] for message in channel.sent] == ["hello", "hello"]


async def test_a_lost_hello_is_repeated():
    channel = Pages()
    bridge = Bridge(channel)
    asking = asyncio.create_task(bridge.hello(at=(0.0, 0.05), total=5))
    await turns()
    channel.pages.append(Page("late", document("x")))
    hello = await asyncio.wait_for(asking, 5)
    assert hello is not None and hello.page == "late"


@pytest.mark.slow
@pytest.mark.parametrize("thread", [False, True], ids=["loop", "thread"])
async def test_answers_count_once_and_on_any_thread(thread):
    page = Page("p", document("x"))
    bridge = Bridge(Pages(page, thread=thread, times=3))
    await bridge.hello()
    for _ in range(20):
        assert (await asyncio.wait_for(bridge.call("list"), 5))["cells"][0]["source"] == "x"


@pytest.mark.parametrize("noise", [None, 7, "hello", [], {}, {"v": 2, "id": "x"}, {"v": 1}, {"v": 1, "id": "unknown", "ok": True},
                                   {"v": 1, "op": "resend", "run": "unknown"}, {"v": 1, "op": "bye", "page": "other"}])  # fmt: skip
async def test_noise_is_passed_over(noise):
    channel = Pages(Page("p", document("x")))
    bridge = Bridge(channel)
    await bridge.hello()
    channel.say(noise)
    assert (await bridge.call("list"))["cells"]


async def test_one_of_two_pages_writes():
    one, two = document("x"), document("x")
    first, second = Page("one", one), Page("two", two)
    bridge = Bridge(Pages(first, second), cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None
    live = LiveNotebook(bridge, hello)
    await live.insert(Anchor("cell-0"), "code", "new")
    await live.save()
    assert [len(one.cells), len(two.cells)] == [2, 1]
    assert (first.ops(), second.ops()) == (["insert", "save"], [])


async def test_the_page_with_the_running_cell_gets_the_lease_not_another_notebook_of_the_same_kernel():
    other = Page("other", document("y", path="other.ipynb", current="other-cell"))
    right = Page("right", document("x"))
    bridge = Bridge(Pages(other, right), cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None and (hello.page, hello.path) == ("right", "work.ipynb")
    only_other = Bridge(Pages(other), cell="cell-0")
    assert await only_other.hello(**SOON) is None


async def test_of_two_tabs_on_one_notebook_the_one_that_started_the_cell_writes():
    here, there = Page("here", document("x")), Page("there", document("x"))
    there.running = False
    bridge = Bridge(Pages(there, here), cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None
    assert hello.page == "here"
    bridge.close()


@pytest.mark.slow
async def test_a_page_that_does_not_tell_where_the_cell_was_started_still_writes():
    only = Page("only", document("x"))
    only.running = False
    bridge = Bridge(Pages(only), cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None
    assert hello.page == "only"
    bridge.close()


async def test_a_page_without_the_document_is_taken_only_if_no_better_one_answers():
    bare, full = Page("bare", None), Page("full", document("x"))
    assert (await Bridge(Pages(bare, full)).hello()).page == "full"
    hello = await Bridge(Pages(bare)).hello(at=(0.0,), total=0.05)
    assert (hello.page, hello.document) == ("bare", False)


async def test_a_lost_page_hands_the_lease_on_and_the_operation_is_done_once():
    both = document("x")  # two tabs on one file that both see the first one's insert
    first, second = Page("one", both), Page("two", both)
    bridge = Bridge(Pages(first, second), cell="cell-0")
    hello = await bridge.hello()
    first.mute = {"insert", "hello"}  # it inserts, and is gone before it can say so
    done = await bridge.call("insert", timeout=0.05, cell="new-cell", anchor={"id": "cell-0", "where": "after"},
                             cell_type="code", source="x")  # fmt: skip
    assert done["cell"]["id"] == "new-cell"
    assert [cell["id"] for cell in both.cells] == ["cell-0", "new-cell"]
    assert hello.page == "one" and bridge.lease.page == "two"
    assert second.ops() == ["insert"]


async def test_a_delete_whose_answer_was_lost_is_not_an_error():
    both = document("x", "gone")
    first, second = Page("one", both), Page("two", both)
    bridge = Bridge(Pages(first, second), cell="cell-0")
    await bridge.hello()
    first.mute = {"delete", "hello"}
    await bridge.call("delete", timeout=0.05, cell="cell-1", expected="gone")
    assert [cell["id"] for cell in both.cells] == ["cell-0"]


@pytest.mark.slow
async def test_a_page_that_stops_answering_ends_in_a_sentence():
    page = Page("p", document("x"))
    bridge = Bridge(Pages(page))
    await bridge.hello()
    page.deaf = True
    async with asyncio.timeout(10):
        with pytest.raises(NotebookError, match="does not answer"):
            await bridge.call("list", timeout=0.05)


async def test_a_page_that_leaves_and_comes_back_is_found_without_waiting_for_timeouts():
    page = Page("old", document("x"))
    channel = Pages(page)
    bridge = Bridge(channel, cell="cell-0")
    await bridge.hello()
    missed = asyncio.Event()
    bridge.on_resend("run", missed.set)
    page.mute = {"list"}
    asking = asyncio.create_task(bridge.call("list", timeout=60))
    await turns()
    channel.pages[:] = [Page("new", document("x"))]
    channel.say({"v": 1, "op": "bye", "page": "old"})
    channel.say({"v": 1, "op": "ready", "page": "new"})
    async with asyncio.timeout(5):
        assert (await asking)["cells"][0]["id"] == "cell-0"
        await missed.wait()
    assert bridge.lease.page == "new"


async def test_a_refusal_says_what_and_why():
    bridge = Bridge(Pages(Page("p", document("x"))))
    await bridge.hello()
    with pytest.raises(PageRefused, match="cell cell-0 changed since you read it") as caught:
        await bridge.call("edit", cell="cell-0", source="y", expected="not x")
    assert caught.value.code == "changed"
    with pytest.raises(PageRefused, match="could not do it"):
        await bridge.call("no_such_thing")


async def test_close_ends_all_that_waits_and_all_that_comes_later():
    page = Page("p", document("x"))
    channel = Pages(page)
    bridge = Bridge(channel)
    await bridge.hello()
    page.mute = {"list", "save"}
    asking = [asyncio.create_task(bridge.call(op, timeout=60)) for op in ("list", "save")]
    await turns()
    bridge.close()
    bridge.close()
    for task in asking:
        with pytest.raises(NotebookError, match="closed"):
            await asyncio.wait_for(task, 5)
    with pytest.raises(NotebookError, match="closed"):
        await bridge.call("list")
    assert channel.closed
    bridge.tell("outputs")  # goes nowhere, raises nothing


async def test_two_calls_that_lose_the_page_together_both_find_the_next():
    shared = document("x")
    first, second = Page("one", shared), Page("two", shared)
    bridge = Bridge(Pages(first, second))
    await bridge.hello()
    first.deaf = True
    async with asyncio.timeout(10):
        both = await asyncio.gather(*(bridge.call("list", timeout=0.05) for _ in range(5)))
    assert all(one["cells"] for one in both)
    assert bridge.lease.page == "two"


async def test_who_is_in_a_hurry_waits_for_no_page_twice_but_takes_one_that_comes():
    page = Page("p", document("x"))
    channel = Pages(page)
    bridge = Bridge(channel)
    await bridge.hello()
    page.deaf = True
    asked = asyncio.create_task(bridge.call("save", timeout=1000))
    await turns(2)
    bridge.hurry(0.05)
    for call in (asked, bridge.call("list"), bridge.call("list", timeout=1000)):
        with pytest.raises(Unsure, match="does not answer"):
            await asyncio.wait_for(call, 20)
    hellos = len(channel.sent)
    with pytest.raises(Unsure, match="does not answer"):
        await asyncio.wait_for(bridge.call("list"), 20)
    assert len(channel.sent) == hellos, "nobody is looked for again"
    page.deaf = False
    channel.say({"v": 1, "op": "ready", "page": "p"})
    await until(lambda: bridge.lease)
    assert (await bridge.call("list"))["cells"][0]["source"] == "x"
    bridge.close()
