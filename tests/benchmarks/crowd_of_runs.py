"""The random test with real cells: `%%agent --background`, a page, and a person who runs, answers, stops and interrupts.

By hand: CROWD_STEPS=100 CROWD_SEED=2 pytest -s tests/benchmarks/crowd_of_runs.py (see tests/places/test_crowd.py).
"""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from tests.core.rig import check_transcript
from tests.failures.room import Room, Shown
from tests.support.messages_server import MessagesServer

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]

STEPS = int(os.environ.get("CROWD_STEPS", "25"))
SEED = int(os.environ.get("CROWD_SEED", "11"))
AT_ONCE = 3
AGENT = "%%agent --background --again --new -m scripted:tests.places.crowd_scripts:crowd --name n{0}\nDo it, {0}."
BEGIN = """
import asyncio, contextlib, random, time
from nbagent.app.extension import current
from nbagent.core.ports import Answered
extension, marks, asked, yes = current(get_ipython()), [], set(), []
random.seed({seed})
@contextlib.contextmanager
def mark(name):
    marks.append(("in", name))
    try:
        yield
    finally:
        marks.append(("out", name))
def answer(approved):
    asks = extension.underway.asks
    asked.update(approval.call_id for approval in asks)
    if asks and extension.underway.answer(asks[0].call_id, asks[0].hash, Answered(approved)):
        yes.append(asks[0].call_id)
"""
CELLS = (
    "with mark({0!r}): pass",
    "with mark({0!r}):\n    for _ in range(3): await asyncio.sleep(0.01)",
    "with mark({0!r}): 1 / 0",
    "%agent status",
)
ENDLESS = (
    "with mark({0!r}):\n    for _ in range(600): await asyncio.sleep(0.1)"  # a loop that sleeps hears an interrupt late
)
STOP = "if runs := list(extension.underway.runs.values()):\n    random.choice(runs).stop.now()"
STOP_ALL = """
for run in list(extension.underway.runs.values()):
    run.stop.now()
async with asyncio.timeout(30):
    while extension.underway.runs:
        await asyncio.sleep(0.05)
"""


def interleaved(marks: list[list[str]]) -> list[str]:
    """What ran in the middle of something else."""
    wrong, inside = [], ""
    for what, name in marks:
        if (what == "in") is bool(inside) or (what == "out" and inside != name):
            wrong.append(f"{what} {name} in {inside}")
        inside = name if what == "in" else ""
    return wrong


class Person:
    """Runs cells in a room, and gives up on those that wait too long."""

    def __init__(self, room: Room) -> None:
        self.room, self.random, self.log, self.agents = room, random.Random(SEED), list[str](), 0

    async def cell(self, source: str, patience: float = 3.0) -> Shown:
        running = asyncio.create_task(self.room.cell(source))
        done, _ = await asyncio.wait({running}, timeout=patience)
        while not done:  # an agent's code, or the cell itself, awaits for a minute
            self.room.interrupt()
            done, _ = await asyncio.wait({running}, timeout=patience)
        shown = await running
        self.log.append(f"{source[:60]!r}: {shown.error or 'ok'}")
        return shown

    async def step(self, n: int) -> None:
        deed = self.random.choices(["cell", "endless", "yes", "no", "stop", "agent"], [8, 1, 10, 1, 1, 4])[0]
        if deed == "cell":
            await self.cell(self.random.choice(CELLS).format(f"cell {n}"))
        elif deed == "endless":
            await self.cell(ENDLESS.format(f"cell {n}"), patience=0.3)
        elif deed in {"yes", "no"}:
            await self.cell(f"answer({deed == 'yes'})")
        elif deed == "stop":
            await self.cell(STOP)
        elif (
            "there is room"
            in (await self.cell(f"if len(extension.underway.runs) < {AT_ONCE}: print('there is room')")).record
        ):
            self.agents += 1
            await self.cell(AGENT.format(self.agents), patience=20)


async def test_real_cells_in_the_background_and_a_person_never_get_in_each_others_way(tmp_path):
    with MessagesServer() as server:
        async with Room(tmp_path, server, interactive=True) as room:
            person = Person(room)
            await room.cell(BEGIN.format(seed=SEED))
            for n in range(STEPS):
                await person.step(n)
            story = f"seed {SEED}:\n" + "\n".join(person.log[-40:])
            ended = await room.cell(STOP_ALL)
            assert not ended.error, (ended.error, story)
            marks = await room.value("marks")
            assert interleaved(marks) == [], story
            assert await room.value("[extension.main.waiting, extension.underway.runs]") == [[], {}], story
            assert person.agents >= AT_ONCE and await room.value("len(yes)") > 0, story
            for messages in room.transcripts():
                check_transcript(messages)
            print(f"\nseed {SEED}: {person.agents} agents, {len(marks) // 2} pieces of code")
            await room.still_works()
