"""A real kernel is killed at random messages to its page: the next one goes on, and what was approved has run once at most.

The finer points of a run, 50 of them, are in test_killed.py; here are kernel, page and clicks as a person has them.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from nbclient.exceptions import DeadKernelError

from nbagent.core.session import MAYBE, NEVER_BEGAN
from tests.app.test_killed import Model
from tests.core.rig import check_transcript
from tests.failures.room import Room
from tests.support.messages_server import MessagesServer, call

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]

POINTS, SEED = 3, 20261130
TASK, ON = "%%agent\nDo it.", "%%agent\nGo on."


def effect(token: str) -> dict[str, Any]:
    return call("run_python", code=f"with open('effects.txt', 'a') as file:\n    print('{token}', file=file)")


def effects(folder: Path) -> list[str]:
    path = folder / "effects.txt"
    return path.read_text().split() if path.exists() else []


async def agreed(room: Room, source: str, kill: int = 0) -> int:
    """Run a cell with all that it asks approved; return how many messages the page got. At the one of number `kill` it dies."""
    got, open_cards = 0, asyncio.Event()

    def saw(text: str) -> None:
        nonlocal got
        got += 1
        if got == kill:
            os.kill(room.pid, signal.SIGKILL)
        if '"description": "Approve"' in text:
            open_cards.set()

    room.page.saw = saw
    running = asyncio.create_task(room.cell(source))
    asked = asyncio.create_task(open_cards.wait())
    await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
    while not running.done():  # a click within the card's dead time does not count
        room.page.click("Approve")
        await asyncio.wait({running}, timeout=0.2)
    asked.cancel()
    await running
    return got


def check(folder: Path, room: Room) -> None:
    """Each transcript is valid, nothing ran twice, and the model was told the truth of each call."""
    ran = effects(folder)
    assert len(ran) == len(set(ran)), ran
    for messages in room.transcripts():
        check_transcript(messages)
        blocks = [block for message in messages for block in message["content"]]
        tokens = {b["id"]: re.findall(r"token-\d+", b["input"]["code"])[0] for b in blocks if b["type"] == "tool_use"}
        for block in (b for b in blocks if b["type"] == "tool_result"):
            text, token = block["content"][0]["text"], tokens[block["tool_use_id"]]
            if text == NEVER_BEGAN:
                assert token not in ran, text
            elif not block.get("is_error"):
                assert token in ran, text
            else:
                assert text == MAYBE, text


async def test_a_kernel_that_was_killed_goes_on_in_its_session_and_runs_nothing_twice(tmp_path: Path) -> None:
    with MessagesServer(Model(effect)) as server:
        (tmp_path / "whole").mkdir()
        async with Room(tmp_path / "whole", server, interactive=True) as room:
            total = await agreed(room, TASK)
            check(tmp_path / "whole", room)
        assert len(effects(tmp_path / "whole")) == 4
        for kill in random.Random(SEED).sample(range(1, total), POINTS):
            folder = tmp_path / str(kill)
            folder.mkdir()
            async with Room(folder, server, interactive=True) as room:
                try:
                    await agreed(room, TASK, kill)
                except DeadKernelError:
                    pass
                else:  # fewer messages than in the whole run: it had ended
                    os.kill(room.pid, signal.SIGKILL)
                cells = list(room.page.document.cells)
            before = effects(folder)
            async with Room(folder, server, interactive=True) as room:
                room.page.document.cells[:0] = cells
                await agreed(room, ON)
                check(folder, room)
            assert effects(folder)[: len(before)] == before
            assert len(effects(folder)) >= 4, kill
        server.assert_clean()
