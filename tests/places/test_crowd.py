"""A random test: three agents in the background, and a person who runs cells, clicks, stops and interrupts at random.

CROWD_STEPS=500 and CROWD_SEED make it longer, or another. `tests/places/crowd.py` is what goes on in the kernel.
"""

from __future__ import annotations

import json
import os
import queue
import random
import time
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

pytestmark = [pytest.mark.kernel, pytest.mark.places, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
STEPS = int(os.environ.get("CROWD_STEPS", "40"))
SEED = int(os.environ.get("CROWD_SEED", "5"))
BEGIN = "from tests.places.crowd import Crowd\ncrowd = Crowd(get_ipython(), {seed})"
WITHIN = 20.0  # seconds in which every cell must have its reply
PATIENCE = 0.8  # after so many the person gives up waiting for a cell

CELLS = {
    "sync": "with mark({name!r}): pass",
    "awaits": "with mark({name!r}):\n    from tests.support.turns import turns\n    await turns(20)",
    "fails": "with mark({name!r}): 1 / 0",
    "line": "%agent status",
}
STOPPED = {
    "sync": "with mark({name!r}):\n    print('runs', flush=True)\n    import threading\n    threading.Event().wait(15)",
    "awaits": "with mark({name!r}):\n    print('runs', flush=True)\n    import asyncio\n    await asyncio.wait_for(asyncio.Event().wait(), 15)",
}


class Person:
    """One client of one kernel, with a subshell for its clicks where pages have one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        env = {k: v for k, v in os.environ.items() if k not in {"MPLBACKEND", "PYTEST_CURRENT_TEST"}}
        self.manager, self.client = start_new_kernel(env={**env, "PYTHONPATH": str(ROOT)})
        self.replies: dict[str, Any] = {}
        self.log: list[str] = []
        self.counter = 0
        self.subshell: str | None = None
        for code in ("%load_ext nbagent", BEGIN.format(seed=seed)):
            asked = self.ask(code)
            assert self.replied(asked, 60) and self.replies[asked]["status"] == "ok", self.replies
        version = self.value("list(__import__('ipykernel').version_info[:2])")
        if [7, 0] <= version < [7, 4]:
            self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
            self.subshell = self.client.get_control_msg(timeout=WITHIN)["content"]["subshell_id"]
        opened = {"comm_id": "crowd", "target_name": "crowd", "data": {}}
        self.client.shell_channel.send(self.client.session.msg("comm_open", opened))
        # An interrupt in the first step must not hit the opening: all clicks would go nowhere.
        assert self.value("'crowd' in __import__('comm').get_comm_manager().comms")

    # ── what it does ────────────────────────────────────────────────────────────────────────────────────────────────

    def click(self, deed: str) -> None:
        message = self.client.session.msg("comm_msg", {"comm_id": "crowd", "data": {"deed": deed}})
        if self.subshell is not None:
            message["header"]["subshell_id"] = self.subshell
        self.client.shell_channel.send(message)

    def ask(self, code: str, **options: Any) -> str:
        return self.client.execute(code, allow_stdin=False, stop_on_error=False, **options)

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def replied(self, msg_id: str, within: float) -> bool:
        end = time.monotonic() + within
        while msg_id not in self.replies and (left := end - time.monotonic()) > 0:
            try:
                message = self.client.get_shell_msg(timeout=left)
            except queue.Empty:
                break
            self.replies[message["parent_header"].get("msg_id")] = message["content"]
        return msg_id in self.replies

    def finish(self, msg_id: str) -> dict[str, Any]:
        """Wait for a cell's reply; after a while as people do, who stop what holds it up or interrupt it."""
        if not self.replied(msg_id, PATIENCE):
            for deed in self.random.sample(["stop holder", "interrupt"], 2):
                self.interrupt() if deed == "interrupt" else self.click(deed)
                self.log.append(f"  … {deed}")
                if self.replied(msg_id, 2.0):
                    break
        assert self.replied(msg_id, WITHIN), f"no reply\n{self.story}"
        return self.replies[msg_id]

    @property
    def story(self) -> str:
        return f"seed {SEED}:\n" + "\n".join(self.log[-40:])

    def value(self, expression: str) -> Any:
        """The value of an expression, as JSON, by a silent request: that takes a turn, too, and can be interrupted."""
        code = {"it": f"__import__('json').dumps({expression})"}
        reply = self.finish(self.ask("", silent=True, user_expressions=code))
        while reply.get("ename") == "KeyboardInterrupt":
            reply = self.finish(self.ask("", silent=True, user_expressions=code))
        assert reply["status"] == "ok" and reply["user_expressions"]["it"]["status"] == "ok", (reply, self.story)
        return json.loads(eval(reply["user_expressions"]["it"]["data"]["text/plain"]))

    # ── at random ───────────────────────────────────────────────────────────────────────────────────────────────────

    def step(self) -> None:
        deeds = {"cell": 8, "three cells": 2, "yes": 6, "no": 1, "stop": 1, "interrupt": 1, "stopped cell": 1,
                 "cell, interrupted": 2, "value": 1}  # fmt: skip
        deed = self.random.choices(list(deeds), list(deeds.values()))[0]
        self.log.append(deed)
        self.click("start")
        if deed in {"yes", "no", "stop"}:
            self.click(deed)
        elif deed == "interrupt":
            self.interrupt()
        elif deed == "value":
            assert self.value("1 + 1") == 2
        elif deed == "stopped cell":
            self.stopped()
        else:
            cells = [self.cell() for _ in range(3 if deed == "three cells" else 1)]
            if deed == "cell, interrupted":
                self.interrupt()
            for kind, msg_id in cells:
                self.check(kind, self.finish(msg_id))

    def cell(self) -> tuple[str, str]:
        self.counter += 1
        kind = self.random.choice(list(CELLS))
        return kind, self.ask(CELLS[kind].format(name=f"cell {self.counter}"))

    def check(self, kind: str, reply: dict[str, Any]) -> None:
        self.log.append(f"  {kind}: {reply['status']} {reply.get('ename', '')}")
        names = {"KeyboardInterrupt", "CancelledError", "ZeroDivisionError" if kind == "fails" else ""}
        interrupted = reply["status"] == "error" and ("Stopped by you" in reply["evalue"] or reply["ename"] in names)
        assert interrupted or (reply["status"] == "ok" and kind != "fails"), (reply, self.story)

    def stopped(self) -> None:
        """Interrupt a cell that runs: the cell it is that ends."""
        self.counter += 1
        kind, name = self.random.choice(list(STOPPED.items()))
        asked = self.ask(name.format(name=f"cell {self.counter}"))
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            try:
                message = self.client.get_iopub_msg(timeout=left)
            except queue.Empty:
                break
            if message["parent_header"].get("msg_id") == asked and message["msg_type"] == "stream":
                break
        self.interrupt()
        self.check(kind, self.finish(asked))

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


def test_agents_in_the_background_and_a_person_never_get_in_each_others_way():
    person = Person(SEED)
    try:
        for _ in range(STEPS):
            person.step()
        person.click("end all")
        end = time.monotonic() + WITHIN
        while person.value("len(crowd.tasks)"):
            assert time.monotonic() < end, person.story
        report = person.value("crowd.report()")
        assert report["wrong"] == [], (report, person.story)
        assert report["ran"] >= STEPS // 2 and report["asked"] >= STEPS // 10, (report, person.story)
        print(f"\nseed {SEED}, {STEPS} steps, {person.counter} cells of the person's: {report}")
        person.stopped()  # and the last cell can be interrupted as the first
    finally:
        person.close()
