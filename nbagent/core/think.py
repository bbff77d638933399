"""Think: stream one reply, whole or not at all. The one retry layer is here.

A reply that breaks off leaves nothing in the transcript and none of its calls run, so it may simply be asked for again.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import urlsplit

from nbagent.core.errors import ContextFull, ImagesRefused, ModelError, Transient
from nbagent.core.events import (
    BlockStarted,
    Event,
    InputDelta,
    Noted,
    RawReceived,
    ReplyDiscarded,
    ReplyEnded,
    ReplyStarted,
    RequestSent,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
)
from nbagent.core.messages import Json, ReplyBuilder, Usage, last_words
from nbagent.core.ports import Model, Request
from nbagent.core.run import Run
from nbagent.core.served import is_result, served

_KNOWN = frozenset(
    {"message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop", "ping"}
)


async def think(run: Run) -> AsyncGenerator[Event]:
    """Ask the model for one reply and put it into the transcript; raise `ModelError` where that is not possible."""
    session = run.session
    request = Request(session.system, session.tools, session.messages())
    yield run.event(
        RequestSent,
        model=run.agent.model.name,
        new=_since_last_reply(run),
        prefix=session.transcript.prefix,
        host=host_of(run.agent.model),
    )
    tried_without = False
    while True:
        try:
            async with aclosing(whole_reply(run, request)) as events:
                async for event in events:
                    yield event
            break
        except (ContextFull, ImagesRefused) as error:
            if tried_without or not session.leave_out_images(newest=isinstance(error, ImagesRefused)):
                raise
            if run.reply.started:
                yield run.event(ReplyDiscarded, why=str(error))
            tried_without = True
            yield run.event(Noted, text=f"{error} It is asked again without the older images.")
            request = Request(session.system, session.tools, session.messages())
    if not run.reply.complete:
        return  # stopped while it waited for the next try
    builder = run.reply
    if builder.content:
        session.transcript.reply(builder.content)
    if words := last_words(builder.content):
        run.text, run.cut_text = run.cut_text + words, ""
    usage = Usage.of(builder.usage)
    session.measure(usage)
    cost = run.spend(usage)
    stop_reason = builder.stop_reason or ""
    yield run.event(ReplyEnded, content=tuple(builder.content), stop_reason=stop_reason, usage=usage, cost=cost)


async def whole_reply(run: Run, request: Request, *, shown: bool = True) -> AsyncGenerator[Event]:
    """Stream one reply into `run.reply`, whole, and try again where it breaks off; nothing of it enters the transcript.

    After a stop while it waits for the next try, `run.reply` is not complete. `shown`: what streams in is yielded, too.
    """
    limits, attempt = run.agent.limits, 1
    while True:
        builder = run.reply = ReplyBuilder(taken=run.session.transcript.call_ids)
        try:
            async with aclosing(run.agent.model.stream(request)) as raws:
                async for raw in raws:
                    before = len(builder.content)
                    _feed(builder, raw)
                    if shown and (event := _event_of(run, raw) or served(run, builder.content[before:])) is not None:
                        yield event
            _check_whole(builder)
        except Transient as error:
            if builder.started and shown:
                yield run.event(ReplyDiscarded, why=str(error))
            if attempt >= limits.tries:
                raise ModelError(f"{error} Tried {attempt} times.") from error
            attempt += 1
            wait = _wait(attempt - 1, error.retry_after, limits.longest_wait)
            yield run.event(RetryScheduled, attempt=attempt, limit=limits.tries, wait=wait, why=str(error))
            if await run.stop.wait(wait):
                run.reply = ReplyBuilder()
                return
        else:
            return


def host_of(model: Model) -> str:
    """Return the host or the name of the model's server, "" where none is asked.

    Raises `ConfigError` for an address that is none, as the request would.
    """
    address = str(getattr(model, "base_url", "") or getattr(model, "place", "") or "")
    return urlsplit(address).netloc or address


def _check_whole(builder: ReplyBuilder) -> None:
    if not builder.complete:
        raise Transient("The model's reply broke off before its end.")


def _since_last_reply(run: Run) -> tuple[Json, ...]:
    new: list[Json] = []
    transcript = run.session.transcript
    for index in range(len(transcript) - 1, -1, -1):
        if transcript[index]["role"] == "assistant":
            break
        new.append(transcript[index])
    return tuple(reversed(new))


def _feed(builder: ReplyBuilder, raw: Json) -> None:
    try:
        builder.feed(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Transient(
            f"The model's server sent an event of the wrong shape ({raw.get('type')}: {error!r})."
        ) from error


def _event_of(run: Run, raw: Json) -> Event | None:
    match raw.get("type"):
        case "content_block_delta":
            index, delta = raw["index"], raw["delta"]
            match delta.get("type"):
                case "text_delta":
                    return run.event(TextDelta, index=index, text=str(delta.get("text") or ""))
                case "thinking_delta":
                    return run.event(ThinkingDelta, index=index, text=str(delta.get("thinking") or ""))
                case "input_json_delta":
                    return run.event(InputDelta, index=index, text=str(delta.get("partial_json") or ""))
                case _:
                    return None
        case "content_block_start":
            block = raw["content_block"]
            if is_result(block):  # told when it is whole
                return None
            return run.event(
                BlockStarted,
                index=raw["index"],
                kind=str(block.get("type")),
                name=str(block.get("name") or ""),
                call_id=str(block.get("id") or ""),
            )
        case "message_start":
            return run.event(ReplyStarted, model=str((raw.get("message") or {}).get("model") or ""))
        case known if known in _KNOWN:
            return None
        case _:
            return run.event(RawReceived, raw=raw)


def _wait(attempt: int, asked: float | None, longest: float) -> float:
    """Seconds to wait before the next try: what the server asks for, capped, or 0.5, 1, 2 … with jitter."""
    base = asked if asked is not None and asked >= 0 else 0.5 * 2 ** (attempt - 1)
    return round(min(base, longest) * (1 + random.random() / 4), 2)  # noqa: S311  (jitter, not a secret)
