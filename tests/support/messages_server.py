"""A real HTTP server that speaks the Messages API, for tests: strict as the real one, scripted, and able to fail.

    with MessagesServer([say("Hello"), calls("run_cell", cell="abc"), Status(529), Reply("a long text", cut_after=3)]) as server:
        ...  # ANTHROPIC_BASE_URL=server.url, any key; works from other processes too
        server.wait_for_requests(2)
        server.push("one more reply")
    server.requests[0].body["messages"]

The script is a list (each request takes the next reply) or a function of the request's JSON. When a list has run out, the
request WAITS for `push` (so a browser test can script live), at most `patience` seconds, then gets a 500.
Every request is checked as the real API does (messages_rules.py); one that breaks a rule gets the real error, takes no
reply from the script, and is listed in `server.refusals`: `server.assert_clean()` says so. Thinking blocks are signed and
must come back byte for byte, in the same conversation. Usage counts cache writes and reads by prefix.
Tool input is sent in odd pieces, and the bytes of the stream are cut at odd places, inside UTF-8 and JSON too.
The server runs in its own thread with its own event loop; all methods may be called from any thread and block it
(in a coroutine: `await asyncio.to_thread(server.wait_for_requests, 1)`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Self

from nbagent.core.messages import reply_events
from tests.support.messages_replies import HTML, Reply, Reset, Scripted, Silence, Status, call, calls, refused_url, say
from tests.support.messages_rules import Json, Memory, Refusal, check, needs_beta
from tests.support.messages_wire import Seen, Stream, flush, head, left, read_request, reset, send_error, send_json

__all__ = [
    "HTML",
    "MessagesServer",
    "Reply",
    "Reset",
    "Seen",
    "Silence",
    "Status",
    "call",
    "calls",
    "refused_url",
    "say",
]


class MessagesServer:
    """See the module's docstring.

    Args:
        script: Replies in order, or a function that makes one from the request's JSON.
        key: The only key that is accepted; None: any.
        key_header: "x-api-key" for an old gateway that does not read Authorization.
        versions: Accepted anthropic-version headers; None: any.
        plain: An older server that refuses thinking and cache_control.
        models: Known model ids; None: any name is known.
        ssl: An ssl.SSLContext to serve https.
        patience: Seconds that a request waits for `push`.
    """

    def __init__(
        self,
        script: Iterable[Scripted] | Callable[[Json], Scripted] = (),
        *,
        key: str | None = None,
        key_header: str = "",
        versions: set[str] | None = None,
        plain: bool = False,
        models: list[str] | None = None,
        ssl: Any = None,
        patience: float = 30.0,
    ) -> None:
        self._make = script if callable(script) else None
        self._script: deque[Scripted] = deque() if callable(script) else deque(script)
        self._key, self._key_header, self._versions, self._plain = key, key_header, versions, plain
        self._models = models
        self._ssl = ssl
        self._patience = patience
        self._memory = Memory()
        self._changed = threading.Condition()
        self._pushed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="messages-server", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._reply_number = 0
        self.requests: list[Seen] = []
        """Every POST /v1/messages, refused ones too."""
        self.refusals: list[str] = []
        """What the server had to say against requests."""
        self.url = ""

    # ── for tests ────────────────────────────────────────────────────────────────────────────────────────────────────

    def push(self, *replies: Scripted) -> None:
        """Add replies to the end of the script; a waiting request gets the first at once."""
        self._loop.call_soon_threadsafe(self._push, replies)

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> list[Seen]:
        """Wait until `count` requests have come in all, and return them; AssertionError after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise AssertionError(f"{len(self.requests)} requests came in {timeout} s, expected {count}")
            return list(self.requests)

    def assert_clean(self) -> None:
        """AssertionError if a request broke a rule of the API, or a reply of the script was never asked for."""
        assert not self.refusals, self.refusals
        assert not self._script, f"{len(self._script)} replies of the script were never asked for"

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # ── transport ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _push(self, replies: Iterable[Scripted]) -> None:
        self._script.extend(replies)
        self._pushed.set()

    async def _start(self) -> str:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._ssl)
        port = self._server.sockets[0].getsockname()[1]
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{port}"

    async def _stop(self) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun = b""
        try:
            while (seen := await read_request(reader, writer, begun)) is not None:
                answering = asyncio.ensure_future(self._answer(seen, writer))
                leaving = asyncio.ensure_future(left(reader))
                try:
                    await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
                    broken = any(t.done() and isinstance(t.exception(), ConnectionError) for t in (answering, leaving))
                    begun = leaving.result() if leaving.done() and not broken else b""
                    if broken or not answering.done():
                        assert not begun, "the client sent a second request before the first was answered"
                        seen.gone.set()
                        return
                    if not answering.result():
                        return
                finally:
                    answering.cancel()
                    leaving.cancel()
                    await asyncio.gather(answering, leaving, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, OSError):
                await writer.wait_closed()

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False: the connection must be closed."""
        try:
            self._check_headers(seen)
            if seen.path.startswith("/v1/models") and seen.method == "GET":
                listed = [{"type": "model", "id": name} for name in self._models or ["claude-sonnet-5-5"]]
                return await send_json(writer, 200, {"data": listed, "has_more": False})
            if seen.path == "/v1/messages/count_tokens":
                return await send_json(writer, 200, {"input_tokens": len(json.dumps(seen.body)) // 4})
            if (seen.method, seen.path.partition("?")[0]) != ("POST", "/v1/messages"):
                raise Refusal(f"Not found: {seen.path}", 404, "not_found_error")
            reply = await self._reply_to(seen)
        except Refusal as refusal:
            self.refusals.append(f"{refusal.status} {refusal}")
            return await send_error(writer, Status(refusal.status, refusal.kind, str(refusal)))
        if isinstance(reply, Status):
            return await send_error(writer, reply)
        if isinstance(reply, Silence):
            await asyncio.Event().wait()
        if isinstance(reply, Reset):
            reset(writer)
            return False
        assert isinstance(reply, Reply)
        kept = await self._send_reply(seen.body, reply, writer)
        seen.done.set()
        return kept

    def _check_headers(self, seen: Seen) -> None:
        bearer = seen.headers.get("authorization", "").removeprefix("Bearer ").strip()
        given = seen.headers.get("x-api-key", "")
        key = given if self._key_header == "x-api-key" else given or bearer
        if not key or (self._key is not None and key != self._key):
            raise Refusal("invalid x-api-key", 401, "authentication_error")
        version = seen.headers.get("anthropic-version")
        if version is None or (self._versions is not None and version not in self._versions):
            raise Refusal(f"anthropic-version: {version!r} is not a valid version")

    async def _reply_to(self, seen: Seen) -> Reply | Status | Reset | Silence:
        with self._changed:
            self.requests.append(seen)
            self._changed.notify_all()
        check(seen.body, plain=self._plain)
        asked = "compact-2026-09-04" in seen.headers.get("anthropic-beta", "") and "beta=true" in seen.path
        if needs_beta(seen.body) and not asked:
            raise Refusal("compaction: Extra inputs are not permitted")
        self._memory.check(seen.body)
        if self._models is not None and seen.body["model"] not in self._models:
            raise Refusal(f"model: {seen.body['model']}", 404, "not_found_error")
        reply = self._make(seen.body) if self._make else await self._next()
        return Reply(reply) if isinstance(reply, str | list) else reply

    async def _next(self) -> Scripted:
        until = time.monotonic() + self._patience
        while not self._script:
            self._pushed.clear()
            try:
                await asyncio.wait_for(self._pushed.wait(), until - time.monotonic())
            except TimeoutError:
                return Status(500, "api_error", "the script has no more replies")
        return self._script.popleft()

    async def _send_reply(self, body: Json, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        content: list[Json] = [{"type": "thinking", "thinking": reply.thinking}] if reply.thinking else []
        if isinstance(reply.content, str):
            content += [{"type": "text", "text": reply.content}] if reply.content else []
        else:
            content += [dict(block) for block in reply.content]
        self._memory.sign(body, content)
        usage = reply.usage or self._memory.usage(body, output=len(json.dumps(content)) // 4)
        self._reply_number += 1
        identity: dict[str, Any] = {"message_id": f"msg_{self._reply_number:06d}", "model": body["model"]}
        if reply.whole or not body.get("stream"):
            reason = reply.stop_reason or ("tool_use" if any(b["type"] == "tool_use" for b in content) else "end_turn")
            message = {"id": identity["message_id"], "type": "message", "role": "assistant", "model": body["model"],
                       "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}  # fmt: skip
            return await send_json(writer, 200, message)
        events = reply.events or reply_events(content, reply.stop_reason, usage=usage, chunk=reply.chunk, **identity)
        writer.write(head(200, "text/event-stream; charset=utf-8", {"transfer-encoding": "chunked"}))
        await flush(writer)
        return await Stream(writer, reply).send(events)
