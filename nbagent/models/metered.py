"""A model whose requests are counted beside those of others: it asks before each one, and tells what each one took.

Whoever counts is the port `Meter`: for a worker the process that gives the work out. Must not know how far that is, nor
what a budget is. Read `MeteredModel.stream`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from nbagent.core import sizes
from nbagent.core.errors import Overloaded, Transient
from nbagent.core.messages import Json, Usage
from nbagent.core.ports import Model, Request
from nbagent.models.passing import Passing


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one request may take at most, as far as that can be told: tokens of prompt and reply, US dollars if known."""

    input: int
    output: int
    usd: float | None


class Meter(Protocol):
    """Counts the requests of several models together."""

    async def admit(self, estimate: Estimate) -> str:
        """Return, when the request may be sent, by what its end is told; raises `Spent` or `Interrupted` where it may not."""
        ...

    def spent(self, request: str, usage: Usage, cost: float | None) -> None:
        """Take what an admitted request took; never waits."""
        ...

    def held(self, seconds: float | None) -> None:
        """Hear that the server wants less: nobody should ask for `seconds` (None: it did not say how long)."""
        ...


class MeteredModel(Passing):
    """`model`, with each request counted by `meter`."""

    def __init__(self, model: Model, meter: Meter) -> None:
        super().__init__(model)
        self._meter = meter

    def estimate(self, request: Request) -> Estimate:
        """Return what `request` may take: its prompt by its size, its reply by the longest that is asked for."""
        prompt = sizes.of_text(request.system) + sizes.of_tools(request.tools)
        prompt += sum(sizes.of_message(message) for message in request.messages)
        return Estimate(prompt, request.max_tokens, self.cost(Usage(input=prompt, output=request.max_tokens)))

    async def stream(self, request: Request) -> AsyncGenerator[Json]:
        """Yield the events of one reply, once it may be asked for. A reply that broke off is counted as far as it came.

        Nothing is awaited between the last event and its consumer: a whole reply must be kept before anything else.
        """
        ticket = await self._meter.admit(self.estimate(request))
        raw: Json = {}
        try:
            async with aclosing(self._asked.stream(request)) as events:
                async for event in events:
                    raw.update(_counts(event))
                    yield event
        except Transient as error:
            if isinstance(error, Overloaded) or error.retry_after is not None:
                self._meter.held(error.retry_after)
            raise
        finally:
            usage = Usage.of(raw)
            self._meter.spent(ticket, usage, self.cost(usage))


def _counts(event: Json) -> Json:
    """Return the counts that an event has."""
    message = event.get("message") if event.get("type") == "message_start" else event
    if event.get("type") not in {"message_start", "message_delta"} or not isinstance(message, dict):
        return {}
    found = message.get("usage")
    return {name: count for name, count in found.items() if count is not None} if isinstance(found, dict) else {}
