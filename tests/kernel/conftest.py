"""A real kernel to run cells in, and what it published. Read `RealKernel.run` first."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

PRELUDE = """
import asyncio, json, threading, time
from nbagent.jupyter.kernel import ShellKernel
kernel_under_test = ShellKernel(get_ipython())
shown = []
async def agent(code, timeout=60, emit=shown.append):
    global ran
    shown.clear()
    ran = await kernel_under_test.run(code, emit=emit, timeout=timeout)
async def look(code, timeout=60):
    global ran
    ran = await kernel_under_test.scratch(code, timeout=timeout)
"""


@dataclass
class Reply:
    """What the page of a cell got: its outputs, and the reply with its execution count."""

    outputs: list[dict[str, Any]] = field(default_factory=list)
    content: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(o["text"] for o in self.outputs if o["type"] == "stream")

    @property
    def error(self) -> str:
        return next((o["ename"] for o in self.outputs if o["type"] == "error"), "")


class RealKernel:
    def __init__(self) -> None:
        env = {k: v for k, v in os.environ.items() if k not in {"MPLBACKEND", "PYTEST_CURRENT_TEST"}}
        self.manager, self.client = start_new_kernel(kernel_name="python3", env=env)
        assert self.run(PRELUDE).error == ""

    def start(self, code: str) -> str:
        return self.client.execute(code, allow_stdin=False)

    def finish(self, msg_id: str, timeout: float = 30) -> Reply:
        reply = Reply()
        end = time.monotonic() + timeout
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.1, end - time.monotonic()))
            if message["parent_header"].get("msg_id") != msg_id:
                continue
            kind = message["msg_type"]
            if kind == "status" and message["content"]["execution_state"] == "idle":
                break
            if kind in {"stream", "error", "display_data", "execute_result", "update_display_data", "clear_output"}:
                reply.outputs.append({"type": kind, **message["content"]})
        while True:  # answers to the questions of the start may still be there
            message = self.client.get_shell_msg(timeout=30)
            if message["parent_header"].get("msg_id") == msg_id:
                reply.content = message["content"]
                return reply

    def until_output(self, msg_id: str, timeout: float = 20) -> dict[str, Any]:
        end = time.monotonic() + timeout
        while True:
            message = self.client.get_iopub_msg(timeout=max(0.1, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == msg_id and message["msg_type"] == "stream":
                return message["content"]

    def run(self, code: str, timeout: float = 30) -> Reply:
        return self.finish(self.start(code), timeout)

    def agent(self, code: str, limit: float | None = 60) -> dict[str, Any]:
        """Run `code` as the agent does, inside an awaited cell; return the Ran and what was emitted.

        `leaked` is what the agent's own cell showed.
        """
        reply = self.run(f"await agent({code!r}, {limit!r})", timeout=(limit or 0) + 30)
        return {**self.ran(), "leaked": reply.outputs}

    def look(self, code: str, limit: float | None = 60) -> dict[str, Any]:
        reply = self.run(f"await look({code!r}, {limit!r})", timeout=(limit or 0) + 30)
        return {**self.ran(), "leaked": reply.outputs}

    def ran(self) -> dict[str, Any]:
        return self.value(
            "{'status': ran.status, 'outputs': ran.outputs, 'number': ran.number, 'note': ran.note,"
            " 'seconds': ran.seconds, 'shown': shown}"
        )

    def value(self, expression: str) -> Any:
        """Evaluate an expression whose value is JSON, in the person's namespace."""
        reply = self.run(f"print(json.dumps({expression}))")
        assert reply.error == "", reply.outputs
        return json.loads(reply.text)

    @property
    def alive(self) -> bool:
        return self.value("'alive'") == "alive"

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(scope="session")
def real_kernel() -> Iterator[RealKernel]:
    kernel = RealKernel()
    yield kernel
    kernel.close()


def stream(ran: dict[str, Any], name: str = "stdout") -> str:
    return "".join(o["text"] for o in ran["outputs"] if o["output_type"] == "stream" and o["name"] == name)


def error(ran: dict[str, Any]) -> dict[str, Any]:
    return next(o for o in ran["outputs"] if o["output_type"] == "error")
