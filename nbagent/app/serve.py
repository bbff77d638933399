"""`nbagent mcp-serve`: a notebook's and a kernel's tools for other agents, over MCP on stdin and stdout.

Every call goes the way that a model's calls go here: checked, decided by hooks, rules and mode, perhaps asked about, run.
Whoever sits before the other agent is asked by elicitation, where that agent can do it; else the policy answers: deny.
Read `serve`, then `Service.call`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nbagent.app.serve_asking import Asking, Elicited
from nbagent.core.dispatch import act
from nbagent.core.errors import ToolError
from nbagent.core.events import CallProgress, Event
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.policy import Gate
from nbagent.core.run import Agent, Run, Stop
from nbagent.core.session import NoStore, Session
from nbagent.core.tools import Tool, Toolset
from nbagent.models.scripted import ScriptedModel

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

NEEDS_MCP = "nbagent mcp-serve needs the package mcp, which is not installed: pip install 'jupyter-nbagent[mcp]'."
INSTRUCTIONS = (
    "Tools of a Jupyter notebook and its Python kernel. Read before you change anything. What changes something or runs "
    "code may be put to a person first; a call that was denied did not run. A long result is cut and names a ref under "
    "which read_result shows the rest."
)
READS = frozenset(
    {"list_variables", "inspect_variable", "profile_table", "query", "read_notebook", "read_cell", "read_result"}
)
"""Tools that only look, whatever they are given."""
_ANSWER_WITHIN = 900.0  # seconds for the other agent to come back with what its person said
_TOO_LATE = "This call was not waiting for an answer, or waited too long. Nothing ran. Call the tool again."
_MODERN = "2026-07-28"  # from this protocol on a server does not ask by itself: it answers with its question


class Offered(Protocol):
    """The tools that are served."""

    def tools(self) -> Sequence[Tool]:
        """Return all of them, as they are listed."""
        ...

    async def ready(self, tool: Tool, given: Json) -> Tool:
        """Return a tool as it is to be decided about for one call; raises `ToolError` where that can't be told."""
        ...


