"""Who shows the notebook: asked in each cell, and for long only where an answer may come."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.front_end import reach
from tests.bridge.pages import Page, Pages, document
from tests.support.turns import turns, until


def shell(client: str, cell: str | None = None) -> Any:
    """A shell whose running cell was asked for by `client`."""
    parent = {"header": {"session": client}, "metadata": {"cellId": cell} if cell else {}}
    return SimpleNamespace(kernel=SimpleNamespace(get_parent=lambda: parent))


def hellos(pages: Pages) -> int:
    """How often the pages were asked who is there."""
    return [message["op"] for message in pages.sent].count("hello")


@pytest.mark.slow
async def test_only_the_first_cell_of_a_client_waits_for_a_page_that_does_not_answer() -> None:
    silent: set[str] = set()
    async with reach(Bridge(first := Pages()), shell("console"), silent) as hello:
        assert hello is None
    assert hellos(first) > 2
    for cell in (None, "cell-0"):
        again, begin = Pages(), time.monotonic()
        async with reach(Bridge(again, cell=cell), shell("console", cell), silent) as hello:
            assert hello is None
        assert (hellos(again), silent) == (1, {"console"})
        assert time.monotonic() - begin < 2


async def test_a_page_that_has_come_since_is_found_and_waited_for_again() -> None:
    silent = {"console"}
    async with reach(Bridge(Pages(Page("p", document("x")))), shell("console"), silent) as hello:
        assert hello is not None and hello.page == "p"
    assert silent == set()


@pytest.mark.slow
async def test_a_page_that_opens_in_the_middle_of_a_cell_is_waited_for_in_the_next() -> None:
    """It speaks by itself; it may even be of a front end that can't reach the document."""
    silent, page, pages = {"console"}, Page("late", None), Pages()
    async with reach(Bridge(pages), shell("console"), silent) as hello:
        assert hello is None
        pages.pages.append(page)
        pages.say({"v": 1, "page": "late", "path": "", "op": "ready"})
        await until(lambda: page.heard)
        await turns()
    assert silent == set()


@pytest.mark.slow
async def test_another_client_of_the_same_kernel_is_asked_as_if_it_were_the_first() -> None:
    """A browser that is opened after a console, and one that is loaded anew."""
    silent = {"console"}
    late = Pages(page := Page("p", document("x")))
    page.deaf = True
    asking = reach(Bridge(late, cell="cell-0"), shell("browser", "cell-0"), silent)
    send = late.send

    def heard_the_second_time(content: dict[str, Any]) -> None:
        send(content)
        page.deaf = False

    late.send = heard_the_second_time
    async with asking as hello:
        assert hello is not None and hello.page == "p"
    assert (hellos(late), silent) == (2, {"console"})


@pytest.mark.slow
async def test_a_page_of_another_notebook_is_no_silence() -> None:
    silent = {"browser"}
    other = Page("p", document("x", current="cell-0"))
    async with reach(Bridge(Pages(other), cell="elsewhere"), shell("browser", "elsewhere"), silent) as hello:
        assert hello is None
    assert silent == set()


async def test_an_interrupt_of_the_wait_is_no_silence() -> None:
    silent: set[str] = set()

    class Interrupting(Pages):
        def send(self, content: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        async with reach(Bridge(Interrupting()), shell("console"), silent):
            raise AssertionError
    assert silent == set()
