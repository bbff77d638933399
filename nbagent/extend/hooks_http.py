"""Asks a server that is a hook: one POST with the payload as its body, no redirects, a bounded answer.

The standard library's client, in a thread: a hook's server needs nothing more. Must not know what an answer means. Read `post`.
"""

from __future__ import annotations

import asyncio
import fnmatch
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from nbagent.extend.hooks_output import Failed

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_LIMIT = 1_000_000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the payload, or its headers, to another server than the one that is written down."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """Follow nothing."""


async def post(
    spec: Mapping[str, Any],
    body: bytes,
    *,
    environment: Mapping[str, str],
    timeout: float,
    urls: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
) -> tuple[int, str]:
    """Send `body` to the hook's server; return status and text of the answer. Raises `Failed` where none comes.

    `urls` are patterns of the addresses that may be asked, `variables` the names of those that headers may use (None: as
    the hook says itself).
    """
    url = str(spec["url"])
    if not url.lower().startswith(("http://", "https://")):
        raise Failed(f"its url {url!r} is no http address")
    if urls is not None and not any(fnmatch.fnmatchcase(url, pattern) for pattern in urls):
        raise Failed(f"its url {url!r} is not among the allowedHttpHookUrls")
    headers = {"Content-Type": "application/json", **headers_of(spec, environment, variables)}
    return await asyncio.to_thread(_post, url, body, headers, timeout)


def headers_of(
    spec: Mapping[str, Any], environment: Mapping[str, str], variables: Sequence[str] | None = None
) -> dict[str, str]:
    """Return the hook's headers with `$NAME` and `${NAME}` put in for the variables that it may use, "" for all others."""
    allowed = {str(name) for name in spec.get("allowedEnvVars") or ()}
    if variables is not None:
        allowed &= set(variables)

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return environment.get(name, "") if name in allowed else ""

    raw = {str(name): _VARIABLE.sub(value, str(text)) for name, text in (spec.get("headers") or {}).items()}
    return {name: re.sub(r"[\r\n]", "", text) for name, text in raw.items()}


def _post(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> tuple[int, str]:
    request = urllib.request.Request(url, data=body, headers=dict(headers), method="POST")  # noqa: S310  (http(s) only)
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=timeout) as answer:
            return answer.status, answer.read(_LIMIT).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""
    except TimeoutError:
        raise Failed(f"no answer within {timeout:g} s") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise Failed(f"its server can't be reached: {reason}") from None
