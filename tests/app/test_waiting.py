"""A record that waits for a page: written when one that has its cell comes, given up when nothing could want it any more."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.events import EventManager, available_events

from nbagent.app.waiting import WaitingRecords
from nbagent.jupyter.bridge import Bridge
from tests.bridge.pages import Page, Pages, document
from tests.support.turns import turns, until

BUNDLE = {"text/plain": "It is 42."}


class Failing(Page):
    """A page that refuses each of the operations `fails` once, with `code`."""

    fails: list[str]
    code: str

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        answered = super().answer(request)
        if answered is None or request["op"] not in self.fails:
            return answered
        self.fails.remove(request["op"])
        return {**answered, "ok": False, "error": "TypeError: it is null", "code": self.code}


class Room:
    """A shell's events, and the channels that the records listen on, by cell."""

    def __init__(self, most: int = 20, most_characters: int = 1000) -> None:
        self.shell = SimpleNamespace(events=EventManager(None, available_events))
        self.channels: dict[str, Pages] = {}
        limits = {"most": most, "most_characters": most_characters, "again_after": 0.01}
        self.waiting = WaitingRecords(self.shell, self._connect, **limits)
        self.waiting.install()

    def _connect(self, cell: str) -> Bridge:
        self.channels[cell] = Pages()
        return Bridge(self.channels[cell], cell=cell)

    def runs(self, cell: str | None) -> None:
        self.shell.events.trigger("pre_run_cell", SimpleNamespace(cell_id=cell))

    def page(self, cell: str, *, fails: Sequence[str] = (), code: str = "failed") -> Page:
        """A page comes and is heard by what waits for `cell`; the operations `fails` it refuses once each."""
        page = Failing("one", document("%%agent\ngo", "x"))
        page.fails, page.code = list(fails), code
        self.channels[cell].pages.append(page)
        self.channels[cell].say({"v": 1, "op": "ready", "page": "one"})
        return page


@pytest.fixture
async def room() -> Iterator[Room]:
    room = Room()
    yield room
    room.waiting.remove()
    await turns(5)
    assert all(channel.closed for channel in room.channels.values()), "a comm was left behind"


async def test_a_page_that_comes_gets_the_record_and_nothing_waits_any_more(room):
    room.waiting.put("cell-0", BUNDLE, 7)
    await turns(2)
    page = room.page("cell-0")
    await until(lambda: not room.waiting.cells)
    assert page.document.cells[0].outputs[0]["data"] == BUNDLE
    assert page.document.cells[0].execution_count == 7
    assert room.channels["cell-0"].closed


async def test_a_cell_that_runs_again_gets_no_record_of_an_earlier_run(room):
    room.waiting.put("cell-0", BUNDLE, 7)
    room.waiting.put("cell-1", BUNDLE, 8)
    await turns(2)
    room.runs(None)
    room.runs("cell-9")
    room.runs("cell-0")
    await turns(5)
    assert room.waiting.cells == ("cell-1",)
    page = room.page("cell-0")
    await turns(5)
    assert page.heard == []


async def test_of_two_records_of_a_cell_the_newer_one_waits(room):
    room.waiting.put("cell-0", {"text/plain": "old"}, 1)
    await turns(2)
    old = room.channels["cell-0"]
    room.waiting.put("cell-0", BUNDLE, 2)
    await turns(2)
    assert old.closed
    assert room.waiting.cells == ("cell-0",)
    page = room.page("cell-0")
    await until(lambda: not room.waiting.cells)
    assert page.document.cells[0].outputs[0]["data"] == BUNDLE


@pytest.mark.parametrize(
    ("most", "size", "left"),
    [(3, 10, "234"), (20, 400, "34"), (20, 1000, "4"), (20, 1001, "")],
    ids=["too many", "too large together", "one fits", "none fits"],
)
async def test_the_oldest_are_given_up_where_they_are_too_many_or_too_large(most, size, left):
    room = Room(most)
    for n in range(5):
        room.waiting.put(f"cell-{n}", {"text/plain": "x" * size}, n)
        await turns(2)
    assert room.waiting.cells == tuple(f"cell-{n}" for n in left)
    await turns(2)
    assert [c for c, channel in room.channels.items() if not channel.closed] == list(room.waiting.cells)
    room.waiting.remove()
    await turns(2)


async def test_a_record_whose_cell_was_deleted_meanwhile_waits_no_longer(room):
    room.waiting.put("cell-0", BUNDLE, 7)
    await turns(2)
    page = room.page("cell-0")
    page.document.cells.pop(0)
    await until(lambda: not room.waiting.cells)
    assert page.ops() == ["record", "notice"]


@pytest.mark.parametrize("op", ["record", "save"])
async def test_a_page_that_fails_for_once_is_asked_again_after_a_pause(room, op):
    room.waiting.put("cell-0", BUNDLE, 7)
    await turns(2)
    page = room.page("cell-0", fails=[op, op])
    await until(lambda: not room.waiting.cells)
    assert page.document.cells[0].outputs[0]["data"] == BUNDLE
    assert page.ops().count(op) == 3
    assert page.ops()[-2:] == ["record", "save"]


async def test_a_record_in_a_file_that_the_person_is_asked_about_waits_no_longer(room):
    room.waiting.put("cell-0", BUNDLE, 7)
    await turns(2)
    page = room.page("cell-0", fails=["save"], code="not_saved")
    await until(lambda: not room.waiting.cells)
    assert page.ops() == ["record", "save"]


async def test_after_removal_nothing_waits_and_nothing_is_left_in_the_shell(room, caplog):
    caplog.set_level(logging.ERROR)
    room.waiting.put("cell-0", BUNDLE, 7)
    room.waiting.remove()
    await turns(3)
    assert room.waiting.cells == ()
    assert room.shell.events.callbacks["pre_run_cell"] == []
    assert not caplog.records
    room.waiting.install()
