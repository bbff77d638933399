"""The desk's half in the kernel: clicks from the pages, each once, on the loop, when no cell runs, and always answered."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm

from nbagent.app.undo import RUNNING
from nbagent.app.undo_commands import NO_AGAIN, _again
from nbagent.core.run import Stop
from nbagent.headless.memory import MemoryNotebook
from nbagent.jupyter.desk import BUSY, FAILED, PATIENCE, Click, Desk, Said
from tests.support.turns import at_once, turns, until

Sent = list[dict[str, Any]]


class KeepingComm(BaseComm):
    """Keeps what is sent to the page."""

    kept: Sent

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
    ) -> None:
        if (data or {}).get("method") == "custom":
            self.kept.append(data["content"])


@pytest.fixture
def sent() -> Iterator[Sent]:
    """What every widget sends to the page."""
    kept: Sent = []
    before = comm.create_comm

    def create(*arguments: Any, **options: Any) -> KeepingComm:
        made = KeepingComm.__new__(KeepingComm)
        made.kept = kept
        made.__init__(*arguments, **options)
        return made

    comm.create_comm = create
    yield kept
    comm.create_comm = before


class Kernel:
    """The part of ipykernel that tells whether a cell runs."""

    def __init__(self) -> None:
        self._main_asyncio_lock = asyncio.Lock()


def click(desk: Desk, op: str = "undo", run: str = "run-1f", **more: Any) -> None:
    """A message from a page, on the thread of a kernel's subshell."""
    message = {"v": 1, "op": op, "run": run, "cell": "c1", "page": "p1", **more}
    content = {"data": {"method": "custom", "content": message}}
    thread = threading.Thread(target=desk.widget._handle_msg, args=({"content": content, "buffers": []},))
    thread.start()
    thread.join()


async def test_a_page_that_says_it_is_there_is_told_that_the_kernel_lives(sent: Sent) -> None:
    desk = Desk(Kernel(), lambda _: at_once(Said()))
    click(desk, "ready")
    await until(lambda: sent)
    assert sent == [{"v": 1, "op": "live", "page": "p1"}]
    desk.close()


async def test_a_double_click_is_one_click_and_is_handed_on_on_the_loop(sent: Sent) -> None:
    clicks: list[tuple[Click, bool]] = []
    go = asyncio.Event()

    async def on_click(clicked: Click) -> Said:
        clicks.append((clicked, threading.current_thread() is threading.main_thread()))
        await go.wait()
        return Said("done", execute="c1")

    desk = Desk(Kernel(), on_click)
    click(desk)
    click(desk)
    await until(lambda: clicks)
    click(desk)
    click(desk, run="run-2a")
    await until(lambda: len(clicks) == 2)
    go.set()
    await until(lambda: len(sent) == 2)
    assert clicks == [(Click("undo", "run-1f", "c1", "p1"), True), (Click("undo", "run-2a", "c1", "p1"), True)]
    assert sent[0] == {"v": 1, "op": "said", "page": "p1", "run": "run-1f", "text": "done", "execute": "c1"}
    click(desk)  # and the next click counts again
    await until(lambda: len(sent) == 3)
    desk.close()


async def test_a_click_waits_for_the_running_cell(sent: Sent) -> None:
    kernel, clicks = Kernel(), []

    async def on_click(clicked: Click) -> Said:
        clicks.append(kernel._main_asyncio_lock.locked())
        return Said()

    desk = Desk(kernel, on_click)
    async with kernel._main_asyncio_lock:
        click(desk)
        await turns(20)
        assert clicks == []
    await until(lambda: sent)
    assert clicks == [False]
    desk.close()


async def test_a_click_that_waited_too_long_does_nothing_and_says_what_to_do(sent: Sent) -> None:
    """The page has called it dead by then: nothing may happen minutes later."""
    kernel, clicks = Kernel(), []

    async def on_click(clicked: Click) -> Said:
        clicks.append(clicked)
        return Said()

    desk = Desk(kernel, on_click, patience=0.01)
    async with kernel._main_asyncio_lock:
        click(desk)
        await until(lambda: sent)
    assert sent[0]["text"] == BUSY
    assert clicks == []
    desk.close()


async def test_a_click_that_an_older_kernel_hands_on_too_late_is_dropped_whatever_the_clocks_say(sent: Sent) -> None:
    now = time.time() * 1000 + 3_600_000  # the page's clock is an hour ahead
    desk = Desk(Kernel(), lambda _: at_once(Said("done")))
    click(desk, "ready", at=now)
    click(desk, at=now)
    await until(lambda: len(sent) == 2)
    click(desk, run="run-2a", at=now - (PATIENCE + 1) * 1000)
    await until(lambda: len(sent) == 3)
    assert [message["text"] for message in sent[1:]] == ["done", BUSY]
    desk.close()


async def test_a_click_that_fails_is_answered_with_a_sentence_and_kept_for_the_traceback(
    sent: Sent, caplog: pytest.LogCaptureFixture
) -> None:
    """Row 62: the button does not look dead."""

    async def on_click(_: Click) -> Said:
        raise ZeroDivisionError

    desk = Desk(Kernel(), on_click)
    with caplog.at_level(logging.ERROR, "nbagent"):
        click(desk)
        await until(lambda: sent)
    assert sent[0]["text"] == FAILED
    assert "ZeroDivisionError" in caplog.text
    desk.close()


@pytest.mark.parametrize(
    "more", [{"v": 2}, {"op": "stop"}, {"run": "../x"}, {"run": 7}, {"run": "run-<img>"}, {"op": None}], ids=str
)
async def test_what_is_no_click_of_ours_is_left_alone(sent: Sent, more: dict[str, Any]) -> None:
    desk = Desk(Kernel(), lambda _: at_once(Said("no")))
    click(desk, **{"op": "undo", **more})
    click(desk, "ready")
    await until(lambda: sent)
    assert [message["op"] for message in sent] == ["live"]
    desk.close()
    click(desk)  # after its end nothing is heard
    await turns()
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("source", "runs", "said"),
    [
        ("# the report\n%%agent -m x\ngo", False, Said(NO_AGAIN, execute="c1")),
        ("%%agent\ngo", True, Said(RUNNING)),
        ("import shutil; shutil.rmtree('.')", False, Said(NO_AGAIN)),
        (None, False, Said(NO_AGAIN)),
    ],
    ids=["agent", "while one runs", "other code by now", "gone"],
)
async def test_run_again_runs_only_a_cell_that_starts_an_agent_and_only_while_none_runs(
    source: str | None, runs: bool, said: Said
) -> None:
    """The link stands in a saved output: what its cell holds by now may be anything."""
    extension: Any = types.SimpleNamespace(stop=Stop() if runs else None, again={})
    cells = (
        [] if source is None else [{"id": "c1", "cell_type": "code", "source": source, "metadata": {}, "outputs": []}]
    )
    notebook: Any = MemoryNotebook(cells)
    assert await _again(extension, Click("again", "run-1f", "c1", "p1"), notebook) == said
    assert list(extension.again) == (["c1"] if said.execute else [])
    assert await _again(extension, Click("again", "run-1f", "c1", "p1"), None) == Said(NO_AGAIN), "no page answers"
