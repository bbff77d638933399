"""A model behind the Messages API: one request in, the raw events of one streamed reply out.

The SDK does the sending (credentials, proxies, platforms, connection pool); its retries are off, since the loop has the
one retry layer, and its event objects are passed by: events are the server's own JSON. `anthropic` is imported when the
first request is made, or by `warm_up` in a background thread. Knows nothing of notebooks. Read `AnthropicModel.stream`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from nbagent.core.errors import NbagentError, Rejected
from nbagent.core.messages import Json, Usage, reply_events
from nbagent.models import catalog
from nbagent.models.catalog import Facts
from nbagent.models.clients import failures, fault, new_client, refusal, warm_up
from nbagent.models.credentials import HOME, Key, find_key, server_url
from nbagent.models.dialect import Auth, Dialect, beta_of, counted, request_body
from nbagent.models.endpoints import Endpoint
from nbagent.models.faults import UNKNOWN_MODEL, Place
from nbagent.models.sse import SseDecoder
from nbagent.models.wire import event_of

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

    from nbagent.core.ports import Request

HOME_SILENCE = 90.0
OTHER_SILENCE = 600.0
"""Longest silence in seconds. Other servers get more: a local model reads a long prompt for minutes without a word."""

_LINGER = 0.25  # seconds for the stream's end after message_stop, so that the connection can be used again
_LISTING = 10.0
_LOOK_UP = 3.0  # seconds for the list of models behind a sentence on an unknown one
_LONGEST_BODY = 32 * 1024 * 1024


class AnthropicModel:
    """A model that any server of the Messages API answers for.

    Args:
        name: Model id or short name (opus, sonnet, haiku, fable).
        base_url: The server; else ANTHROPIC_BASE_URL; else Anthropic's own. A trailing /v1 is dropped.
        api_key: The key; else ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or a profile of the SDK, read at each request, so
            a key that is set later counts at once. Servers other than Anthropic's may do without.
        auth: Which header carries the key; "auto" is right for nearly all.
        max_silence: Seconds without a meaningful event (pings do not count) until the reply is given up.
        thinking: Ask for adaptive thinking; None: if the model is known to have it.
        caching: Put cache markers; None: for Claude models.
        compaction: Have the server sum conversations up itself; None: for Claude models at Anthropic's own API.
        endpoint: The named server of the person that is asked, in the place of base_url, api_key and auth.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        auth: Auth = "auto",
        max_silence: float | None = None,
        thinking: bool | None = None,
        caching: bool | None = None,
        compaction: bool | None = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        entry = endpoint.entry(name) if endpoint is not None else None
        self._name = catalog.resolve(name) if entry is None else entry.id
        self._facts = (entry.facts if entry is not None else None) or catalog.facts(self._name)
        self._endpoint = endpoint
        self._given_url = base_url if endpoint is None else endpoint.base_url
        self._given_key = api_key
        self._auth: Auth = auth if endpoint is None or endpoint.auth == "none" else cast("Auth", endpoint.auth)
        self._max_silence = max_silence
        self._thinking = thinking
        self._caching, self._compaction = caching, compaction
        self._dialects: dict[str, Dialect] = {}
        self._client: AsyncAnthropic | None = None
        self._client_for: tuple[Any, ...] = ()
        self._streams = 0

    def __repr__(self) -> str:
        return f"AnthropicModel({self._name!r})"  # never the key

    @property
    def name(self) -> str:
        """The model id."""
        return self._name

    @property
    def facts(self) -> Facts:
        """Price and sizes of the model; None where not known."""
        return self._facts

    @property
    def place(self) -> str:
        """Whose server is asked: the endpoint's name, else its address; what was thought there is read only there."""
        return self._endpoint.name if self._endpoint is not None else self.base_url

    @property
    def base_url(self) -> str:
        """The server's address, as it would be asked now; raises ConfigError if it is not a URL."""
        return server_url(self._given_url)

    @property
    def compacts(self) -> bool:
        """Whether the server can sum a conversation up itself."""
        return self._dialect(self.base_url).compaction

    def cost(self, usage: Usage) -> float | None:
        """Return the price of one reply with `usage` in US dollars; None where unknown or not Anthropic's to say."""
        return catalog.cost_of(self._facts, usage)

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the raw events of one reply; closing the generator or cancelling its task closes the connection.

        Raises:
            Transient: Overload, lost or silent connection, unreadable event: worth another try.
            Rejected: Key, model or request refused, or the server is none of the Messages API.
            ContextFull: The conversation is too long for the model.
            ConfigError: No key, a key that cannot be one, a base_url that is none.
        """
        place, client, key = await self._connect()
        self._streams += 1
        try:
            async with aclosing(await self._open(client, place, key, request)) as response:
                kind = response.headers.get("content-type", "")
                if "html" in kind:
                    raise place.not_the_api(f"it is {kind}")
                if "json" in kind:  # a server that does not stream
                    for event in await self._whole(place, response):
                        yield event
                    return
                async with aclosing(self._events(place, response)) as events:
                    async for event in events:
                        yield event
        finally:
            self._streams -= 1

    async def available(self) -> list[str]:
        """Return the ids of the models that the server lists (GET /v1/models); raises as `stream` does."""
        body = await self._aside("/v1/models?limit=1000")
        entries: Any = body.get("data") if isinstance(body, dict) else None
        return [str(e["id"]) for e in entries or [] if isinstance(e, dict) and "id" in e]

    async def count(self, request: Request) -> int:
        """Return how many tokens `request` is, as the server counts them; raises as `stream` does."""
        dialect = self._dialect(self.base_url)
        body = await self._aside("/v1/messages/count_tokens", counted(request_body(self._name, request, dialect)))
        found: Any = body.get("input_tokens") if isinstance(body, dict) else None
        if not isinstance(found, int):
            raise Rejected(f"{self.place} does not count tokens.")
        return found

    async def _aside(self, path: str, body: Json | None = None) -> Any:
        """Ask for something beside the replies, and return its JSON."""
        place, client, key = await self._connect()
        headers = self._headers(self._dialect(place.base_url), key)
        headers |= {"anthropic-beta": beta} if body is not None and (beta := beta_of(body)) else {}
        try:
            async with asyncio.timeout(_LISTING):
                if body is None:
                    return await client.get(path, cast_to=object, options={"headers": headers})
                return await client.post(path, cast_to=object, body=body, options={"headers": headers})
        except TimeoutError:
            raise place.silent(_LISTING) from None
        except failures() as error:
            raise fault(place, error) from None

    async def aclose(self) -> None:
        """Close idle connections; the model can still be used and opens new ones."""
        client, self._client, self._client_for = self._client, None, ()
        if client is not None:
            await client.close()

    def _key(self, base_url: str) -> Key:
        if self._endpoint is None or (base_url == HOME and not self._endpoint.api_key_env):
            return find_key(self._given_key)
        return self._endpoint.key()

    def _headers(self, dialect: Dialect, key: str) -> dict[str, Any]:
        """The headers of a request; where the endpoint says that it wants no key, none is sent."""
        if self._endpoint is None:
            return dict(dialect.headers(key))
        from anthropic import Omit

        without: dict[str, Any] = {"authorization": Omit()} if self._endpoint.auth == "none" else dialect.headers(key)
        return {**without, **self._endpoint.sent_headers()}

    # ── connection ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _dialect(self, base_url: str) -> Dialect:
        known = self._dialects.get(base_url)
        if known is None:
            home = base_url == HOME
            known = Dialect.of(self._name, home=home, auth=self._auth, thinking=self._thinking, caching=self._caching,
                               compaction=self._compaction)  # fmt: skip
            self._dialects[base_url] = known
        return known

    async def _connect(self) -> tuple[Place, AsyncAnthropic, str]:
        """Return where to ask, the client for this event loop, and the key to repeat in other headers."""
        base_url = self.base_url
        key = self._key(base_url)
        if not key.secret and base_url != HOME:
            key = Key("none")  # local servers want no key, yet some want the header
        wants = self._endpoint.api_key_env or "api_key_env" if self._endpoint is not None else "ANTHROPIC_API_KEY"
        place = Place(self._name, base_url, secrets=(key.secret,) if len(key.secret) > len("none") else (), key=wants)
        if self._client is None:
            await asyncio.to_thread(warm_up)  # a second of imports must not hold up Stop
        wanted = (asyncio.get_running_loop(), base_url, key.secret, key.is_token)
        if self._client is None or self._client_for != wanted:
            same_loop = bool(self._client_for) and self._client_for[0] is wanted[0]
            if same_loop and not self._streams:  # else its connections end with their replies, or ended with their loop
                await self.aclose()
            self._client = new_client(base_url, key)
            self._client_for = wanted
        return place, self._client, key.secret

    async def _open(self, client: AsyncAnthropic, place: Place, key: str, request: Request) -> httpx2.Response:
        """Send the request and return the open response of status 200, asking again in simpler ways if need be."""
        while True:
            dialect = self._dialect(place.base_url)
            try:
                return await self._send(
                    client, place, key, dialect, request_body(self._name, request, dialect, self._facts.max_output)
                )
            except failures() as error:
                simpler = dialect.simpler(*refusal(error))
                if simpler is None:
                    raise await self._told(place, error) from None  # its text may hold the key
                self._dialects[place.base_url] = simpler

    async def _told(self, place: Place, error: Exception) -> NbagentError:
        """Return what to raise for a request that failed; of an unknown model with the nearest that the server lists."""
        told = fault(place, error)
        if refusal(error)[0] != 404 or UNKNOWN_MODEL not in str(told):
            return told
        try:
            async with asyncio.timeout(_LOOK_UP):
                listed = await self.available()
        except (TimeoutError, NbagentError):
            return told
        near = catalog.nearest(self._name, listed)
        return Rejected(f"{told} Did you mean {near}?") if near and near != self._name else told

    async def _send(
        self, client: AsyncAnthropic, place: Place, key: str, dialect: Dialect, body: Json
    ) -> httpx2.Response:
        import httpx2
        from anthropic import AsyncStream

        limit, beta = self._silence(place), beta_of(body)
        headers = {**self._headers(dialect, key), **({"anthropic-beta": beta} if beta else {})}
        try:
            async with asyncio.timeout(limit):
                response: Any = await client.post(  # the SDK types it as the stream that we do not ask for
                    "/v1/messages?beta=true" if beta else "/v1/messages",
                    cast_to=httpx2.Response,
                    content=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
                    options={
                        "headers": {"content-type": "application/json", **headers},
                        "follow_redirects": False,
                    },
                    stream=True,
                    stream_cls=AsyncStream[Any],
                )
                return response
        except TimeoutError:
            raise place.silent(limit) from None

    def _silence(self, place: Place) -> float:
        if self._max_silence is not None:
            return self._max_silence
        return HOME_SILENCE if place.base_url == HOME else OTHER_SILENCE

    # ── reply ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _events(self, place: Place, response: httpx2.Response) -> AsyncGenerator[Json]:
        """Yield the events of a stream. No timeout spans a `yield`: the consumer may take as long as it likes."""
        limit = self._silence(place)
        clock = asyncio.get_running_loop().time
        chunks = response.aiter_bytes()
        decoder = SseDecoder()
        started = received = False
        last = clock()
        while True:
            chunk = await _next_chunk(place, chunks, last + limit, limit)
            received = received or bool(chunk)
            meant = False
            for sse in decoder.close() if chunk is None else decoder.feed(chunk):
                event = event_of(place, sse, started=started)
                if event is None:
                    continue
                meant = started = True
                yield event
                if event["type"] == "message_stop":
                    await _drain(chunks)
                    return
            if chunk is None:
                if not started:
                    raise _never_began(place, received=received)
                return  # whether the reply is whole is judged by the loop
            if meant:
                last = clock()

    async def _whole(self, place: Place, response: httpx2.Response) -> list[Json]:
        """Return the events of a reply that came in one piece, as some servers send it."""
        limit = self._silence(place)
        chunks = response.aiter_bytes()
        until = asyncio.get_running_loop().time() + limit
        data = bytearray()
        while (chunk := await _next_chunk(place, chunks, until, limit)) is not None:
            data += chunk
            if len(data) > _LONGEST_BODY:
                raise place.not_the_api("JSON without an end")
        try:
            body: Any = json.loads(data)
        except ValueError:
            raise place.not_the_api("it says that it is JSON, but it cannot be read") from None
        if isinstance(body, dict) and body.get("type") == "error":
            raise place.broken(body)
        if not isinstance(body, dict) or body.get("type") != "message" or not isinstance(body.get("content"), list):
            raise place.not_the_api("JSON without a message in it")
        return reply_events(
            body["content"],
            body.get("stop_reason"),
            usage=body.get("usage"),
            message_id=str(body.get("id") or ""),
            model=str(body.get("model") or self._name),
        )


# ── functions that need no model ─────────────────────────────────────────────────────────────────────────────────────


async def _next_chunk(place: Place, chunks: AsyncIterator[bytes], until: float, limit: float) -> bytes | None:
    """Return the next bytes, or None at the end; raises the fault that ended the stream instead."""
    try:
        async with asyncio.timeout_at(until):
            return await anext(chunks, None)
    except TimeoutError:
        raise place.silent(limit) from None
    except failures() as error:
        raise place.lost(error) from None


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end after message_stop, so that the connection can serve again; give up soon if there is none."""
    try:
        async with asyncio.timeout(_LINGER):
            async for _ in chunks:
                pass
    except TimeoutError:
        return
    except failures():
        return  # the reply was whole; what became of the connection does not matter


def _never_began(place: Place, *, received: bool) -> NbagentError:
    if received:
        return place.not_the_api("a stream without message_start")
    return place.lost(EOFError("the reply was empty"))
