"""A map in a cell of a real kernel: awaited, with a picture that becomes the record, stopped in order, and gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernel.conftest import RealKernel, Reply
from tests.maps.scripts import PROMPT, adding
from tests.source import ROOT
from tests.support.messages_server import MessagesServer, Scripted, Silence

pytestmark = [pytest.mark.kernel, pytest.mark.slow, pytest.mark.timeout(300)]


class Room:
    """A kernel with nbagent loaded, and a server that falls silent at the second request of each input while it `hangs`."""

    def __init__(self) -> None:
        self.hangs = False
        self.server = MessagesServer(self._script)

    def _script(self, body: dict[str, Any]) -> Scripted:
        return Silence() if self.hangs and len(body["messages"]) >= 3 else adding(body)

    def cell(self, code: str, *, interrupt_after: int = 0) -> Reply:
        """Run a cell and return what came of it; interrupt it once the server was asked so often in all."""
        begun = self.kernel.start(code)
        if interrupt_after:
            self.server.wait_for_requests(interrupt_after, 100)
            self.kernel.manager.interrupt_kernel()
        return self.kernel.finish(begun, timeout=150)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    room = Room()
    with room.server as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        room.kernel = RealKernel()
        try:
            room.cell("%load_ext nbagent\nimport nbagent")
            yield room
        finally:
            room.kernel.close()


def texts(reply: Reply) -> list[str]:
    return [" ".join(str(one["data"]["text/plain"]).split()) for one in reply.outputs if "data" in one]


def said(reply: Reply) -> str:
    return next((str(one["evalue"]) for one in reply.outputs if one["type"] == "error"), "")


def test_a_map_in_a_cell_is_awaited_stopped_in_order_and_gone_on_with(room: Room) -> None:
    reply = room.cell(f"len(nbagent.map({PROMPT!r}, ['n12']))")
    assert said(reply).endswith("Write: table = await nbagent.map(…)")
    reply = room.cell(f"await nbagent.map({PROMPT!r}, ['n12'], mode='bypass')")
    assert "needs a person's yes" in said(reply)
    assert room.server.requests == []

    room.hangs = True
    begin = f"table = await nbagent.map({PROMPT!r}, ['n56', 'n78', 'n9'], workers=2, resume='kept')"
    reply = room.cell(begin, interrupt_after=4)
    assert reply.error == "MapStopped"
    assert texts(reply)[-1].startswith("Stopped. 3 inputs: 2 stopped, 1 not run")

    room.hangs = False
    reply = room.cell(f"{begin}\ntable['answer'], list(table.to_pandas()['status'])")
    assert texts(reply)[-1] == "(['The sum is 11.', 'The sum is 15.', 'The sum is 9.'], ['done', 'done', 'done'])"
    assert texts(reply)[-2].startswith("Done. 3 inputs: 3 done")
    assert len(room.server.requests) == 2 * 3 + 2  # of two the second was cut off in silence, and asked once more
