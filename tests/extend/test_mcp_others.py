"""MCP servers that others wrote: the reference server in TypeScript (stdio, streamable HTTP, SSE) and one in Python.

`make` installs them, pinned, into build/mcp/.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nbagent.core.errors import ToolError
from nbagent.core.tools import Kind
from nbagent.extend.mcp_client import State
from nbagent.extend.mcp_config import ServerSpec
from tests.extend.mcp_rig import Heard, named, servers, text, use
from tests.source import ROOT

pytestmark = pytest.mark.slow

INSTALLED = ROOT / "build" / "mcp"
EVERYTHING = INSTALLED / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
BIN = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def node() -> str:
    found = shutil.which("node", path=BIN)
    assert found and EVERYTHING.is_file(), "make test installs node and the servers into build/mcp/"
    return found


class Remote:
    """The reference server on a port of this machine; `stop` kills it, `start` starts it anew on the same port."""

    def __init__(self, transport: str) -> None:
        self.transport = transport
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [node(), str(EVERYTHING), self.transport],
            env={**os.environ, "PORT": str(self.port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # node may be a program that starts the real one
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "listening" in line or "running on port" in line:
                return

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture(params=["streamableHttp", "sse"])
def remote(request) -> Iterator[Remote]:
    there = Remote(request.param)
    yield there
    there.stop()


def at(folder: Path, there: Remote) -> ServerSpec:
    kind, path = ("sse", "sse") if there.transport == "sse" else ("http", "mcp")
    return ServerSpec("e", "user", "here", {"type": kind, "url": f"http://127.0.0.1:{there.port}/{path}"}, folder)


async def test_the_reference_server_over_the_network(tmp_path, remote):
    of = servers(tmp_path, at(tmp_path, remote))
    await of.prepare()
    try:
        assert of.connections["e"].state is State.CONNECTED, of.connections["e"].why
        assert text(await use(of, "mcp__e__echo", message="hi ü")) == "Echo: hi ü"
        heard = Heard()
        await use(of, "mcp__e__trigger-long-running-operation", heard, duration=0.2, steps=2)
        assert heard.progress[-1].startswith("2 of 2")
    finally:
        await of.close()


async def test_a_server_that_comes_back_is_reached_again(tmp_path):
    there = Remote("streamableHttp")
    of = servers(tmp_path, at(tmp_path, there))
    await of.prepare()
    try:
        await use(of, "mcp__e__echo", message="one")
        there.stop()
        with pytest.raises(ToolError, match="may have taken effect"):
            await use(of, "mcp__e__echo", message="two")
        with pytest.raises(ToolError, match="is not running, so nothing was sent"):
            await use(of, "mcp__e__echo", message="three")
        there.start()
        assert text(await use(of, "mcp__e__echo", message="four")) == "Echo: four"
    finally:
        await of.close()
        there.stop()


async def test_a_server_that_was_restarted_behind_our_back_gets_the_call_that_it_refused_unread(tmp_path):
    """It refuses a session that it does not know: then the call did not run, and is sent again."""
    there = Remote("streamableHttp")
    of = servers(tmp_path, at(tmp_path, there))
    await of.prepare()
    try:
        await use(of, "mcp__e__echo", message="before")
        there.stop()
        there.start()
        said = text(await use(of, "mcp__e__echo", message="again"))
        assert said == "Echo: again"
    finally:
        await of.close()
        there.stop()


async def test_the_reference_server_over_stdio(tmp_path):
    spec = ServerSpec("e", "user", "here", {"command": node(), "args": [str(EVERYTHING)]}, tmp_path)
    of = servers(tmp_path, spec)
    await of.prepare()
    try:
        tools = named(of.tools())
        assert tools["mcp__e__echo"].kind({}) is Kind.READ
        assert tools["mcp__e__trigger-elicitation-request"].kind({}) is Kind.MCP
        found = json.loads(text(await use(of, "mcp__e__get-structured-content", location="New York")))
        assert "temperature" in found
        heard = Heard(["Ada"])
        await use(of, "mcp__e__trigger-elicitation-request", heard)
        assert "“e” asks" in heard.questions[0].text
        with pytest.raises(ToolError, match="'b' is a required property"):
            await use(of, "mcp__e__get-sum", a=1)
        assert "demo://resource/static" in text(await use(of, "list_mcp_resources", server="e"))
        assert "Paris" in (await of.prompt("mcp__e__args-prompt", ["Paris"]))[0]["text"]
    finally:
        await of.close()


async def test_a_server_in_python_that_speaks_the_newest_protocol(tmp_path):
    config = {
        "command": sys.executable,
        "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
        "env": {"PYTHONPATH": str(INSTALLED / "python")},
    }
    of = servers(tmp_path, ServerSpec("time", "user", "here", config, tmp_path))
    await of.prepare()
    try:
        assert "2026-07-28" in of.connections["time"].offers.version, of.connections["time"].why
        assert json.loads(text(await use(of, "mcp__time__get_current_time", timezone="UTC")))["timezone"] == "UTC"
        wrong = await use(of, "mcp__time__get_current_time", timezone="Nowhere")
        assert wrong.is_error
    finally:
        await of.close()
