"""What went wrong between us and a model's server, as errors of the core: one clear sentence each.

Works on plain values (a status and a body, an exception and its causes), so it needs no client library. Every sentence
names the thing, its value and the fix, and none holds the key. Read `Place.refusal` and `Place.lost` first.
"""

from __future__ import annotations

import json
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from nbagent.core.errors import (
    ConfigError,
    ContextFull,
    ImagesRefused,
    ModelError,
    NbagentError,
    Overloaded,
    Rejected,
    Transient,
)
from nbagent.core.messages import Json
from nbagent.models.credentials import is_local

NO_KEY = (
    "No API key: ANTHROPIC_API_KEY is not set (or empty), so no model can be asked.\n"
    "Set it before Jupyter starts (export ANTHROPIC_API_KEY=...), or in a cell, so that it is not saved: "
    'import os, getpass; os.environ["ANTHROPIC_API_KEY"] = getpass.getpass()\n'
    "To try it without a key: run `make demo`, or open notebooks/00_quickstart.ipynb, where the model is scripted."
)

UNKNOWN_MODEL = "does not know the model"
"""What a sentence on an unknown model says."""

_TOO_LONG = re.compile(
    r"prompt is too long|context (?:window|length|size)|maximum context|too many (?:input )?tokens|exceed\w* .{0,40}context",
    re.IGNORECASE,
)
_ABOUT_IMAGES = re.compile(r"\b(?:images?|vision|multi-?modal|mmproj)\b", re.IGNORECASE)
_PASSING_TYPES = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
_LASTING_TYPES = frozenset(
    {
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "billing_error",
        "not_found_error",
        "request_too_large",
    }
)
_SHOWN = 500


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait (retry-after-ms, or retry-after as seconds or date), or None.

    The number is passed on as it was asked for, however long; the loop sets the limit.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        raw = headers.get(name)
        if raw is None:
            continue
        try:
            seconds = float(raw) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(raw).timestamp() - time.time()
            except ValueError:
                continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and everything that led to it, group members included, each once."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        item = todo.pop(0)
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, BaseExceptionGroup):
            todo += item.exceptions
        todo += [item.__cause__, item.__context__]


