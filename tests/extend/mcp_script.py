"""An MCP server over stdio by hand, without the SDK: it starts fast, and misbehaves when it is told to.

python mcp_script.py [--silent | --die | --deaf | --stubborn] [--log FILE]
Run by tests only. Each tool does what its name says; the log gets a line for each message that came in.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import threading
import zlib
from pathlib import Path
from typing import Any


def _png() -> str:
    """A picture of one red pixel, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0\xff\0\0")
    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    ).decode()


PNG = _png()
REFERRING = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "shape": {"oneOf": [{"$ref": "#/definitions/circle"}, {"$ref": "#/definitions/square"}]},
        "größe": {"type": "integer", "minimum": 1},
    },
    "required": ["shape"],
    "definitions": {
        "circle": {"type": "object", "properties": {"radius": {"type": "number"}}, "required": ["radius"]},
        "square": {"type": "object", "properties": {"side": {"type": "number"}}, "required": ["side"]},
    },
}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
WHAT = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
LONG = "a_name_that_is_much_longer_than_the_sixty_four_characters_that_are_allowed"

TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "description": "Say it again.", "inputSchema": WHAT, "annotations": {"readOnlyHint": True}},
    {"name": "write", "description": "Change something.", "inputSchema": WHAT},
    {"name": "read_file", "description": "As one of nbagent's own is called.", "inputSchema": WHAT},
    {"name": "call", "description": "Arguments with names of ours.", "inputSchema": {
        "type": "object", "properties": {"call": {"type": "string"}, "self": {"type": "string"}}}},
    {"name": "crash", "description": "End in the middle.", "inputSchema": EMPTY},
    {"name": "hang", "description": "Never answer.", "inputSchema": EMPTY},
    {"name": "slow", "description": "Tell of progress, then answer when told to go on.", "inputSchema": EMPTY},
    {"name": "garbage", "description": "Write nonsense, then answer.", "inputSchema": EMPTY},
    {"name": "big", "description": "Ten megabytes.", "inputSchema": EMPTY, "annotations": {"readOnlyHint": True}},
    {"name": "many", "description": "Thousands of blocks and images.", "inputSchema": EMPTY},
    {"name": "odd", "description": "A schema with references.", "inputSchema": REFERRING},
    {"name": LONG, "description": "A long name.", "inputSchema": WHAT},
    {"name": LONG + "_too", "description": "Another one.", "inputSchema": WHAT},
    {"name": "größe_ändern", "description": "Ändert die Größe.", "inputSchema": WHAT},
    {"name": "查询", "description": "天气 🌦", "inputSchema": WHAT},
    {"name": "blocks", "description": "All kinds of content.", "inputSchema": EMPTY},
    {"name": "refuse", "description": "Fail as tools do.", "inputSchema": EMPTY},
    {"name": "ask", "description": "Ask the person.", "inputSchema": EMPTY},
    {"name": "sample", "description": "Ask for a reply of the model.", "inputSchema": EMPTY},
    {"name": "roots", "description": "Ask for the roots.", "inputSchema": EMPTY},
    {"name": "grow", "description": "Offer another tool from now on.", "inputSchema": EMPTY},
    {"name": "complain", "description": "Write to stderr.", "inputSchema": EMPTY},
    {"name": "environment", "description": "Tell the environment.", "inputSchema": EMPTY},
]  # fmt: skip
QUESTION = {
    "message": "Which one?\u202e",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "color": {"type": "string", "enum": ["red", "blue"]},
            "count": {"type": "integer", "minimum": 1},
            "note": {"type": "string"},
        },
        "required": ["color", "count"],
    },
}
BLOCKS = [
    {"type": "text", "text": "one\ud83d"},
    {"type": "text", "text": "two"},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "image", "data": "%%%", "mimeType": "image/png"},
    {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a.csv", "name": "a.csv", "mimeType": "text/csv", "size": 1234},
    {"type": "resource", "resource": {"uri": "mem://text", "mimeType": "text/plain", "text": "in a resource"}},
    {"type": "resource", "resource": {"uri": "mem://pdf", "mimeType": "application/pdf", "blob": PNG}},
    {"type": "resource", "resource": {"uri": "mem://png", "mimeType": "image/png", "blob": PNG}},
]


