"""All MCP servers of a kernel: started side by side, their tools as ours, what is new about them told once a run.

A session's tools are fixed when it begins (their text is part of what the model's server has cached), so `tools` takes
what the session was begun with: a tool whose server is gone stays and says so, one that came later waits for a new
session. Servers of a project's files are not started before they are trusted. Read `Servers.prepare`, then `tools`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nbagent.core.errors import ConfigError, ToolError
from nbagent.core.messages import Block, Json, text_block
from nbagent.core.ports import Question
from nbagent.core.tools import Call, Kind, Result, Tool
from nbagent.extend import mcp_content
from nbagent.extend.mcp_client import Connection, State
from nbagent.extend.mcp_config import Found, ServerSpec
from nbagent.extend.mcp_prompts import PromptCommand, chosen, commands
from nbagent.extend.mcp_resources import RESOURCE_TOOLS, attachments, resource_tools
from nbagent.extend.mcp_schema import Arguments, server_prefix, tool_name
from nbagent.extend.mcp_tool import foreign, short_description

if TYPE_CHECKING:
    from mcp import types

T = TypeVar("T")

Trusted = Callable[[ServerSpec], bool]
"""Whether the person trusts a server of the project's as it is now (its `fingerprint`). Only those are asked about."""

_QUICK = 2.0  # seconds: a start that fails as fast is tried again at each run
INSTRUCTIONS_LIMIT = 2048
"""Characters of one server's instructions as the model sees them."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A tool as a server offers it now."""

    name: str
    server: str
    tool: types.Tool
    takes: Arguments


@dataclass(slots=True)
class _Told:
    """What the model was told last of a server, so that only what is new is told again."""

    state: State = State.STOPPED
    tools: frozenset[str] = frozenset()
    instructions: set[str] = field(default_factory=set[str])  # ids of sessions that have them


