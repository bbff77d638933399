"""Every route from a question to a person keeps the promises of the approval port, in a real kernel.

On ipykernel 7.4 clicks come to the main thread of the awaited cell, on 7.0 to 7.3 to a subshell's thread, on 6.29 to 6.31
(and on 7 where a front end opens no subshell) through the pump: `make test-places` runs this on each. Rows 27, 29, 114.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.bridge.pages import Page
from tests.conformance.approval_kit import CLICKED, NOBODY, TYPED, keep_all, promise_name
from tests.conformance.approval_routes import MARK, NobodysRoute
from tests.places.front_end import FrontEnd, kernel
from tests.support.messages_server import MessagesServer

KERNEL = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(180)]

KEEP = """
import json
from nbagent.jupyter.bridge import Bridge
from nbagent.jupyter.front_end import reach
from nbagent.jupyter.typed import from_front_end
from tests.conformance.approval_kit import CLICKED, TYPED, keep_all
from tests.conformance.approval_routes import ClickedRoute, TypedRoute

bridge = Bridge()
async with reach(bridge, get_ipython()):
    said = await keep_all({promises}, {route})
bridge.close()
print("SAID", json.dumps(said))
"""


class Person:
    """Does in a front end what the route in its kernel says, one thing after the other."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front
        self._todo: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._last = ""
        self.said: dict[str, str] = {}
        front.on_line = self._hear

    def _hear(self, line: str) -> None:
        if line.startswith(MARK):
            self._todo.put_nowait(json.loads(line.removeprefix(MARK)))
        if line.startswith("SAID "):
            self.said = json.loads(line.removeprefix("SAID "))

    async def act(self) -> None:
        while True:
            do = await self._todo.get()
            if "type" in do:
                assert self._front.typed is not None
                self._front.typed.append(do["type"])
                self._front.heard()
                continue
            then = do.pop("then")
            if "again" in do:
                self._front.press(self._last)
            else:
                await self._click(**do)
            self._front.send(then, {"method": "custom", "content": {}})

    async def _click(self, click: str, times: int = 1, first: bool = False, rests: str = "", **do: Any) -> None:
        other = await self._front.button(do.pop("beside")) if "beside" in do else ""
        if rests:
            await self._front.button(rests)  # what wakes later than the clicked one has not rested yet
        self._last = await self._front.click(click, first=first, **do)
        for _ in range(times - 1):
            self._front.press(self._last)
        if other:
            self._front.press(other)
        if rests:
            await self._front.rests(rests)


async def tried(tmp_path, promises: str, route: str, *pages: Page, typed: bool = False, subshell: bool = False):
    lines = [] if typed else None
    with MessagesServer() as server:
        async with kernel(tmp_path, server) as manager, FrontEnd(manager, *pages, typed=lines) as front:
            assert not (await front.cell("%load_ext nbagent")).outputs
            supported = (await front.info()).get("supported_features", [])
            if subshell and "kernel subshells" in supported:
                front.subshell = await front.open_subshell()
            person = Person(front)
            acting = asyncio.create_task(person.act())
            cell = await front.cell(KEEP.format(promises=promises, route=route), within=120)
            acting.cancel()
            assert not cell.error, cell.error
            return person.said


def check(said: dict[str, str], promises) -> None:
    assert list(said) == [promise_name(promise) for promise in promises]
    broken = {name: why for name, why in said.items() if why}
    assert not broken, "\n".join(f"{name}\n{why}" for name, why in broken.items())


@pytest.mark.parametrize("over", ["main shell", "subshell"])
class TestButtons:
    pytestmark = KERNEL

    async def test_clicks_keep_every_promise(self, tmp_path, over):
        """Row 27: buttons work while the cell runs. Row 29: a click on another thread wakes the loop, and of two one counts.

        Row 114: a double click does not answer the next question.
        """
        page = Page("page", None)
        said = await tried(tmp_path, "CLICKED", "lambda: ClickedRoute(display)", page, subshell=over == "subshell")
        check(said, CLICKED)


class TestKeyboard:
    pytestmark = KERNEL

    async def test_typed_lines_keep_every_promise(self, tmp_path):
        check(await tried(tmp_path, "TYPED", "lambda: TypedRoute(from_front_end(get_ipython()))", typed=True), TYPED)


async def test_the_policy_keeps_every_promise():
    check(await keep_all(NOBODY, NobodysRoute), NOBODY)
