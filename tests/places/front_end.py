"""Front ends over a real kernel, played by a client of jupyter_client: what answers the hello is said by the test.

A front end has pages (the doubles of tests/bridge/pages.py at the other end of a real comm), or none, as a console has;
lines that a person types when they are asked, or no stdin at all, as papermill; buttons that can be clicked, over the
main shell or a subshell. Read `FrontEnd.cell`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from jupyter_client.manager import AsyncKernelManager

from nbagent.headless.page import send
from tests.bridge.pages import Page
from tests.support.messages_server import MessagesServer

ROOT = Path(__file__).parents[2]
BRIDGE = "nbagent-bridge/1"
Json = dict[str, Any]


@dataclass
class Cell:
    """What a cell showed: `outputs` as they stand at the end, updates of displays done; `reply` to the request."""

    outputs: list[Json] = field(default_factory=list)
    reply: Json = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The prompts of input()."""

    @property
    def text(self) -> str:
        """All plain text that is to be seen, in order."""
        return "".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in self.outputs)

    @property
    def alive(self) -> list[Json]:
        """Outputs that look like a live widget."""
        return [o for o in self.outputs if "application/vnd.jupyter.widget-view+json" in o.get("data", {})]

    @property
    def error(self) -> str:
        """What is drawn in red."""
        return "\n".join("\n".join(o["traceback"]) for o in self.outputs if "traceback" in o)

    @property
    def next_inputs(self) -> list[str]:
        """What the front end would put into the next cell."""
        payload = self.reply.get("payload") or []
        return [item["text"] for item in payload if item["source"] == "set_next_input"]


