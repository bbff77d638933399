"""HTTP/1.1 and event streams as bytes, for `MessagesServer`; writes in odd pieces, and fails where the script says."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.messages_replies import Reply, Status
from tests.support.messages_rules import Json

_TLS = b"\x16"
_WRITE_SIZES = (7, 1, 64, 3, 200, 2, 31)
_KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
          404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip


@dataclass
class Seen:
    """One request as it came. `gone` is set when the client leaves before the answer's end, `done` at its end."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    peer: int  # the client's port: the same for requests of one connection
    gone: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


class Stream:
    """Writes one event stream, in pieces of odd sizes, until the scripted fault."""

    def __init__(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        self._writer = writer
        self._reply = reply
        self._sizes = itertools.cycle(_WRITE_SIZES)
        self._left = reply.cut_bytes

    async def send(self, events: list[Json]) -> bool:
        reply = self._reply
        for number, event in enumerate(events):
            if number in reply.extra:
                await self._write(reply.extra[number].encode())
            if number == reply.cut_after:
                reset(self._writer)
                return False
            if number == reply.hang_after:
                await asyncio.Event().wait()
            while number == reply.ping_after:
                await self._write(b'event: ping\ndata: {"type": "ping"}\n\n')
                await asyncio.sleep(reply.ping_every)
            if number == reply.end_after:
                break
            if reply.error_at and number == reply.error_at[0]:
                fault = {"type": "error", "error": {"type": reply.error_at[1], "message": "scripted fault"}}
                await self._write(f"event: error\ndata: {json.dumps(fault)}\n\n".encode())
                break
            data = json.dumps(event, ensure_ascii=False) if number != reply.garble_at else '{"type": "content_bl'
            if not await self._write(f"event: {event['type']}\ndata: {data}\n\n".encode()):
                return False
            if reply.pace:
                await asyncio.sleep(reply.pace)
        self._writer.write(b"0\r\n\r\n")
        await flush(self._writer)
        return True

    async def _write(self, data: bytes) -> bool:
        """Send bytes as odd HTTP chunks; False: the scripted cut came, and the connection is gone."""
        at = 0
        while at < len(data):
            piece = data[at : at + (next(self._sizes) if self._reply.odd else len(data))]
            at += len(piece)
            if self._left is not None:
                piece = piece[: self._left]
                self._left -= len(piece)
            if piece:
                self._writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if self._left == 0:
                await flush(self._writer)
                reset(self._writer)
                return False
        await flush(self._writer)
        return True


async def flush(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.sleep(0)


async def left(reader: asyncio.StreamReader) -> bytes:
    """Return b"" when the client has closed its side, else the first byte of its next request."""
    return await reader.read(1)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes) -> Seen | None:
    """Read one request, of which the bytes `begun` were read before; None at the end of the connection."""
    begun = begun or await reader.read(1)
    if begun == _TLS:  # as servers do: a client that is not told waits for its handshake's time limit
        writer.write(head(400, "text/plain", {"content-length": "0"}))
        return None
    try:
        text = (begun + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = text.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    try:
        body: Any = json.loads(raw) if raw else None
    except ValueError:
        body = raw
    return Seen(method, path, headers, body, writer.get_extra_info("peername")[1])


def head(status: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    lines = {"content-type": content_type, "request-id": "req_test", **headers}
    return "".join([f"HTTP/1.1 {status} X\r\n", *(f"{k}: {v}\r\n" for k, v in lines.items()), "\r\n"]).encode()


async def _send(writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, headers: Mapping[str, str]) -> bool:
    writer.write(head(status, kind, {"content-length": str(len(body)), **headers}) + body)
    await flush(writer)
    return True


async def send_json(writer: asyncio.StreamWriter, status: int, value: Json) -> bool:
    return await _send(writer, status, "application/json", json.dumps(value, ensure_ascii=False).encode(), {})


async def send_error(writer: asyncio.StreamWriter, status: Status) -> bool:
    kind = status.kind or _KINDS.get(status.code, "api_error")
    shape = {"type": "error", "error": {"type": kind, "message": status.message}, "request_id": "req_test"}
    body = json.dumps(shape) if status.body is None else status.body
    return await _send(writer, status.code, status.content_type, body.encode(), status.headers)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a crashed server or a proxy does."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
