"""A room: one real kernel with a page and, if wanted, a person; cells are run in it one after the other.

The model is `MessagesServer` over real HTTP. Read `Room.cell` and `Shown` first.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from nbagent.headless.page import PageClient, send
from tests.core.rig import check_transcript
from tests.support.messages_server import MessagesServer

ROOT = Path(__file__).parents[2]
NOT_FOR_PEOPLE = ("Traceback", 'File "', "site-packages", "\x1b[0;31m")


class Page(PageClient):
    """The page of the room. With a person it says that somebody can click; `saw` gets what the view sends, as text."""

    def __init__(self, *args: Any, interactive: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self._interactive = interactive
        self._buttons: dict[str, str] = {}
        self.saw: Callable[[str], None] = lambda _: None

    def _send(self, comm: str, content: dict[str, Any]) -> None:
        if self._interactive and "interactive" in (content.get("result") or {}):
            content = {**content, "result": {**content["result"], "interactive": True}}
        super()._send(comm, content)

    def handle_comm_msg(self, outs: list[NotebookNode], msg: dict[str, Any], cell_index: int) -> None:
        super().handle_comm_msg(outs, msg, cell_index)
        state = (msg["content"].get("data") or {}).get("state") or {}
        if msg["msg_type"] == "comm_open" and state.get("_model_name") == "ButtonModel":
            self._buttons[str(state.get("description"))] = msg["content"]["comm_id"]
        self.saw(json.dumps(msg["content"], default=str))

    def click(self, face: str) -> None:
        """Click the newest button with this face."""
        data = {"method": "custom", "content": {"event": "click"}}
        kc: Any = self.kc
        message = kc.session.msg("comm_msg", content={"comm_id": self._buttons[face], "data": data})
        if self._subshell is not None:  # on ipykernel 7.0 to 7.3, as a page does it
            message["header"]["subshell_id"] = self._subshell
        send(kc.shell_channel, message)


@dataclass(frozen=True)
class Shown:
    """What a person sees of a cell that ran."""

    cell: NotebookNode
    seconds: float

    @property
    def record(self) -> str:
        """The plain text of what was displayed, and what was printed."""
        texts = [
            o["text"] if o.output_type == "stream" else o.get("data", {}).get("text/plain", "")
            for o in self.cell.outputs
        ]
        return "\n".join(texts)

    @property
    def error(self) -> str:
        """What is drawn in red: the traceback's lines, which for us are a sentence."""
        return "\n".join("\n".join(o.traceback) for o in self.cell.outputs if o.output_type == "error")

    @property
    def seen(self) -> str:
        return f"{self.record}\n{self.error}"

    def says(self, *parts: str) -> None:
        """Assert that the person reads all of `parts` and nothing that is for programmers."""
        for part in parts:
            assert part in self.seen, f"{part!r} is not in:\n{self.seen}"
        for part in NOT_FOR_PEOPLE:
            assert part not in self.seen, self.seen


def transcripts(folder: Path) -> list[list[dict[str, Any]]]:
    """The messages of every session that was kept in `folder`, oldest first."""
    found = []
    for path in sorted((folder / ".nbagent" / "sessions").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns):
        records = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        found.append([r["message"] for r in records if r["type"] == "message"])
    return found


class Room:
    """See the module's docstring. `env` is the kernel's; a value None takes a name away."""

    def __init__(self, folder: Path, server: MessagesServer, *, interactive: bool = False, **env: str | None) -> None:
        given = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-test", "PYTHONPATH": str(ROOT), **env}
        self._env = {k: v for k, v in {**os.environ, **given}.items() if v is not None and k != "MPLBACKEND"}
        self.folder, self.server = folder, server
        self.page = Page(
            new_notebook(), path=str(folder / "room.ipynb"), interactive=interactive, timeout=110, allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
        )  # fmt: skip
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.page.async_setup_kernel(env=self._env))
        loaded = await self.cell("%load_ext nbagent")
        assert not loaded.cell.outputs, loaded.seen
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._stack.__aexit__(*failure)

    async def cell(self, source: str, *replies: Any, within: float = 90) -> Shown:
        """Run a cell at the end of the notebook to its end; the model answers with `replies`."""
        self.server.push(*replies)
        node = new_code_cell(source)
        self.page.nb.cells.append(node)
        self.page.document.cells.append(node)
        begin = asyncio.get_running_loop().time()
        running = asyncio.create_task(self.page.async_execute_cell(node, len(self.page.nb.cells) - 1))
        done, _ = await asyncio.wait({running}, timeout=within)
        if not done:
            raise AssertionError(f"the cell still runs after {within} s:\n{source}\n{Shown(node, within).seen}")
        await running
        return Shown(node, asyncio.get_running_loop().time() - begin)

    async def value(self, expression: str) -> Any:
        """Evaluate an expression whose value is JSON, in the person's namespace."""
        shown = await self.cell(f"import json\nprint(json.dumps({expression}))")
        assert not shown.error, shown.error
        return json.loads(shown.record)

    async def still_works(self) -> None:
        """Assert that kernel, notebook and session live on: the next agent cell gets its answer."""
        shown = await self.cell("%%agent\nAre you there?", "I am here.")
        assert "I am here." in shown.record and not shown.error, shown.seen
        assert await self.value("'alive'") == "alive"
        for messages in self.transcripts():
            check_transcript(messages)

    def interrupt(self) -> None:
        """Interrupt the kernel, as the button of the notebook does."""
        os.kill(self.pid, 2)

    @property
    def pid(self) -> int:
        km: Any = self.page.km
        return km.provisioner.pid

    async def seen(self, part: str) -> None:
        """Wait until the view has sent `part` in one message; call it before the cell is run, as a task.

        The view may send a streamed text delta by delta: let the model say `part` in one.
        """
        there = asyncio.Event()
        before = self.page.saw

        def saw(text: str) -> None:
            before(text)
            if part in text:
                there.set()

        self.page.saw = saw
        await there.wait()

    def transcripts(self) -> list[list[dict[str, Any]]]:
        """The messages of every session, as they are on disk."""
        return transcripts(self.folder)

    def results(self) -> list[str]:
        """The texts of all results in the newest session, in order."""
        blocks = [b for m in self.transcripts()[-1] if m["role"] == "user" for b in m["content"]]
        return ["\n".join(c.get("text", "[image]") for c in b["content"]) for b in blocks if b["type"] == "tool_result"]
