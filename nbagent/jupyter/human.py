"""A person at a keyboard who is the model (`-m human`), where there are no widgets: lines in, one reply out.

Words are typed as they are; `call NAME` asks for the arguments one by one; `json` takes the blocks as they go over the wire; an
empty line sends. Must not know of widgets. Read `TypedHuman.__call__`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from nbagent.core.errors import Rejected
from nbagent.core.messages import Block, Json, Message, plain_text
from nbagent.core.shown import visible_plain
from nbagent.jupyter.typed import Read, from_terminal
from nbagent.models.forms import Field, fields_of, input_of, problems
from nbagent.models.human import Reply, Turn, blocks_of, call_block

KEYS = (
    "Answer as the model would. Type words; `call NAME` makes a call; `tool NAME` shows a tool's schema, `system` the system "
    "prompt; `json` takes blocks as JSON. An empty line sends the reply."
)
GONE = "Nobody can type the model's reply here any more."
_END = "."


class TypedHuman:
    """Asks through `read`, shows through `write`: an `Ask` (models/human.py) for a place without widgets."""

    def __init__(self, read: Read = from_terminal, write: Callable[[str], None] = print) -> None:
        self._read = read
        self._write = write

    async def __call__(self, turn: Turn) -> Reply:
        """Show what is new to the model and read its reply; raises `Rejected` where nobody can type any more."""
        self._write("\n".join(_head(turn)))
        words: list[str] = []
        calls: list[Block] = []
        while True:
            line = (await self._line("model> ")).rstrip()
            command, _, rest = line.strip().partition(" ")
            tool = rest.strip()
            if not line.strip():
                reply = Reply.of("\n".join(words), calls)
                wrong = problems(reply.content, turn.tools)
                if not wrong or await self._anyway(wrong):
                    return reply
            elif command == "call" and tool and " " not in tool:
                calls.append(await self._call(tool, turn.tools))
            elif command == "tool" and tool and " " not in tool:
                self._write(
                    json.dumps(_tool(tool, turn.tools) or f"There is no tool {tool}.", indent=1, ensure_ascii=False)
                )
            elif line.strip() == "system":
                self._write(visible_plain(turn.system))
            elif line.strip() == "json":
                if (reply := await self._json()) is not None:
                    return reply
            else:
                words.append(line)

    async def _anyway(self, wrong: Sequence[str]) -> bool:
        self._write("\n".join(wrong))
        return (await self._line("Send it as it is? y = yes, n = write on: ")).strip().casefold() in {"y", "yes"}

    async def _call(self, name: str, tools: Sequence[Json]) -> Block:
        tool = _tool(name, tools)
        if tool is None:
            self._write(f"There is no tool {name!r}; write its arguments as JSON, to see what the runtime says.")
            return call_block(name, await self._object("input: "))
        schema: Json = tool.get("input_schema") or {}
        texts = {field.name: await self._field(field) for field in fields_of(schema)}
        return call_block(name, input_of(schema, texts))

    async def _field(self, field: Field) -> str:
        hint = "" if field.required else f", may be left out{f' ({field.default})' if field.default else ''}"
        choices = f" {' | '.join(field.choices)}" if field.choices else ""
        prompt = f"  {field.name} ({field.type}{hint}){choices}: "
        if field.kind != "lines":
            return await self._line(prompt)
        self._write(f"{prompt}lines, a line with only a dot ends them")
        return "\n".join(await self._lines())

    async def _lines(self) -> list[str]:
        lines: list[str] = []
        while (line := await self._line("  … ")).strip() != _END:
            lines.append(line)
        return lines

    async def _object(self, prompt: str) -> object:
        text = await self._line(prompt)
        try:
            return json.loads(text or "{}")
        except ValueError:
            return text

    async def _json(self) -> Reply | None:
        self._write("Blocks as JSON; a line with only a dot ends them.")
        try:
            return Reply(blocks_of("\n".join(await self._lines())))
        except ValueError as error:
            self._write(str(error))
            return None

    async def _line(self, prompt: str) -> str:
        try:
            return await self._read(prompt)
        except (EOFError, OSError, RuntimeError):  # no terminal; a kernel without stdin
            raise Rejected(GONE) from None


def _tool(name: str, tools: Sequence[Json]) -> Json | None:
    return next((tool for tool in tools if tool.get("name") == name), None)


def _head(turn: Turn) -> list[str]:
    names = ", ".join(str(tool.get("name")) for tool in turn.tools) or "none"
    lines = [
        "",
        f"── You are the model: reply {turn.number} of this conversation ──",
        f"System prompt: {len(turn.system)} characters. Tools: {names}.",
    ]
    return [*lines, *(line for message in turn.new for line in message_lines(message)), KEYS]


def message_lines(message: Message) -> list[str]:
    """Return a message as lines of plain text, each of its blocks with what it is."""
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    return [line for block in blocks for line in (f"[{message.get('role')}: {_what(block)}]", *_text(block))]


def _what(block: Block) -> str:
    match block.get("type"):
        case "tool_result":
            return f"{'error' if block.get('is_error') else 'result'} of {block.get('tool_use_id')}"
        case "tool_use":
            return f"call {block.get('name')} {block.get('id')}"
        case kind:
            return str(kind)


def _text(block: Block) -> list[str]:
    match block.get("type"):
        case "text":
            said = str(block.get("text"))
        case "tool_result":
            said = plain_text(block.get("content") or "")
        case "tool_use":
            said = json.dumps(block.get("input"), ensure_ascii=False)
        case _:
            return []
    return [f"│ {visible_plain(line)}" for line in said.split("\n")]
