"""Which server is asked and with which key, from what was given and the environment.

Reads the environment at each call and keeps nothing, so a key that is set later counts at once. Knows nothing of any
client library. Read `find_key` first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from nbagent.core.errors import ConfigError

HOME = "https://api.anthropic.com"
"""Anthropic's own API."""

_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class Key:
    """A key and the kind of header that it belongs in; no `secret` leaves it to the SDK's profiles."""

    secret: str = field(default="", repr=False)
    is_token: bool = False


def server_url(given: str | None = None) -> str:
    """Return the base URL of the server: what is given, else ANTHROPIC_BASE_URL, else Anthropic's own.

    A path that is already the API's (/v1, /v1/messages) is cut off, since the client adds it.

    Raises:
        ConfigError: It is not an http or https URL.
    """
    url = (given or "").strip() or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or HOME
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        good = False
    if not good:
        raise ConfigError(
            f"base_url {url!r} is not the address of a server: write it as http://host:port or https://host "
            "(base_url or ANTHROPIC_BASE_URL)."
        )
    url = url.rstrip("/")
    for tail in ("/messages", "/v1"):
        url = url.removesuffix(tail)
    return url


def is_local(base_url: str) -> bool:
    """Say whether the server is a plain HTTP one on this machine."""
    parts = urlsplit(base_url)
    return parts.scheme == "http" and parts.hostname in _LOCAL_HOSTS


def find_key(given: str | None = None) -> Key:
    """Return the key: what is given, else ANTHROPIC_API_KEY, else ANTHROPIC_AUTH_TOKEN; blank ones count as none.

    Blanks, newlines and quotes around a key are cut off: they come with copying.

    Raises:
        ConfigError: The key holds characters that no key has.
    """
    sources = (
        ("api_key", given, False),
        ("ANTHROPIC_API_KEY", os.environ.get("ANTHROPIC_API_KEY"), False),
        ("ANTHROPIC_AUTH_TOKEN", os.environ.get("ANTHROPIC_AUTH_TOKEN"), True),
    )
    for source, raw, is_token in sources:
        if (secret := checked_key(source, raw)) is not None:
            return Key(secret, is_token)
    return Key()


def checked_key(source: str, raw: str | None) -> str | None:
    """Return the key in `raw`, None where there is none; raise `ConfigError` that names `source` where it can't be one."""
    secret = (raw or "").strip().strip("\"'").strip()
    if not secret:
        return None
    odd = next((at for at, char in enumerate(secret, 1) if not "!" <= char <= "~"), None)
    if odd is not None:
        raise ConfigError(
            f"{source} cannot be a key: its character {odd} of {len(secret)} is a blank or is not plain ASCII. "
            "Copy the key again."
        )
    return secret
