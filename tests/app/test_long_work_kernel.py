"""Long work in a real kernel: code that goes on while the model looks, is waited for, stopped, interrupted, and tried."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, Reply, calls

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]

LOADS = """
import asyncio, pathlib
partial, left, never = [], [], asyncio.get_running_loop().create_future()
try:
    while not pathlib.Path("end").exists():
        partial.append(len(partial))
        print(f"\\rLoad: {min(len(partial), 99)}%|##", end="")
        await asyncio.wait([never], timeout=0.02)
    print("\\nloaded")
finally:
    left.append("left")
"""
HOLDS = """
import threading
never = threading.Event()
for step in range(1_000):
    print(f"\\rFit: {step}/1000 |##", end="")
    never.wait(0.02)
"""
AGENT = "%%agent --cell-patience 0.5 --again\n"


class Script:
    """What the model says, in order; a function among it is called when its turn has come, and returns what it says."""

    def __init__(self) -> None:
        self.turns: list[Any] = []

    def __call__(self, _request: Any) -> Any:
        turn = self.turns.pop(0) if self.turns else "I am here."
        return turn() if callable(turn) else turn


def after(done: Callable[[], object], reply: Reply | str) -> Callable[[], Reply | str]:
    """Return a turn before which something happens outside."""

    def turn() -> Reply | str:
        done()
        return reply

    return turn


async def test_a_long_cell_goes_on_while_the_model_looks_and_ends_stopped_interrupted_or_by_itself(tmp_path):
    script, end = Script(), Path(tmp_path / "end")
    wait = calls("wait_for_cell", seconds=60)
    asides: list[str] = []
    with MessagesServer(script) as server:
        async with Room(tmp_path, server, interactive=True, NBAGENT_MODE="bypass") as room:

            async def cell(*turns: Any) -> tuple[Any, list[str]]:
                script.turns, known = list(turns), len(room.results() if room.transcripts() else [])
                shown = await room.cell(AGENT + f"Go on with {turns[0]!s:.20}.")
                await asyncio.to_thread(end.unlink, missing_ok=True)
                assert not script.turns, shown.seen
                return shown, room.results()[known:]

            # it goes on, is looked at, nothing else runs beside it, and it is waited for
            shown, (began, looked, refused, ended) = await cell(
                calls("add_cell", source=LOADS),
                calls("inspect_variable", name="partial"),
                calls("run_python", code="1"),
                after(end.touch, wait),
                "All of it is loaded.",
            )
            shown.says("All of it is loaded.", "wait for the cell “import asyncio, pathlib”")
            assert re.search(r"cell \S+ still runs: .* so far, Load \d+ % \(look 1\)", began), began
            assert re.match(r"list of \d+; types", looked), looked
            assert "still runs" in refused and "one piece of code runs at a time" in refused
            assert re.search(r"ran as In\[\d+\] in .* s: ok\.", ended) and "loaded" in ended

            # the agent stops it
            _, (_, stopped) = await cell(
                calls("add_cell", source=LOADS), calls("wait_for_cell", stop=True), "I have stopped it."
            )
            assert stopped.startswith("Stopped after ") and "Load: " in stopped
            assert await room.value("left") == ["left"]

            # a run that is done waits for it, and the model has the last word
            shown, _ = await cell(calls("add_cell", source=LOADS), after(end.touch, "It loads."), "Now it has loaded.")
            shown.says("Now it has loaded.")
            told = room.transcripts()[-1][-2]["content"]
            assert "has ended:" in told[0]["text"] and "loaded" in told[1]["text"] + told[-1]["text"]

            # an interrupt of the run ends the code, too
            script.turns = [calls("add_cell", source=LOADS), wait]
            waits = asyncio.create_task(room.seen("still runs after"))
            running = asyncio.create_task(room.cell(AGENT + "Wait."))
            await waits
            await asyncio.to_thread(server.wait_for_requests, len(server.requests))
            room.interrupt()
            shown = await running
            assert shown.error, shown.seen
            assert await room.value("left") == ["left"]

            # synchronous code: the model bounds its own try, and the panel moves meanwhile
            before = room.page.saw
            room.page.saw = lambda text: (before(text), asides.append(text) if '"aside"' in text else None)
            _, (tried,) = await cell(calls("add_cell", source=HOLDS, limit=4), "It would take 20 s.")
            assert re.search(r"It had come to: Fit \d+ %\.", tried), tried
            assert re.search(r"stopped after 4\.\d s: the time limit is 4 s", tried)
            assert any(re.search(r"runs for [\d.]+ s .* Fit \d+ %", text) for text in asides), asides
            await room.still_works()
        assert not server.refusals
