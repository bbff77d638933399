"""A person's cells and an agent's code in the background, in a real kernel: what waits, what it shows, what an interrupt hits.

The agent's code goes on when a file is there, so that nothing hangs on how fast a machine is. The random test is
test_crowd.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kernel.conftest import RealKernel
from tests.support.turns import wait_until

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(180)]

BEGIN = """
import asyncio, json, os, signal, sys, threading
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.support.turns import wait_until
from nbagent.app.extension import current
from nbagent.jupyter.queued import QueuedKernel
here, told, rans = Path({folder!r}), [], []
main = current(get_ipython()).main
async def agent(code, timeout=60):
    main.leave()
    kernel = QueuedKernel(current(get_ipython()).kernel, main, "Explore (dates)", told.append)
    try:
        ran = await kernel.run(code, emit=lambda _: None, timeout=timeout)
        rans.append([ran.status, ran.number])
    except BaseException as stopped:
        rans.append([type(stopped).__name__, None])
async def there(name):
    await asyncio.to_thread(wait_until, (here / name).exists)
"""
AWAITS = "(here / '{0} began').touch()\nawait there('{0} go')\nprint('the agent')"
THEN_BLOCKS = AWAITS + "\n(here / '{0} blocks').touch()\nthreading.Event().wait(60)"


class Desk:
    """The kernel, and all that was published for each of its cells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel = RealKernel()
        self.kernel.run("%load_ext nbagent")
        assert self.kernel.run(BEGIN.format(folder=str(folder), root=str(ROOT))).error == ""
        self.published: dict[str, list[tuple[str, dict[str, Any]]]] = {}

    def agent(self, name: str, code: str, timeout: float = 60) -> None:
        """Have an agent's code begin in the background, and wait until it has."""
        self.kernel.run(f"task = asyncio.ensure_future(agent({code.format(name)!r}, {timeout}))")
        wait_until((self.folder / f"{name} began").exists)

    def go(self, name: str) -> None:
        (self.folder / f"{name} go").touch()

    def listen(self, msg_id: str, kind: str) -> list[dict[str, Any]]:
        """Read what is published until `kind` was for this cell; return what was of that kind."""
        while not (found := [content for one, content in self.published.get(msg_id, []) if one == kind]):
            message = self.kernel.client.get_iopub_msg(timeout=30)
            said = message["content"].get("execution_state", message["msg_type"])
            self.published.setdefault(message["parent_header"].get("msg_id"), []).append((said, message["content"]))
        return found

    def waits(self, code: str) -> str:
        """Ask for a cell that has to wait, and see that it says so."""
        msg_id = self.kernel.start(code)
        (line, *_) = self.listen(msg_id, "display_data")
        assert line["data"]["text/plain"].startswith("Waits for the code of “Explore (dates)” (started ")
        return msg_id

    def end(self, msg_id: str) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
        """Return a cell's reply, and what stays in it as a notebook would save it."""
        self.listen(msg_id, "idle")
        while (message := self.kernel.client.get_shell_msg(timeout=30))["parent_header"].get("msg_id") != msg_id:
            pass
        stays: list[tuple[str, dict[str, Any]]] = []
        for kind, content in self.published[msg_id]:
            if kind == "clear_output":
                stays = []
            elif kind not in {"busy", "idle", "execute_input", "update_display_data"}:
                stays.append((kind, content))
        return message["content"], stays


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    yield made
    made.kernel.close()


def test_cells_and_the_code_of_an_agent_in_the_background_take_turns(desk: Desk):
    kernel = desk.kernel

    # a cell that waits says so, runs when the code has ended, and nothing of the line stays; numbers are as they should be
    desk.agent("a", AWAITS)
    first = desk.waits("print('mine'); 7")
    desk.go("a")
    reply, stays = desk.end(first)
    assert [(kind, content.get("text")) for kind, content in stays] == [("stream", "mine\n"), ("execute_result", None)]
    (status, number), shown = kernel.value("rans[-1]"), desk.listen(first, "execute_input")
    assert (status, reply["execution_count"], shown[-1]["execution_count"]) == ("ok", number + 1, number + 1)
    assert stays[-1][1]["execution_count"] == number + 1
    assert kernel.value(f"[In[{number + 1}], Out[{number + 1}], {number} in Out]") == ["print('mine'); 7", 7, False]

    # commands get through meanwhile; a request of the page waits without a word
    desk.agent("b", AWAITS)
    assert "running" in kernel.run("%agent status\n%agent stop").text
    silent = kernel.client.execute("", silent=True, user_expressions={"it": "len(rans)"})
    later = kernel.client.is_complete("1")
    desk.go("b")
    reply, stays = desk.end(silent)
    assert (reply["user_expressions"]["it"]["data"]["text/plain"], stays) == ("2", []), later

    # an interrupt frees the cell that waits, and the cells below it are not run; the code goes on
    desk.agent("c", AWAITS)
    third, fourth = desk.waits("ran = 'third'"), kernel.start("ran = 'fourth'")
    desk.listen(third, "update_display_data")  # a second later: the fourth has arrived
    kernel.manager.interrupt_kernel()
    reply, stays = desk.end(third)
    said = "You interrupted this cell while it waited for “Explore (dates)”. It did not run."
    assert [(kind, content["ename"], content["evalue"]) for kind, content in stays] == [
        ("error", "KeyboardInterrupt", said)
    ]
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert desk.end(fourth)[0]["status"] == "aborted"
    desk.go("c")
    assert kernel.value("['ran' in globals(), rans[-1][0], main.waiting]") == [False, "ok", []]

    # an interrupt hits synchronous code of the agent, although a command went by and a cell waits; that runs then
    desk.agent("d", THEN_BLOCKS)
    assert "running" in kernel.run("%agent status").text
    fifth = desk.waits("(rans[-1], main.holder.startswith('In['))")
    desk.go("d")
    wait_until((desk.folder / "d blocks").exists)
    kernel.manager.interrupt_kernel()
    reply, stays = desk.end(fifth)
    assert stays[-1][1]["data"]["text/plain"] == "(['Interrupted', None], True)"

    # and so does its time limit
    desk.agent("e", THEN_BLOCKS, timeout=1)
    sixth = desk.waits("rans[-1][0]")
    desk.go("e")
    reply, stays = desk.end(sixth)
    assert (reply["status"], stays[-1][1]["data"]["text/plain"]) == ("ok", "'timeout'")

    # afterwards all is as ever: a cell that need not wait shows nothing, and an interrupt ends the cell that runs
    quick = kernel.start("print('quick')")
    assert [content.get("text") for _, content in desk.end(quick)[1]] == ["quick\n"]
    seventh = kernel.start("print('runs', flush=True)\nthreading.Event().wait(60)")
    desk.listen(seventh, "stream")
    kernel.manager.interrupt_kernel()
    assert desk.end(seventh)[0]["ename"] == "KeyboardInterrupt"
    assert kernel.value("[signal.getsignal(2) is signal.default_int_handler, main.waiting, told[-2:]]") == [
        True,
        [],
        [],
    ]
