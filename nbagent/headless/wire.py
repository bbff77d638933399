"""JSON lines between the process that gives work out and a worker: each proves that it knows the secret, each line is sealed.

Nothing but JSON is ever read (no pickle), and no line is longer than `LONGEST`. What is sent can be read by who listens on
the way: between machines it belongs in a network that you trust. Must not know what the lines mean. Read `greet`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Any

from nbagent.core.errors import NbagentError
from nbagent.core.messages import Json

LONGEST = 8_000_000
"""Bytes of one line."""

_GREETING = 10.0  # seconds that the other side has to prove itself
_MAC = 32  # hex digits of a line's seal
_NONCE = 32


class WireError(NbagentError):
    """The other side is not who it should be, or sent what is no line of ours."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the process that gives work out listens; who knows the `secret` (hex) may take part."""

    host: str
    port: int
    secret: str

    def to_json(self) -> Json:
        """Return the address as a JSON object."""
        return {"host": self.host, "port": self.port, "secret": self.secret}

    @classmethod
    def from_json(cls, data: Json) -> Address:
        """Return the address that `to_json` gave."""
        return cls(str(data["host"]), int(data["port"]), str(data["secret"]))


class Wire:
    """One connection after its greeting: `send` and `receive` JSON objects. Each way has a key and counts its lines."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mine: bytes = b"", theirs: bytes = b""
    ) -> None:
        self._reader, self._writer = reader, writer
        self._mine, self._theirs = mine, theirs
        self._sent = self._received = 0

    def send(self, message: Json) -> None:
        """Put a message on its way; never waits. Raises `WireError` for one that is too long."""
        body = json.dumps(message, ensure_ascii=True, separators=(",", ":"), default=str).encode()
        line = _seal(self._mine, self._sent, body) + body + b"\n"
        if len(line) > LONGEST:
            raise WireError(f"A message of {len(line):,} bytes is too long to be sent.")
        self._sent += 1
        self._writer.write(line)

    async def drain(self) -> None:
        """Wait until there is room to send more. Raises `OSError` where the connection is gone."""
        await self._writer.drain()

    async def receive(self) -> Json | None:
        """Return the next message, None at the end. Raises `WireError` for what is none, `OSError` for a lost connection."""
        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            raise WireError("A line was too long.") from None
        seal, body = line[:_MAC], line[_MAC:-1]
        if not hmac.compare_digest(seal, _seal(self._theirs, self._received, body)):
            raise WireError("A line was not sealed by the other side.")
        self._received += 1
        try:
            found: Any = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise WireError("A line was no JSON object.")
        return found

    def close(self) -> None:
        """End the connection; what was sent still goes out."""
        self._writer.close()


def _seal(key: bytes, number: int, body: bytes) -> bytes:
    return hmac.digest(key, b"%d:" % number + body, "sha256").hex()[:_MAC].encode("ascii")


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: str, *, gives: bool) -> Wire:
    """Have both sides prove that they know `secret`, without saying it; `gives`: this is the side that gives work out.

    Each side sends a nonce and gets it back under a key that both can make of the secret; nothing of the other side is
    read beyond a line before that. Raises `WireError` where the other side does not know it, or says nothing in 10 seconds.
    """
    me, you = (b"hub", b"worker") if gives else (b"worker", b"hub")
    nonce = secrets.token_hex(_NONCE).encode("ascii")
    writer.write(nonce + b"\n")
    try:
        async with asyncio.timeout(_GREETING):
            theirs = await _word(reader)
            both = nonce + theirs if gives else theirs + nonce
            writer.write(_proof(secret, me, both) + b"\n")
            if not hmac.compare_digest(await _word(reader), _proof(secret, you, both)):
                raise WireError("The other side does not know the secret.")
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        raise WireError("The other side said nothing that proves who it is.") from None
    return Wire(reader, writer, _key(secret, me, both), _key(secret, you, both))


async def _word(reader: asyncio.StreamReader) -> bytes:
    """Return a line of 64 hex digits, and read no more than that of who has proved nothing yet."""
    line = await reader.readexactly(2 * _NONCE + 1)
    if not line.endswith(b"\n"):
        raise WireError("The other side does not speak as nbagent does.")
    return line[:-1]


def _proof(secret: str, who: bytes, both: bytes) -> bytes:
    return hmac.digest(bytes.fromhex(secret), b"nbagent proof " + who + b" " + both, "sha256").hex().encode("ascii")


def _key(secret: str, who: bytes, both: bytes) -> bytes:
    return hashlib.sha256(_proof(secret, b"key of " + who, both)).digest()
