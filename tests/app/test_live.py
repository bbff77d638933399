"""The agent's cell in an open notebook: its end waits for no page that is gone, and no error of a save is lost."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from nbagent.app.live import LiveCell
from nbagent.core.events import Reason, RunEnded, State
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.notebook import LiveNotebook
from nbagent.view.fold import ViewModel
from tests.bridge.pages import Page, Pages, document
from tests.support.turns import turns, until

BUNDLE = {"text/plain": "It is 42."}


class Waiting:
    """What a record that found no page is handed to."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, str], int]] = []

    def put(self, cell: str, bundle: dict[str, str], number: int, more: tuple[dict[str, str], ...] = ()) -> None:
        assert not more
        self.records.append((cell, bundle, number))


def ended(reason: Reason) -> RunEnded:
    return RunEnded(state=State.DONE, turn=1, at=1.0, reason=reason, sentence="", next_step="", text="", turns=1)


async def live_cell(page: Page, notebook: type[LiveNotebook] = LiveNotebook) -> tuple[LiveCell, Bridge]:
    bridge = Bridge(Pages(page), cell="cell-0")
    hello = await bridge.hello()
    assert hello is not None
    view: Any = SimpleNamespace(view=ViewModel())
    return LiveCell(notebook(bridge, hello), bridge, view), bridge


@pytest.mark.slow
@pytest.mark.parametrize("reason", [Reason.INTERRUPTED, Reason.TIMEOUT, Reason.CELL_GONE])
async def test_a_run_that_was_stopped_hands_its_record_on_where_no_page_answers(reason):
    """The page went without a word, in the middle of a save: a save may take half a minute, and so may the record."""
    page = Page("one", document("%%agent\ngo", "x"))
    page.mute = {"save", "record"}
    live, bridge = await live_cell(page)
    await until(lambda: "save" in page.ops())
    page.deaf = True
    waiting: Any = Waiting()
    live.show(ended(reason))
    await asyncio.wait_for(live.finish(BUNDLE, 7, waiting), 20)
    assert waiting.records == [("cell-0", BUNDLE, 7)]
    bridge.close()


async def test_a_run_that_was_stopped_writes_its_record_where_the_page_answers():
    page = Page("one", document("%%agent\ngo", "x"))
    live, bridge = await live_cell(page)
    waiting: Any = Waiting()
    live.show(ended(Reason.INTERRUPTED))
    await live.finish(BUNDLE, 7, waiting)
    assert page.document is not None
    assert page.document.cells[0].outputs[0]["data"] == BUNDLE
    assert page.ops()[-2:] == ["record", "save"] and not waiting.records
    bridge.close()


class Broken(LiveNotebook):
    """A notebook whose save has a bug."""

    async def save(self) -> None:
        raise RuntimeError("a bug of ours")


async def test_what_a_save_in_mid_run_raises_is_logged(caplog):
    caplog.set_level(logging.ERROR, "nbagent")
    live, bridge = await live_cell(Page("one", document("%%agent\ngo", "x")), Broken)
    await until(lambda: caplog.records)
    [record] = caplog.records
    assert "saving the notebook in mid-run failed" in record.message
    assert record.exc_info is not None and "a bug of ours" in str(record.exc_info[1])
    live.close()
    await turns()
    bridge.close()