@dataclass(frozen=True, slots=True)
class Place:
    """The model and server that a sentence is about; `secrets` are cut out of every text, `key` names where they are from."""

    model: str
    base_url: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    key: str = "ANTHROPIC_API_KEY"

    @property
    def host(self) -> str:
        """Host and port, without user names or paths."""
        parts = urlsplit(self.base_url)
        name = parts.hostname or self.base_url
        return f"{name}:{parts.port}" if parts.port else name

    @property
    def address(self) -> str:
        """The base URL without user name and password."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def safe(self, text: str) -> str:
        """Return `text` in one line, shortened, without any secret."""
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    # ── the server answered with an error ────────────────────────────────────────────────────────────────────────────

    def refusal(self, status: int, headers: Mapping[str, str], text: str) -> ModelError:
        """Return the error for an HTTP answer with `status` that is not 200; `text` is its body."""
        kind, said = self.said(text)
        quoted = f": {said}" if said else ""
        wait = retry_after(headers)
        if status == 413 or kind == "request_too_large" or _TOO_LONG.search(said):
            return ContextFull(f"The conversation no longer fits {self.model} at {self.host} ({status}{quoted}).")
        if status in (400, 415, 422, 500, 501) and _ABOUT_IMAGES.search(said):  # llama.cpp says it with a 500
            return ImagesRefused(f"{self.host} does not take the images of this conversation ({status}{quoted}).")
        if (status in (408, 409, 425, 429) or status >= 500) and status != 501:
            if headers.get("x-should-retry") == "false":
                return Rejected(f"{self.host} answered {status} and asks not to try again{quoted}.")
            passing = Overloaded if status == 529 or kind == "overloaded_error" else Transient
            return passing(f"{self.host} is {_BUSY.get(status, 'in trouble')} ({status}{quoted}).", retry_after=wait)
        if 300 <= status < 400:
            return Rejected(
                f"{self.host} sends requests on to {self.safe(headers.get('location', 'another address'))!r} ({status}): "
                "a login page, or base_url is not quite right."
            )
        return Rejected(self._refused(status, kind, quoted))

    def _refused(self, status: int, kind: str, quoted: str) -> str:
        match status:
            case 401:
                return f"{self.host} does not take this API key (401{quoted}). Check {self.key} and base_url."
            case 402:
                return f"The account at {self.host} cannot pay for this request (402{quoted})."
            case 403:
                return f"This API key may not use {self.model} at {self.host} (403{quoted})."
            case 404 if kind == "not_found_error" or "model" in quoted.lower():
                return (
                    f"{self.host} {UNKNOWN_MODEL} {self.model!r} (404{quoted}). "
                    f"Choose another with -m; {self.address}/v1/models lists what it has."
                )
            case 404 | 405 | 501:
                return (
                    f"There is no Messages API at {self.address} ({status} for /v1/messages{quoted}). "
                    "Check base_url or ANTHROPIC_BASE_URL."
                )
            case _:
                return f"{self.host} refused the request to {self.model} ({status}{quoted})."

    def said(self, text: str) -> tuple[str, str]:
        """Return type and message of an error body, whatever its shape; a web page is only named as such."""
        try:
            body: Any = json.loads(text)
        except ValueError:
            return "", "a web page" if "<html" in text[:2000].lower() else self.safe(text)
        error = body.get("error", body) if isinstance(body, dict) else body
        if not isinstance(error, dict):
            return "", self.safe(str(error))
        message = error.get("message") or error.get("detail") or error.get("error") or json.dumps(error)
        return str(error.get("type") or ""), self.safe(str(message))

    def broken(self, event: Json) -> ModelError:
        """Return the error for an `error` event in the middle of a stream; an unknown type may pass."""
        kind, said = self.said(json.dumps(event))
        if _TOO_LONG.search(said):
            return ContextFull(f"The conversation no longer fits {self.model} at {self.host}: {said}.")
        if kind in _LASTING_TYPES and kind not in _PASSING_TYPES:
            return Rejected(f"{self.host} broke off the reply and would again ({kind}: {said}).")
        passing = Overloaded if kind == "overloaded_error" else Transient
        return passing(f"{self.host} broke off the reply ({kind or 'error'}: {said}).")

    # ── no answer, or not one of the Messages API ────────────────────────────────────────────────────────────────────

    def lost(self, error: BaseException) -> NbagentError:
        """Return the error for a connection that failed, from the root cause in the chain of `error`."""
        chain = list(causes(error))
        for cause in chain:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return Rejected(
                    f"The TLS certificate of {self.host} was not accepted: {self.safe(_reason(cause))}. If a proxy or your "
                    "company signs its own certificates, point the environment variable SSL_CERT_FILE at its CA file."
                )
            if isinstance(cause, ssl.SSLError):
                return Rejected(
                    f"No TLS connection to {self.host}: {self.safe(_reason(cause))}. Does it speak plain HTTP? Then base_url "
                    "begins with http://; behind a proxy, SSL_CERT_FILE may have to name its CA file."
                )
            if isinstance(cause, socket.gaierror):
                return Rejected(
                    f"The host {self.host} was not found ({self.safe(_reason(cause))}). Is this machine online, and is "
                    f"base_url ({self.address}) spelled right?"
                )
        names = {type(cause).__name__ for cause in chain}
        if names & {"LocalProtocolError", "InvalidURL", "UnsupportedProtocol"}:
            return ConfigError(
                f"The request to {self.host} could not be written ({', '.join(sorted(names))}). Check base_url and "
                "ANTHROPIC_CUSTOM_HEADERS."
            )
        if "ProxyError" in names:
            return Rejected(
                f"The proxy on the way to {self.host} refused ({self._root(chain)}). Check HTTPS_PROXY and NO_PROXY."
            )
        if any(isinstance(cause, ConnectionRefusedError) for cause in chain):
            return self._nobody_there()
        if any(isinstance(cause, TimeoutError) or type(cause).__name__.endswith("Timeout") for cause in chain):
            return Transient(f"{self.host} did not take the request in time ({self._root(chain)}).")
        return Transient(f"The connection to {self.host} broke ({self._root(chain)}).")

    def _nobody_there(self) -> ModelError:
        if is_local(self.base_url):
            return Rejected(
                f"Nothing listens at {self.address} (connection refused). Start the server, or change base_url."
            )
        return Transient(f"{self.host} refused the connection. Is {self.address} the right base_url?")

    def _root(self, chain: list[BaseException]) -> str:
        named = [cause for cause in chain if str(cause)] or chain
        root = next((cause for cause in named if isinstance(cause, OSError)), named[-1])
        return self.safe(f"{type(root).__name__}: {_reason(root)}".rstrip(": "))

    def silent(self, seconds: float) -> Transient:
        """Return the error for a server that sent nothing that matters for `seconds`."""
        return Transient(f"{self.model} at {self.host} was silent for {seconds:g} s, so the connection was closed.")

    def not_the_api(self, what: str) -> Rejected:
        """Return the error for an answer of status 200 that no Messages API would give; `what` says what came."""
        return Rejected(
            f"The reply is not from a Messages API (a proxy or login page?): {self.safe(what)}. host={self.host}; "
            "check base_url or ANTHROPIC_BASE_URL."
        )

    def garbled(self, data: str) -> Transient:
        """Return the error for an event in the stream that cannot be read."""
        return Transient(f"{self.host} sent an event that cannot be read: {self.safe(data)[:200]!r}.")


_BUSY = {408: "slow", 409: "busy", 429: "limiting requests", 503: "not available", 504: "slow", 529: "overloaded"}


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return getattr(error, "verify_message", "") or error.strerror
    return str(error)
