"""A tool of an MCP server as a `Tool` of ours: its schema is the server's, and so are the names of its arguments.

Wrappers of tools take one argument more than the function needs (`arguments`), so no name of a server's can collide with
a name of ours. Must not know of clients. Read `ForeignTool`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nbagent.core.messages import Json, clean
from nbagent.core.ports import Preview
from nbagent.core.tools import Call, Kind, Result, Tool
from nbagent.extend.mcp_schema import Arguments

DESCRIPTION_LIMIT = 2048
"""Characters of a tool's description as the model sees it."""


@dataclass(frozen=True, slots=True)
class ForeignTool(Tool):
    """A tool whose arguments are described by a JSON schema that somebody else wrote. `given` keeps the shown names."""

    takes: Arguments | None = None

    def validate(self, given: Json) -> Json:
        """Return `given`; raise `ToolError` that names each argument which does not fit. Defaults are the server's."""
        return given if self.takes is None else self.takes.check(self.name, given)

    @property
    def signature(self) -> str:
        """The names of the arguments, as a person would write them down."""
        needed = set(self.schema.get("required", []))
        names = [name if name in needed else f"{name}?" for name in self.schema.get("properties", {})]
        return f"{self.name}({', '.join(names)})"

    async def run(self, call: Call, given: Json) -> Result:
        """Run the function on the arguments as one object."""
        return Result.of(await self.function(call, arguments=given))


def foreign(
    name: str,
    description: str,
    takes: Arguments,
    function: Callable[[Call, Json], Awaitable[Result]],
    *,
    kind: Callable[[], Kind],
    title: str,
    schema: Json | None = None,
) -> ForeignTool:
    """Make a tool of a server's. `function` gets the arguments as the server knows them; `kind` is asked at each call.

    `schema` is what the model was shown before, where that was another one.
    """

    async def called(call: Call, arguments: Json) -> Result:
        return await function(call, takes.sent(arguments))

    def preview(given: Json) -> Preview:
        return Preview("code", json.dumps(given, indent=2, ensure_ascii=False), language="json")

    return ForeignTool(
        name=name,
        description=description,
        schema=takes.shown if schema is None else schema,
        function=called,
        kind=lambda _: kind(),
        subject=lambda _: "",
        title=lambda given: _titled(title, given),
        preview=preview,
        takes=takes,
    )


def short_description(text: str) -> str:
    """Return a description, cut at `DESCRIPTION_LIMIT`."""
    text = clean(text).strip()
    return text if len(text) <= DESCRIPTION_LIMIT else f"{text[: DESCRIPTION_LIMIT - 1]}…"


def _titled(title: str, given: Json) -> str:
    """The tool, and the first of its arguments that is a short text."""
    first = next((str(v) for v in given.values() if isinstance(v, str | int | float) and str(v).strip()), "")
    lines = first.strip().splitlines()
    return f"{title} {lines[0][:60]}".strip() if lines else title