@dataclass(slots=True)
class _Open:
    """A call that waits for an answer of the other agent's person."""

    name: str
    arguments: Json
    work: asyncio.Task[types.CallToolResult]
    asking: Asking
    context: ServerRequestContext[Any, Any]
    """Of the request that waits for the call now."""
    expires: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Service:
    """Serves `offered` with the decisions of `gate`, which lasts as long as this program; `notebook` is its path."""

    offered: Offered
    gate: Gate
    notebook: str = ""
    hooks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More of what an `Agent` takes (hooks, where), as its fields."""
    _open: dict[str, _Open] = field(default_factory=dict[str, _Open])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def server(self) -> Server[Any]:
        """Return the MCP server; it may be run on any transport of the SDK's."""
        from mcp.server.lowlevel import Server

        from nbagent import __version__

        return Server(
            "nbagent",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self.listed,
            on_call_tool=self.called,
        )

    async def listed(self, _context: Any, _params: Any) -> types.ListToolsResult:
        """List the tools with their schemas, and which of them only read."""
        from mcp import types

        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.name in READS, destructive_hint=tool.name not in READS
                    ),
                )
                for tool in self.offered.tools()
            ]
        )

    async def called(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer a call, or ask what has to be asked first."""
        opened = self._begin(context, params) if params.request_state is None else self._again(params)
        if opened is None:
            return _result([text_block(_TOO_LATE)], is_error=True)
        opened.context = context
        asks_itself = context.protocol_version < _MODERN
        try:
            while (question := await opened.asking.next(opened.work)) is not None:
                if not asks_itself:
                    return self._wait(opened, question)
                opened.asking.answer(await self._elicit(context, question))
            return await opened.work
        except asyncio.CancelledError:
            opened.work.cancel()
            raise

    def _begin(self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> _Open:
        able = context.session.client_capabilities
        asking = Asking(present=able is not None and able.elicitation is not None)
        arguments = dict(params.arguments or {})
        told = [0]

        async def progress(text: str) -> None:
            told[0] += 1
            await opened.context.session.report_progress(told[0], None, text)

        work = asyncio.create_task(self.call(params.name, arguments, asking, progress))
        opened = _Open(params.name, arguments, work, asking, context)
        return opened

    async def call(
        self, name: str, arguments: Json, asking: Asking, progress: Callable[[str], Any]
    ) -> types.CallToolResult:
        """Take one call through the policy to its result; nothing that a tool does escapes from here."""
        tool = next((tool for tool in self.offered.tools() if tool.name == name), None)
        if tool is None:
            return _result([text_block(f"There is no tool {name!r}.")], is_error=True)
        async with self._turn:
            try:
                tool = await self.offered.ready(tool, tool.validate(arguments))
            except ToolError as error:
                return _result([text_block(str(error))], is_error=True)
            run = self._run(tool, arguments, asking)
            async with aclosing(self._acted(run)) as events:
                async for event in events:
                    if isinstance(event, CallProgress):
                        await progress(event.text)
            found: Block = next(iter(run.results.values()), {})
            content = found.get("content") or [text_block("The call was stopped before it ran.")]
            return _result(content, is_error=bool(found.get("is_error")) or not found)

    def _run(self, tool: Tool, arguments: Json, asking: Asking) -> Run:
        tools = Toolset([tool])
        agent = Agent(
            model=ScriptedModel([]),
            tools=tools,
            gate=self.gate,
            approver=Elicited(asking),
            notebook=lambda: self.notebook,
            **self.hooks,
        )
        session = Session("mcp-serve", system="", tools=tools.params(), store=NoStore())
        run = Run(agent, session, Stop(), secrets.token_hex(4))
        call: Block = {"type": "tool_use", "id": f"mcp_{secrets.token_hex(8)}", "name": tool.name, "input": arguments}
        run.reply.content.append(call)
        return run

    async def _acted(self, run: Run) -> AsyncGenerator[Event]:
        try:
            async with aclosing(act(run)) as events:
                async for event in events:
                    yield event
        finally:
            run.let_go()

    # ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _elicit(self, context: ServerRequestContext[Any, Any], question: Json) -> Json | None:
        """Ask at once, as older protocols do; None where no answer came."""
        from mcp import MCPError

        try:
            given = await context.session.elicit_form(
                question["message"], question["schema"], related_request_id=context.request_id
            )
        except MCPError:
            return None
        return dict(given.content or {}) if given.action == "accept" else None

    def _wait(self, opened: _Open, question: Json) -> types.InputRequiredResult:
        """Answer with the question; the call goes on when the other agent sends it again with what its person said."""
        from mcp import types

        state = secrets.token_urlsafe(24)
        loop = asyncio.get_running_loop()
        opened.expires = loop.call_later(_ANSWER_WITHIN, self._expire, state)
        self._open[state] = opened
        asked = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=question["message"], requested_schema=question["schema"])
        )
        return types.InputRequiredResult(input_requests={"answer": asked}, request_state=state)

    def _again(self, params: types.CallToolRequestParams) -> _Open | None:
        """The call that this one goes on with, its question answered."""
        from mcp import types

        opened = self._open.pop(str(params.request_state), None)
        if opened is None:
            return None
        if (opened.name, opened.arguments) != (params.name, dict(params.arguments or {})):
            opened.work.cancel()  # what was asked about is not what is sent now
            return None
        if opened.expires is not None:
            opened.expires.cancel()
        given = (params.input_responses or {}).get("answer")
        accepted = given if isinstance(given, types.ElicitResult) and given.action == "accept" else None
        opened.asking.answer(None if accepted is None else dict(accepted.content or {}))
        return opened

    def _expire(self, state: str) -> None:
        if (opened := self._open.pop(state, None)) is not None:
            opened.work.cancel()


async def serve(service: Service) -> None:
    """Serve on stdin and stdout until the other side closes them."""
    from mcp.server.stdio import stdio_server

    server = service.server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _result(content: Sequence[Block], *, is_error: bool = False) -> types.CallToolResult:
    from mcp import types

    made: list[Any] = []
    for block in content:
        if block.get("type") == "image":
            source = block["source"]
            made.append(types.ImageContent(type="image", data=source["data"], mime_type=source["media_type"]))
        else:
            made.append(types.TextContent(type="text", text=str(block.get("text", ""))))
    return types.CallToolResult(content=made, is_error=is_error)
