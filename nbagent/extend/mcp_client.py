"""One MCP server: the task that owns its connection, what it offers, and calls to it from any task of the same loop.

The SDK's client must be entered and left by one task (its cancel scopes belong to that task), while cells come and go: so
each server has an owner task, which connects, waits, and closes. A call that may have run is never sent again; a server
that has ended is started again by the next call. Must not know of tools, rules or files. Read `Connection.start`, then
`_own`, then `call`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.ports import Question
from nbagent.core.tools import Call
from nbagent.extend import mcp_ask
from nbagent.extend.mcp_config import Launch, ServerSpec
from nbagent.extend.mcp_connect import REFUSED, check, load_sdk, process, remote
from nbagent.extend.mcp_offers import Offers, Watched, learned
from nbagent.extend.mcp_words import Lines, failure, failures, is_closed, lost, needs_login, progress_words

if TYPE_CHECKING:
    from mcp import Client, types

T = TypeVar("T")

_CLOSING = 12.0  # seconds for a server to end: the SDK takes 2 s to wait, 2 s to end it, 2 s to kill it


class State(StrEnum):
    """How a server is, in words for people."""

    STOPPED = "not started"
    STARTING = "starting"
    CONNECTED = "connected"
    ENDED = "ended"
    FAILED = "failed"
    NEEDS_LOGIN = "needs a login"


@dataclass(slots=True)
class _Running:
    """A call under way: whom its server's questions go to, and the clock that stands still while they wait."""

    call: Call
    clock: asyncio.Timeout | None = None
    asked: int = 0


