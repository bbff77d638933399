"""A random test with real cells: `%%agent --background`, a page, and a person who runs, answers, stops and interrupts.

CROWD_STEPS=500 and CROWD_SEED make it longer, or another (see tests/places/test_crowd.py, whose agents are not cells).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from typing import Any

import pytest

from nbagent.core.session import NOT_STARTED
from tests.core.rig import check_transcript
from tests.failures.room import Room, Shown
from tests.support.messages_server import MessagesServer

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]

STEPS = int(os.environ.get("CROWD_STEPS", "40"))
SEED = int(os.environ.get("CROWD_SEED", "2"))
AT_ONCE = 3
DEEDS = {"cell": 8, "endless": 1, "yes": 10, "no": 1, "stop": 1, "press Stop": 1, "agent": 4}
AGENT = "%%agent --background --again --new -m scripted:tests.places.crowd_scripts:crowd --name n{0}\nDo it, {0}."
BEGIN = """
import contextlib, random
from nbagent.app.extension import current
from nbagent.core.ports import Answered
from tests.support.turns import turns, until
extension, marks, yes, no = current(get_ipython()), [], [], []
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
    if asks and asks[0].answer(Answered(approved)):
        (yes if approved else no).append(asks[0].approval.call_id)
async def gone(name):
    await until(lambda: all(run.name != name for run in extension.underway.runs.values()), within=20)
"""
CELLS = (
    "with mark({0!r}): pass",
    "with mark({0!r}): await turns(50)",
    "with mark({0!r}): 1 / 0",
    "%agent status",
)
ENDLESS = "with mark({0!r}): await until(lambda: False, within=60)"
STOP = """
if runs := list(extension.underway.runs.values()):
    run = random.choice(runs)
    run.stop.now()
    await gone(run.name)
"""
GONE = "await gone('n{}')"
STOP_ALL = """
for run in list(extension.underway.runs.values()):
    run.stop.now()
await until(lambda: not extension.underway.runs, within=30)
"""


def interleaved(marks: list[list[str]]) -> list[str]:
    """What ran in the middle of something else."""
    wrong, inside = [], ""
    for what, name in marks:
        if (what == "in") is bool(inside) or (what == "out" and inside != name):
            wrong.append(f"{what} {name} in {inside}")
        inside = name if what == "in" else ""
    return wrong


def lost(transcripts: list[list[dict[str, Any]]], begun: set[str], yes: list[str], no: list[str]) -> list[str]:
    """The calls whose code did what the person had not said, by their results: it ran unasked, or did not and was allowed."""
    blocks = [block for messages in transcripts for message in messages for block in message["content"]]
    texts = {b["tool_use_id"]: json.dumps(b["content"]) for b in blocks if b["type"] == "tool_result"}
    wrong, seen = [], set[str]()
    for block in blocks:
        if block["type"] != "tool_use" or block["name"] != "run_python":
            continue
        call, ran = block["id"], block["input"]["code"].split("'")[1] in begun
        seen.add(call)
        cut = any(
            said in texts[call] for said in ("Interrupted: ", "interrupted this call", NOT_STARTED)
        )  # or Stop came first
        if ran != (call in yes) and not (call in yes and cut):
            wrong.append(f"{call} {'ran' if ran else 'did not run'}: {texts[call][:200]}")
    return wrong + [f"{call} was answered and is in no session" for call in {*yes, *no} - seen]


class Person:
    """Runs cells in a room, and gives up on those that wait too long."""

    def __init__(self, room: Room) -> None:
        self.room, self.random, self.log, self.agents = room, random.Random(SEED), list[str](), 0

    @property
    def story(self) -> str:
        return f"seed {SEED}:\n" + "\n".join(self.log[-40:])

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
        deed = self.random.choices(list(DEEDS), list(DEEDS.values()))[0]
        if deed == "cell":
            await self.cell(self.random.choice(CELLS).format(f"cell {n}"))
        elif deed == "endless":
            await self.cell(ENDLESS.format(f"cell {n}"), patience=0.3)
        elif deed in {"yes", "no"}:
            await self.cell(f"answer({deed == 'yes'})")
        elif deed == "stop":
            assert not (ended := await self.cell(STOP, patience=60)).error, (ended.error, self.story)
        elif deed == "press Stop":
            if self.agents:
                self.room.page.click("Stop")  # whatever the newest agent does now, its code in the middle of a line too
                ended = await self.cell(GONE.format(self.agents), patience=60)
                assert not ended.error, (ended.error, self.story)
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
            story = person.story
            ended = await room.cell(STOP_ALL)
            assert not ended.error, (ended.error, story)
            marks = await room.value("marks")
            assert interleaved(marks) == [], story
            assert await room.value("[extension.main.waiting, extension.underway.runs]") == [[], {}], story
            yes, no = await room.value("[yes, no]")
            assert person.agents >= AT_ONCE and yes, story
            for messages in room.transcripts():
                check_transcript(messages)
            begun = {name for what, name in marks if what == "in"}
            assert lost(room.transcripts(), begun, yes, no) == [], story
            print(
                f"\nseed {SEED}: {person.agents} agents, {len(marks) // 2} pieces of code, {len(yes)} approved, {len(no)} denied"
            )
            await room.still_works()