class Server:
    """Answers one line after the other; what hangs does so in a thread."""

    def __init__(self, options: list[str]) -> None:
        self.options = options
        self.log = options[options.index("--log") + 1] if "--log" in options else None
        self.lock = threading.Lock()
        self.go_on = threading.Event()
        self.waiting: dict[str, Any] = {}

    def send(self, **message: Any) -> None:
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def note(self, line: str) -> None:
        if self.log:
            with Path(self.log).open("a", encoding="utf-8") as file:
                file.write(line.rstrip("\n") + "\n")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client, in a thread of its own, and return its answer."""
        key = f"{method}-{len(self.waiting)}"
        ready = threading.Event()
        self.waiting[key] = [ready, {}]
        self.send(id=key, method=method, params=params)
        ready.wait()
        return self.waiting[key][1]

    def serve(self) -> None:
        for line in sys.stdin:
            self.note(line)
            message = json.loads(line)
            if "method" not in message:
                slot = self.waiting.get(message["id"])
                if slot:
                    slot[1] = message
                    slot[0].set()
            elif "id" in message:
                self.answer(message["id"], message["method"], message.get("params") or {})
            elif message["method"] == "notifications/cancelled":
                self.note("cancelled")
        if "--stubborn" in self.options:
            threading.Event().wait()

    def answer(self, number: Any, method: str, params: dict[str, Any]) -> None:
        if "--silent" in self.options:
            return
        if method == "server/discover" and "--deaf" in self.options:
            os._exit(4)  # as servers do that know of no question before `initialize`
        if method == "initialize":
            able: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}
            self.send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": able,
                      "serverInfo": {"name": "script", "version": "1"}, "instructions": "Use echo first."})  # fmt: skip
        elif method == "tools/list":
            self.send(id=number, result=self.page(params.get("cursor")))
        elif method == "prompts/list":
            self.send(id=number, result={"prompts": [{"name": "greet", "description": "Greet somebody.", "arguments": [
                {"name": "who", "required": True}, {"name": "how"}]}]})  # fmt: skip
        elif method == "prompts/get":
            given = params.get("arguments") or {}
            text = f"Greet {given.get('who')} {given.get('how', 'kindly')}."
            self.send(id=number, result={"messages": [{"role": "user", "content": {"type": "text", "text": text}},
                      {"role": "assistant", "content": {"type": "text", "text": "Hello."}}]})  # fmt: skip
        elif method == "resources/list":
            self.send(
                id=number, result={"resources": [{"uri": "mem://notes", "name": "notes", "mimeType": "text/plain"}]}
            )
        elif method == "resources/templates/list":
            self.send(id=number, result={"resourceTemplates": [{"uriTemplate": "mem://{day}", "name": "days"}]})
        elif method == "resources/read":
            self.send(id=number, result={"contents": [{"uri": params["uri"], "text": f"read {params['uri']}"}]})
        elif method == "tools/call":
            threading.Thread(target=self.call, args=(number, params), daemon=True).start()
        else:
            self.send(id=number, error={"code": -32601, "message": f"no method {method}"})

    def page(self, cursor: str | None) -> dict[str, Any]:
        return {"tools": TOOLS[10:]} if cursor else {"tools": TOOLS[:10], "nextCursor": "more"}

    def call(self, number: Any, params: dict[str, Any]) -> None:
        name, given = params["name"], params.get("arguments") or {}
        token = (params.get("_meta") or {}).get("progressToken")
        content: list[dict[str, Any]] = [{"type": "text", "text": f"{name} {json.dumps(given, ensure_ascii=False)}"}]
        more: dict[str, Any] = {}
        match name:
            case "crash":
                os._exit(3)
            case "hang":
                self.send(method="notifications/progress", params={"progressToken": token, "progress": 0})
                threading.Event().wait()
            case "slow":
                for step in (1, 2):
                    self.send(method="notifications/progress", params={
                        "progressToken": token, "progress": step, "total": 2, "message": f"step {step}"})  # fmt: skip
            case "garbage":
                with self.lock:
                    sys.stdout.write("Traceback (most recent call last):\n{not json\n\n[1, 2]\n" + "x" * 200_000 + "\n")
                    sys.stdout.buffer.write(b"\xff\xfe\n")
            case "big":
                content = [{"type": "text", "text": "0123456789" * 1_000_000}]
            case "many":
                content = [{"type": "text", "text": f"line {i}"} for i in range(5000)]
                content += [{"type": "image", "data": PNG, "mimeType": "image/png"}] * 50
            case "blocks":
                content, more = BLOCKS, {"structuredContent": {"answer": 42}}
            case "refuse":
                content, more = [{"type": "text", "text": "no such row"}], {"isError": True}
            case "ask":
                content = [{"type": "text", "text": json.dumps(self.ask("elicitation/create", QUESTION).get("result"))}]
            case "sample":
                asked = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
                content = [{"type": "text", "text": json.dumps(self.ask("sampling/createMessage", asked).get("error"))}]
            case "roots":
                content = [{"type": "text", "text": json.dumps(self.ask("roots/list", {}).get("result"))}]
            case "grow":
                TOOLS.append({"name": "grown", "inputSchema": EMPTY})
                TOOLS[:] = [tool for tool in TOOLS if tool["name"] != "write"]
                self.send(method="notifications/tools/list_changed")
            case "complain":
                sys.stderr.write("cannot find \u202emy config\n")
                sys.stderr.flush()
            case "environment":
                content = [
                    {"type": "text", "text": json.dumps({**os.environ, "cwd": str(Path.cwd()), "pid": os.getpid()})}
                ]
        self.send(id=number, result={"content": content, **more})


if __name__ == "__main__":
    if "--die" in sys.argv:
        sys.stderr.write("no licence\n")
        sys.exit(7)
    Server(sys.argv[1:]).serve()
