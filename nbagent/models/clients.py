"""The SDK's client, made and its failures named: what every model behind the SDK shares.

The SDK is imported when a function is called, never before. Knows nothing of requests. Read `new_client`, then `fault`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbagent.core.errors import ConfigError, NbagentError, Rejected
from nbagent.models import sdk
from nbagent.models.credentials import HOME, Key, is_local
from nbagent.models.faults import NO_KEY, Place

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_IDLE = 2.0  # seconds that an idle connection to another server is kept: llama.cpp closes its own after 5


def warm_up() -> None:
    """Import the SDK, which takes about a second: for a background thread. Raises `ConfigError` if it can't be.

    Who needs a part of the SDK meanwhile imports `anthropic` first: that waits. A part alone does not wait for the whole, and
    then both fail (Python takes it for a deadlock).
    """
    if (told := sdk.in_the_way()) is not None:
        raise told
    try:
        import anthropic  # noqa: F401  # pyright: ignore[reportUnusedImport]  (importing it is all)
    except ImportError as error:
        raise sdk.because(error) from error


def new_client(base_url: str, key: Key) -> AsyncAnthropic:
    """Return the SDK's client for one server; raise `ConfigError` where there are no credentials."""
    import httpx2
    from anthropic import AnthropicError, AsyncAnthropic, DefaultAsyncHttpxClient

    home = base_url == HOME
    timeout = httpx2.Timeout(connect=10.0, read=None, write=60.0, pool=10.0)  # reads are watched in `_next_chunk`
    limits = httpx2.Limits(max_connections=100, keepalive_expiry=60.0 if home else _IDLE)
    try:
        client = AsyncAnthropic(
            api_key=None if key.is_token else key.secret or None,
            auth_token=key.secret if key.is_token else None,
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            open_telemetry=False,
            # A proxy cannot reach a server on this machine, yet many people's settings send everything to theirs.
            http_client=DefaultAsyncHttpxClient(limits=limits, timeout=timeout, trust_env=not is_local(base_url)),
        )
    except AnthropicError as error:  # a profile that is named but not there, and its kin
        raise ConfigError(f"The credentials could not be read: {error}") from error
    if not key.secret and client.credentials is None:
        raise ConfigError(NO_KEY)
    return client


def failures() -> tuple[type[Exception], ...]:
    """Return what the SDK and the HTTP client raise for a request that failed; evaluated only when something did."""
    import httpx2
    from anthropic import AnthropicError

    return (AnthropicError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, UnicodeError)


def refusal(error: Exception) -> tuple[int, str]:
    """Return the status and the words of a server that refused, else 0 and no words."""
    from anthropic import APIStatusError

    if not isinstance(error, APIStatusError):
        return 0, ""
    return error.status_code, error.message


def fault(place: Place, error: Exception) -> NbagentError:
    """Return what to raise for one of `failures`."""
    from anthropic import AnthropicError, APIError, APIStatusError

    if isinstance(error, APIStatusError):
        response = error.response
        text = response.text if response.is_stream_consumed else error.message
        return place.refusal(error.status_code, response.headers, text)
    if isinstance(error, UnicodeError):
        return Rejected("The conversation holds half of a surrogate pair, which cannot be sent as UTF-8.")
    if isinstance(error, AnthropicError) and not isinstance(error, APIError):
        return ConfigError(f"The credentials for {place.host} could not be used: {place.safe(str(error))}")
    return place.lost(error)