class Servers:
    """The MCP servers of one kernel. All that starts or reaches one runs on the loop that was first used.

    Args:
        folder: the notebook's folder; servers are told that it is their root.
        find: reads which servers there are, at each run.
        environment: the variables that entries may name.
        trusted: asked about each server of the project's files.
        picture: makes a block of an image.
    """

    def __init__(
        self,
        folder: Path,
        find: Callable[[], Found],
        *,
        environment: Mapping[str, str],
        trusted: Trusted,
        picture: mcp_content.Picture,
    ) -> None:
        self.folder = folder.resolve()
        self.picture = picture
        self.problems: tuple[str, ...] = ()
        self.untrusted: dict[str, ServerSpec] = {}
        self.disabled: frozenset[str] = frozenset()
        self.connections: dict[str, Connection] = {}
        self._find = find
        self._environment = environment
        self._trusted = trusted
        self._handed: dict[str, ServerSpec] = {}
        self._told: dict[str, _Told] = {}
        self._complained: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def hand_over(self, name: str, server: Any) -> None:
        """Use a server object of this process (an `mcp` Server or MCPServer) under a name, from the next run on."""
        self._handed[name] = ServerSpec(name, "session", "this kernel", {"type": "sdk"}, self.folder, server)

    # ── their life ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def prepare(self) -> None:
        """Before a run: read which servers there are, start those that do not run, stop those that are gone or changed."""
        await self._here(self._prepare)

    async def look(self) -> None:
        """Read which servers there are, and stop those that are not meant any more; none is started."""

        async def looked() -> None:
            await asyncio.gather(*(connection.stop() for connection in self._read()))

        await self._here(looked)

    async def restart(self, name: str = "") -> None:
        """Start a server anew, or all of them; raises `ConfigError` for one that is not there or may not start."""

        async def restarted() -> None:
            self._read()
            if name and name not in self.connections:
                raise ConfigError(self.why_not(name))
            chosen = [self.connections[name]] if name else list(self.connections.values())
            await asyncio.gather(*(connection.restart() for connection in chosen))

        await self._here(restarted)

    async def close(self) -> None:
        """Stop all servers; their processes are over when this returns."""

        async def closed() -> None:
            await asyncio.gather(*(connection.stop() for connection in self.connections.values()))
            self.connections.clear()

        if self._loop is not None and not self._loop.is_closed():
            await self._here(closed)

    def why_not(self, name: str) -> str:
        """Return the sentence that says why there is no running server of a name."""
        if name in self.untrusted:
            source = self.untrusted[name].source
            return (
                f"The MCP server “{name}” is written in {source}, which you have not trusted yet, so it does not start."
            )
        if name in self.disabled:
            return f"The MCP server “{name}” is switched off. %agent mcp enable {name} switches it on."
        names = ", ".join(self.connections) or "none"
        return f"There is no MCP server “{name}”. There are: {names}."

    async def _prepare(self) -> None:
        gone = self._read()
        await asyncio.gather(
            *(connection.stop() for connection in gone),
            *(_started(connection) for connection in self.connections.values()),
        )

    def _read(self) -> list[Connection]:
        """Take over what the files say now; return the connections of servers that are not meant any more."""
        found = self._find()
        specs = {**found.specs, **self._handed}
        self.problems, self.disabled = found.problems, found.disabled & specs.keys()
        self.untrusted = {
            name: spec
            for name, spec in specs.items()
            if name not in self.disabled and spec.scope == "project" and not self._trusted(spec)
        }
        mine = {
            n: s for n, s in found.under.items() if n in self.untrusted
        }  # they go on until the project's are trusted
        meant = {n: s for n, s in specs.items() if n not in self.untrusted and n not in self.disabled} | mine
        gone = [c for name, c in self.connections.items() if meant.get(name) != c.spec]
        kept = {name: c for name, c in self.connections.items() if meant.get(name) == c.spec}
        self.connections = {name: kept.get(name) or self._connection(spec) for name, spec in meant.items()}
        return gone

    def _connection(self, spec: ServerSpec) -> Connection:
        return Connection(spec, lambda: spec.launch(self._environment), self.folder)

    async def _here(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do `act` on the loop that the connections belong to; where that is closed, they are gone with it."""
        running = asyncio.get_running_loop()
        if self._loop is None or self._loop.is_closed():
            self._loop = running
            self.connections = {}
        if self._loop is running:
            return await act()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(act(), self._loop))

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def tools(self, fixed: Sequence[Json] | None = None) -> list[Tool]:
        """Return the servers' tools: those of now, or those that a session was begun with (`fixed`: its `tools`)."""
        offers = self._offers()
        if fixed is None:
            extra = resource_tools(self) if self.with_resources() else []
            return [*(self._tool(offer) for offer in offers.values()), *extra]
        made: list[Tool] = []
        reading = {tool.name: tool for tool in resource_tools(self)}
        for param in fixed:
            name = str(param.get("name"))
            if name in reading:
                made.append(dataclasses.replace(reading[name], **_text_of(param)))
            elif name in offers:
                made.append(self._tool(offers[name], param))
            elif name.startswith("mcp__"):
                made.append(self._gone(param))
        return made

    def with_resources(self) -> list[Connection]:
        """The running servers that have resources."""
        return [c for c in self.connections.values() if c.state is State.CONNECTED and c.offers.has_resources]

    def read_only(self, server: str, tool: str) -> bool:
        """Whether a server that may run says that a tool only reads."""
        connection = self.connections.get(server)
        found = next((t for t in connection.offers.tools if t.name == tool), None) if connection is not None else None
        return found is not None and found.annotations is not None and found.annotations.read_only_hint is True

    def _offers(self) -> dict[str, _Offer]:
        """The tools of the servers that were reached, by the name under which the model calls them."""
        offers: dict[str, _Offer] = {}
        for server, connection in self.connections.items():
            for tool in connection.offers.tools:
                name = tool_name(server, tool.name, offers)
                if name not in offers and name not in RESOURCE_TOOLS:
                    offers[name] = _Offer(name, server, tool, connection.offers.takes(tool))
        return offers

    def _tool(self, offer: _Offer, param: Json | None = None) -> Tool:
        server, known = offer.server, offer.tool.name

        async def function(call: Call, arguments: Json) -> Result:
            connection = self.connections.get(server)
            if connection is None:
                raise ToolError(self.why_not(server))
            given = await self._here(lambda: connection.call(known, arguments, self._answering(call)))
            return mcp_content.result_of(given, self.picture)

        title = (offer.tool.annotations.title if offer.tool.annotations else None) or offer.tool.title or known
        about = offer.tool.description or title
        renamed = "" if known in offer.name else f"{known}: "
        return foreign(
            offer.name,
            str(param.get("description", "")) if param is not None else short_description(renamed + about),
            offer.takes,
            function,
            kind=lambda: Kind.READ if self.read_only(server, known) else Kind.MCP,
            title=f"{server}: {title}"[:80],
            schema=param.get("input_schema") if param is not None else None,
        )

    def _gone(self, param: Json) -> Tool:
        """A tool that the session was begun with and that no server offers now: it says so, and does nothing else."""
        name = str(param["name"])

        async def function(_call: Call, _arguments: Json) -> Result:
            server = next((s for s in self.connections if name.startswith(server_prefix(s))), "")
            why = self.connections[server].why if server else ""
            raise ToolError(f"No MCP server offers {name} now{f': {why}' if why else ''}. Nothing was sent.")

        schema = param.get("input_schema") or {"type": "object", "properties": {}}
        takes = Arguments(schema, {}, {})
        return foreign(
            name, str(param.get("description", "")), takes, function, kind=lambda: Kind.READ, title=name, schema=schema
        )

    def _answering(self, call: Call) -> Call:
        """The call as a server's questions reach it: the server may be on another loop than the run."""
        running = asyncio.get_running_loop()
        if running is self._loop:
            return call

        async def ask(question: Question) -> str:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_asked(call, question), running))

        def progress(text: str) -> None:
            running.call_soon_threadsafe(call.progress, text)

        return dataclasses.replace(call, ask=ask, progress=progress)

    # ── what the model is told ───────────────────────────────────────────────────────────────────────────────────────

    def news(self, session: str, fixed: Sequence[Json] | None = None) -> list[str]:
        """Return what to tell the model of the servers at the beginning of a run of a session, each thing once.

        The first time: their instructions. Later: that a server is gone or back, and which tools changed since the
        session was begun with `fixed`.
        """
        said: list[str] = []
        offers = self._offers()
        had = {str(param.get("name")) for param in fixed or ()}
        for server, connection in self.connections.items():
            told = self._told.setdefault(server, _Told())
            names = frozenset(name for name, offer in offers.items() if offer.server == server)
            if (
                connection.state is State.CONNECTED
                and connection.offers.instructions
                and session not in told.instructions
            ):
                text = connection.offers.instructions.strip()[:INSTRUCTIONS_LIMIT]
                said.append(f'<mcp_server name="{server}">\n{text}\n</mcp_server>')
                told.instructions.add(session)
            if connection.state is not State.CONNECTED and connection.state is not told.state:
                said.append(f"The MCP server “{server}” is not available: {connection.why}.")
            elif told.state not in (State.CONNECTED, State.STOPPED) and connection.state is State.CONNECTED:
                said.append(f"The MCP server “{server}” is available again.")
            if fixed is not None and names != told.tools and connection.state is State.CONNECTED:
                said += _changed(server, names - had, {n for n in told.tools if n in had} - names)
            told.state, told.tools = connection.state, names
        return said

    def starting(self) -> list[str]:
        """Return the names of the servers that start now."""
        return [name for name, connection in self.connections.items() if connection.state is State.STARTING]

    def complaints(self) -> list[str]:
        """Return what to tell the person of servers that do not run, and of files that can't be read; each thing once."""
        said = [problem for problem in self.problems if problem not in self._complained]
        for name, connection in self.connections.items():
            if connection.state in (State.FAILED, State.NEEDS_LOGIN, State.ENDED):
                said.append(
                    f"The MCP server “{name}” does not run: {connection.why}. %agent mcp restart {name} tries again."
                )
        new = [text for text in said if text not in self._complained]
        self._complained = {*self.problems, *said}
        return new

    # ── prompts and resources ────────────────────────────────────────────────────────────────────────────────────────

    def prompts(self) -> list[PromptCommand]:
        """Return the prompts of the servers that run, to be offered as commands."""
        running = {n: c.offers.prompts for n, c in self.connections.items() if c.state is State.CONNECTED}
        return commands(running)

    async def prompt(self, name: str, arguments: Sequence[str], call: Call | None = None) -> list[Block]:
        """Return what a prompt says, its arguments given in order (all that is left over belongs to the last one).

        Raises `ConfigError` for a prompt that is not there or lacks arguments, `ToolError` where its server fails.
        """
        command, filled = chosen(self.prompts(), name, arguments)
        connection = self.connections[command.server]
        asked = self._answering(call or quiet_call())
        got = await self._here(lambda: connection.prompt(command.prompt, filled, asked))
        return mcp_content.prompt_of(got, self.picture)

    async def read(self, server: str, uri: str, call: Call | None = None) -> Result:
        """Return what a resource holds. Raises `ToolError`."""
        connection = self.connections.get(server)
        if connection is None:
            raise ToolError(self.why_not(server))
        asked = self._answering(call or quiet_call())
        got = await self._here(lambda: connection.read(uri, asked))
        return mcp_content.resource_of(got, self.picture)

    async def attached(self, prompt: str) -> list[Block]:
        """Return the resources that a person's words name as `@server:uri`, as blocks to be put beside them."""
        blocks: list[Block] = []
        for server, uri in attachments(prompt, self.connections):
            try:
                blocks += (await self.read(server, uri)).content
            except ToolError as error:
                blocks.append(text_block(f"[@{server}:{uri} can't be read: {error}]"))
        return blocks


async def _started(connection: Connection) -> None:
    """Start a server, or ask one that has changed again; one that took long to fail is left to be restarted."""
    again = connection.state is State.FAILED and connection.took < _QUICK
    if again or connection.state in (State.STOPPED, State.ENDED):
        await connection.start()
    await connection.refresh()


async def _asked(call: Call, question: Question) -> str:
    return await call.ask(question)


def quiet_call() -> Call:
    """A call that belongs to no run: what its server asks is not answered."""

    async def nobody(_: Question) -> str:
        return ""

    return Call("", lambda _: None, nobody)


def _text_of(param: Json) -> dict[str, Any]:
    return {"description": param.get("description", ""), "schema": param.get("input_schema", {})}


def _changed(server: str, new: set[str] | frozenset[str], gone: set[str]) -> list[str]:
    said: list[str] = []
    if new:
        said.append(
            f"The MCP server “{server}” has tools that this session was begun without: {', '.join(sorted(new))}. "
            "They can be used in a new session only (%%agent --new)."
        )
    if gone:
        said.append(f"The MCP server “{server}” does not offer these tools any more: {', '.join(sorted(gone))}.")
    return said