class Connection:
    """One server. Every method but `line` and the attributes must be used on the loop that `start` was first called on."""

    def __init__(self, spec: ServerSpec, launch: Callable[[], Launch], folder: Path) -> None:
        self.spec = spec
        self.state = State.STOPPED
        self.why = ""
        """Why it is not connected: a sentence."""
        self.offers = Offers()
        self.stale = False
        """Whether the server has said that what it offers has changed, and it was not asked again since."""
        self.lines = Lines()
        self.took = 0.0
        """Seconds that the last start took."""
        self._launch = launch
        self._folder = folder
        self._limit = 0.0
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._turn = asyncio.Lock()
        self._running: list[_Running] = []
        self._status = 0  # the last HTTP status that was an error
        self._said = 0  # lines that it had said before it was started

    # ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Connect, if it is not; afterwards `state` and `why` say whether it did. Never raises but when cancelled."""
        async with self._turn:
            if self.state is not State.CONNECTED:
                await self._timed_start()

    async def stop(self) -> None:
        """Disconnect; the server's process is over when this returns."""
        async with self._turn:
            await self._stop()
            self.state, self.why = State.STOPPED, ""

    async def restart(self) -> None:
        """Stop and start."""
        async with self._turn:
            await self._stop()
            await self._timed_start()

    async def refresh(self) -> None:
        """Ask again what the server offers, if it said that it has changed."""
        client = self._client
        if not self.stale or client is None or self.state is not State.CONNECTED:
            return
        self.stale = False
        try:
            async with asyncio.timeout(self._limit):
                self.offers = await learned(client)
        except (TimeoutError, *failures()) as error:
            self.lines.add(f"asking what it offers failed: {failure(error)}")

    async def _timed_start(self) -> None:
        began = time.monotonic()
        try:
            await self._start()
        finally:
            self.took = time.monotonic() - began

    async def _start(self) -> None:
        await self._stop()
        self.state, self.why, self._status, self._said = State.STARTING, "", 0, self.lines.count
        try:
            launch = self._launch()
            check(launch)
        except ConfigError as error:
            self.state, self.why = State.FAILED, str(error)
            return
        await asyncio.to_thread(load_sdk)
        self._limit, self._leave = launch.call_seconds, asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(launch, ready), name=f"nbagent-mcp-{self.spec.name}")
        self._owner = owner
        try:
            await asyncio.wait({owner, ready}, timeout=launch.start_seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._stop()
            self.state = State.STOPPED
            raise
        if ready.done() and not owner.done():
            return
        if not owner.done():
            await self._stop()
            self.why = (
                f"it did not answer within {launch.start_seconds:g} s; MCP_TIMEOUT (milliseconds) gives it longer"
            )
        else:
            self.why = failure(owner.exception(), self._status)
        self.state = State.NEEDS_LOGIN if needs_login(self._status) else State.FAILED
        self._add_said()

    async def _stop(self) -> None:
        owner, self._owner, self._client = self._owner, None, None
        if owner is None:
            return
        starting, self.state = self.state is State.STARTING, State.STOPPED
        self._leave.set()
        if starting:
            owner.cancel()
        done, _ = await asyncio.wait({owner}, timeout=_CLOSING)
        if not done:
            owner.cancel()
            await asyncio.wait({owner}, timeout=_CLOSING)
        if owner.done():
            _seen(owner)

    async def _own(self, launch: Launch, ready: asyncio.Future[None]) -> None:
        """Hold the connection from its beginning to its end: the only task that enters and leaves the client."""
        leave = self._leave
        async with AsyncExitStack() as leaving:
            client = await self._entered(launch, leave)
            leaving.push_async_exit(client.__aexit__)
            listener: asyncio.Task[None] | None = None
            try:
                self.offers, self.stale = await learned(client), False
                self._client, self.state = client, State.CONNECTED
                ready.set_result(None)
                listener = asyncio.create_task(self._listen(client))
                await leave.wait()
            finally:  # nothing is awaited here: where a transport fails, it cancels every wait of this task
                if self.state is State.CONNECTED and self._leave is leave:
                    self._client, self.state, self.why = None, State.ENDED, "the server ended, or closed the connection"
                    self._add_said()
                if listener is not None:
                    listener.add_done_callback(_seen)
                    listener.cancel()

    async def _entered(self, launch: Launch, leave: asyncio.Event) -> Client:
        """Connect: with the newest protocol, and where a server breaks on its first question, as older ones expect it."""
        from mcp import Client, MCPError, types

        for mode in ("auto", "legacy"):
            target = launch.instance if launch.kind == "sdk" else self._transport(launch, leave)
            client = Client(
                target,
                mode=mode,
                message_handler=self._heard,
                logging_callback=self._logged,
                elicitation_callback=self._elicited,
                list_roots_callback=self._roots,
                client_info=types.Implementation(name="nbagent", version=_version()),
                cache=None,
            )
            try:
                return await client.__aenter__()
            except (MCPError, ExceptionGroup) as error:
                if mode == "legacy" or not is_closed(error):
                    raise
                leave.clear()  # the server has ended over a question that it does not know
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _transport(self, launch: Launch, leave: asyncio.Event) -> AsyncGenerator[Any]:
        """The SDK's transport for a launch; `leave` is set when the server closes it."""
        async with AsyncExitStack() as stack:
            if launch.kind == "stdio":
                read, write = await process(launch, self.lines, stack)
            else:
                read, write = await remote(launch, self._refused, stack)
            yield Watched(read, leave.set), write

    async def _listen(self, client: Client) -> None:
        """On the newest protocol a server tells of changes only where it is asked to."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        try:
            changes = client.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
            async with changes as heard:
                async for _ in heard:
                    self.stale = True
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            return  # it tells of none

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, tool: str, arguments: Mapping[str, Any], call: Call) -> types.CallToolResult:
        """Call a tool. Raises `ToolError` with a sentence for the model, which says whether the call may have run."""

        async def sent(client: Client, running: _Running) -> types.CallToolResult:
            async def told(progress: float, total: float | None, message: str | None) -> None:
                self._restart_clock(running)
                call.progress(progress_words(progress, total, message))

            return await client.call_tool(tool, dict(arguments), progress_callback=told)

        return await self._asked(sent, call, f"{tool} of the MCP server “{self.spec.name}”")

    async def prompt(self, name: str, arguments: Mapping[str, str], call: Call) -> types.GetPromptResult:
        """Get a prompt with its arguments filled in. Raises `ToolError`."""
        return await self._asked(lambda client, _: client.get_prompt(name, dict(arguments)), call, f"the prompt {name}")

    async def read(self, uri: str, call: Call) -> types.ReadResourceResult:
        """Read a resource. Raises `ToolError`."""
        return await self._asked(lambda client, _: client.read_resource(uri), call, f"the resource {uri}")

    async def _asked(self, send: Callable[[Client, _Running], Awaitable[T]], call: Call, what: str) -> T:
        """Send a request, once; only one that the server refused unread, since it was restarted, is sent again."""
        from mcp import MCPError

        client = await self._alive()
        running = _Running(call)
        self._running.append(running)
        try:
            for attempt in (1, 2):
                refused: list[int] = []
                token = REFUSED.set(refused)
                try:
                    async with asyncio.timeout(self._limit) as running.clock:
                        return await send(client, running)
                except MCPError as error:
                    if attempt == 1 and refused[-1:] in ([400], [404]):  # unread: it does not know the session any more
                        client = await self._renewed(client)
                        continue
                    if is_closed(error):
                        raise ToolError(lost(what)) from None
                    raise ToolError(f"{what} failed: {error.message}") from None
                finally:
                    REFUSED.reset(token)
            raise AssertionError("unreachable")
        except TimeoutError:
            raise ToolError(
                f"{what} gave no answer for {self._limit:g} s, so it was cancelled. It may have taken effect. "
                "MCP_TOOL_TIMEOUT, or timeout in the server's entry (milliseconds), gives it longer."
            ) from None
        except failures() as error:
            raise ToolError(f"{what}: {failure(error)}. It may have taken effect.") from error
        finally:
            self._running.remove(running)

    async def _renewed(self, old: Client) -> Client:
        """Begin a new session with the server, once for all calls of the old one."""
        async with self._turn:
            if self._client is old:
                await self._timed_start()
        return await self._alive()

    async def _alive(self) -> Client:
        """The client, of a server that runs: one that has ended is started again, once."""
        if self.state is not State.CONNECTED or self._client is None:
            await self.start()
        if self.state is not State.CONNECTED or self._client is None:
            raise ToolError(f"The MCP server “{self.spec.name}” is not running, so nothing was sent: {self.why}.")
        return self._client

    def _refused(self, status: int) -> None:
        self._status = status

    # ── what the server says and asks ────────────────────────────────────────────────────────────────────────────────

    async def _heard(self, message: Any) -> None:
        kind = str(getattr(message, "method", ""))
        if kind.endswith("list_changed"):
            self.stale = True
        elif isinstance(message, Exception):
            self.lines.add(f"sent something that is no message: {failure(message)}")

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        self.lines.add(f"{params.level}: {params.data}")

    async def _roots(self, context: Any) -> types.ListRootsResult:  # noqa: ARG002  (the SDK's protocol)
        from mcp import types
        from pydantic import FileUrl

        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(self._folder.as_uri()), name=self._folder.name)])

    async def _elicited(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG002
        """Put the server's question to the person whom the newest call belongs to; without one it is declined."""
        from mcp import types

        if not self._running:
            return types.ElicitResult(action="decline")
        running = self._running[-1]

        async def ask(text: str, choices: tuple[str, ...]) -> str:
            running.asked += 1
            self._stop_clock(running)
            try:
                return await running.call.ask(Question(f"{running.call.id}-mcp-{running.asked}", text, choices))
            finally:
                self._restart_clock(running)

        if params.mode == "url":
            action, content = await mcp_ask.page(self.spec.name, params.message, params.url, ask)
        else:
            schema: dict[str, Any] = dict(params.requested_schema)
            action, content = await mcp_ask.form(self.spec.name, params.message, schema, ask)
        return types.ElicitResult(action=action, content=content)

    def _restart_clock(self, running: _Running) -> None:
        """A word from the server gives its call the whole time again."""
        if running.clock is not None and not running.clock.expired():
            with contextlib.suppress(RuntimeError):  # it is over already
                running.clock.reschedule(asyncio.get_running_loop().time() + self._limit)

    def _stop_clock(self, running: _Running) -> None:
        if running.clock is not None and not running.clock.expired():
            with contextlib.suppress(RuntimeError):
                running.clock.reschedule(None)

    def _add_said(self) -> None:
        if said := self.lines.last(min(1, self.lines.count - self._said)):
            self.why = f"{self.why} (it said: {said[0][:300]})"


def _seen(task: asyncio.Task[None]) -> None:
    """Look at how a task ended: else asyncio tells of it at the end of the program."""
    if not task.cancelled():
        task.exception()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("jupyter-nbagent")
    except PackageNotFoundError:
        return "0"