class FrontEnd:
    """One client of one kernel. `typed` are the lines of its person, oldest first; None: it takes no input."""

    def __init__(self, manager: AsyncKernelManager, *pages: Page, typed: Sequence[str] | None = None) -> None:
        self.manager = manager
        self.client = manager.client()
        self.pages = list(pages)
        self.typed = None if typed is None else list(typed)
        self.on_input: Callable[[], None] | None = None
        """Called in place of typing a line."""
        self.on_line: Callable[[str], None] = lambda _: None
        """Told of each line that a cell prints."""
        self.subshell: str | None = None
        """The subshell that comm messages go to, as JupyterLab sends them on 7.0 to 7.3; None: the main shell."""
        self.hellos = 0
        """How often a cell asked who is there."""
        self._faces: dict[str, str] = {}
        self._armed: list[str] = []
        self._rested: set[str] = set()
        self._timeline = ""
        self._card = 0
        self._heard = asyncio.Event()
        self._bridges: set[str] = set()
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._seen: list[tuple[str, asyncio.Event]] = []
        self._cells: dict[str, Cell] = {}
        self._displays: dict[str, Json] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=60)
        channels = (self._iopub, self._shell, self._stdin, self._control)
        self._tasks = [asyncio.create_task(channel()) for channel in channels]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        self.client.stop_channels()
        assert all(isinstance(end, asyncio.CancelledError) for end in ends), f"this front end broke: {ends}"

    # ── what a person does ──────────────────────────────────────────────────────────────────────────────────────────

    async def cell(self, source: str, *, within: float = 90, cell_id: str = "", subshell: str | None = None) -> Cell:
        """Run a cell to its end. `cell_id` is what JupyterLab and Notebook send with it, no other front end does."""
        content = {"code": source, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": self.typed is not None, "stop_on_error": True}  # fmt: skip
        request = self.client.session.msg("execute_request", content, metadata={"cellId": cell_id} if cell_id else {})
        if subshell:
            request["header"]["subshell_id"] = subshell
        cell = self._cells[request["header"]["msg_id"]] = Cell()
        async with asyncio.timeout(within):
            idle = self._expect(f"idle {request['header']['msg_id']}")
            cell.reply = await self._ask(self.client.shell_channel, request)
            await idle
        return cell

    async def value(self, expression: str) -> str:
        """The repr of an expression, asked without a cell."""
        content = {"code": "", "silent": True, "store_history": False, "allow_stdin": False,
                   "user_expressions": {"v": expression}}  # fmt: skip
        async with asyncio.timeout(60):
            reply = await self._ask(self.client.shell_channel, self.client.session.msg("execute_request", content))
        said = reply["user_expressions"]["v"]
        assert said["status"] == "ok", said
        return said["data"]["text/plain"]

    async def click(self, face: str, *, first: bool = False, **read: Any) -> str:
        """Click the newest button of that face (or the `first`) as soon as it takes a click; return which one it was.

        `read` is what the page reads in the card at the click: words, ticks, texts. It sends that and which button it was as
        one message, for two may overtake one another.
        """
        button = await self.button(face, first=first)
        if read:
            self._rested.clear()
            content = {"op": "card", "card": self._card, "press": face.split(maxsplit=1)[0].lower(), **read}
            self.send(self._timeline, {"method": "custom", "content": content})
        else:
            self.press(button)
        self._armed.remove(button)
        return button

    def press(self, button: str) -> None:
        """Send a click on a button, whether it is there or not."""
        self._rested.clear()
        self.send(button, {"method": "custom", "content": {"event": "click"}})

    async def button(self, face: str, *, first: bool = False) -> str:
        """Return the newest button of that face that was enabled after it was shown, as soon as there is one."""
        await self.until(lambda: any(self._faces[button] == face for button in self._armed))
        return [button for button in self._armed if self._faces[button] == face][0 if first else -1]

    def newest(self, face: str) -> str:
        """Return the newest button of that face."""
        return [button for button, known in self._faces.items() if known == face][-1]

    async def rests(self, face: str) -> None:
        """Return when a button of that face took no click since the last one: a card that changes takes none for a moment.

        It may take one again by now: the moment can pass unseen on a busy machine.
        """
        await self.until(lambda: face in self._rested)

    async def until(self, holds: Callable[[], bool], within: float = 60) -> None:
        """Return when `holds` does, looked at after each message from the kernel."""
        async with asyncio.timeout(within):
            while not holds():
                await self._heard.wait()
                self._heard.clear()

    async def sees(self, part: str, within: float = 60) -> None:
        """Return when a message with `part` comes from the kernel."""
        there = asyncio.Event()
        self._seen.append((part, there))
        async with asyncio.timeout(within):
            await there.wait()

    async def info(self) -> Json:
        """What the kernel says of itself."""
        async with asyncio.timeout(60):
            return await self._ask(self.client.shell_channel, self.client.session.msg("kernel_info_request", {}))

    async def open_subshell(self) -> str:
        """Open a subshell and return its id."""
        return (await self.control("create_subshell_request"))["subshell_id"]

    async def control(self, kind: str, **content: Any) -> Json:
        """Send a request on the control channel and return the reply."""
        async with asyncio.timeout(60):
            return await self._ask(self.client.control_channel, self.client.session.msg(kind, content))

    def send(self, comm: str, data: Json) -> None:
        """Send a message of a comm to the kernel."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        if self.subshell:
            message["header"]["subshell_id"] = self.subshell
        send(self.client.shell_channel, message)

    def heard(self) -> None:
        """Have `until` look again."""
        self._heard.set()

    # ── what it hears ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, channel: Any, request: Any) -> Json:
        answered = self._expect(request["header"]["msg_id"])
        send(channel, request)
        return await answered

    def _expect(self, key: str) -> asyncio.Future[Json]:
        future = self._waiting[key] = asyncio.get_running_loop().create_future()
        return future

    def _got(self, key: str, content: Json) -> None:
        future = self._waiting.pop(key, None)
        if future is not None and not future.done():
            future.set_result(content)

    async def _shell(self) -> None:
        while True:
            reply = await self.client.shell_channel.get_msg(timeout=None)
            self._got(reply["parent_header"].get("msg_id", ""), reply["content"])

    async def _control(self) -> None:
        while True:
            reply = await self.client.control_channel.get_msg(timeout=None)
            self._got(reply["parent_header"].get("msg_id", ""), reply["content"])

    async def _stdin(self) -> None:
        while True:
            request = await self.client.stdin_channel.get_msg(timeout=None)
            cell = self._cells.get(request["parent_header"].get("msg_id", ""), Cell())
            cell.asked.append(request["content"]["prompt"])
            for part, there in self._seen:
                if part in request["content"]["prompt"]:
                    there.set()
            if self.on_input is not None:
                self.on_input()
            else:
                await self.until(lambda: bool(self.typed))
                line = {"value": self.typed.pop(0)}
                send(self.client.stdin_channel, self.client.session.msg("input_reply", line, parent=request))

    async def _iopub(self) -> None:
        while True:
            message = await self.client.iopub_channel.get_msg(timeout=None)
            self._take(message["msg_type"], message["content"], message["parent_header"].get("msg_id", ""))
            self.heard()
            said = repr(message["content"])
            for part, there in self._seen:
                if part in said:
                    there.set()

    def _take(self, kind: str, content: Json, parent: str) -> None:
        cell = self._cells.get(parent, Cell())
        for name in (content.get("data", {}).get("state") or {}).get("_dom_classes", ()):
            if name.startswith("nbagent-card-"):
                self._card = int(name.removeprefix("nbagent-card-"))
        match kind:
            case "status" if content["execution_state"] == "idle":
                self._got(f"idle {parent}", content)
            case "stream":
                cell.outputs.append(dict(content))
                for line in content["text"].splitlines():
                    self.on_line(line)
            case "error" | "execute_result" | "display_data":
                cell.outputs.append(dict(content))
                if shown := content.get("transient", {}).get("display_id"):
                    self._displays[shown] = cell.outputs[-1]
            case "update_display_data":
                self._displays[content["transient"]["display_id"]]["data"] = content["data"]
            case "comm_open":
                state = content["data"].get("state") or {}
                if state.get("protocol") == BRIDGE:
                    self._bridges.add(content["comm_id"])
                if state.get("_model_name") == "ButtonModel":
                    self._faces[content["comm_id"]] = str(state.get("description"))
                if "head" in state:
                    self._timeline = content["comm_id"]
            case "comm_msg" | "comm_close" if (button := content["comm_id"]) in self._faces:
                state = content["data"].get("state") or {}
                self._faces[button] = str(state.get("description", self._faces[button]))
                disabled = state.get("disabled", kind == "comm_close" or None)
                if disabled is not None and button in self._armed:
                    self._armed.remove(button)
                if disabled:
                    self._rested.add(self._faces[button])
                if disabled is False:
                    self._armed.append(button)
            case "comm_msg" if content["comm_id"] in self._bridges and content["data"].get("method") == "custom":
                self.hellos += content["data"]["content"].get("op") == "hello"
                for page in self.pages:
                    if (said := page.answer(content["data"]["content"])) is not None:
                        self.send(content["comm_id"], {"method": "custom", "content": said})
            case _:
                pass


@asynccontextmanager
async def kernel(folder: Path, server: MessagesServer, **env: str):
    """Start a kernel in `folder` whose model is `server`; give its manager."""
    given = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-test", "PYTHONPATH": str(ROOT), **env}
    manager = AsyncKernelManager()
    await manager.start_kernel(env={**os.environ, **given}, cwd=str(folder))
    try:
        yield manager
    finally:
        await manager.shutdown_kernel(now=True)


@asynccontextmanager
async def front_end(folder: Path, server: MessagesServer, *pages: Page, typed: Sequence[str] | None = None, **env: str):
    """A front end with a kernel of its own and nbagent loaded."""
    async with kernel(folder, server, **env) as manager, FrontEnd(manager, *pages, typed=typed) as shown:
        loaded = await shown.cell("%load_ext nbagent")
        assert not loaded.outputs, loaded
        yield shown
