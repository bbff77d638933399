"""One budget for a lead and its teammates: the lead asks the hub before each request, as its teammates do.

Must not know what a team is. Read `LeadMeter`.
"""

from __future__ import annotations

import asyncio

from nbagent.core.messages import Usage
from nbagent.headless.admission import Spending
from nbagent.headless.hub import Hub
from nbagent.headless.link import Link
from nbagent.models.metered import Estimate


class LeadMeter:
    """The lead's `Meter`: a link to the hub in its own process. What it spent itself and what the others did is kept apart."""

    def __init__(self) -> None:
        self._hub: Hub | None = None
        self._link: Link | None = None
        self._own = Spending()

    def open(self, hub: Hub) -> None:
        """Take part in `hub`, which listens already."""
        self._hub = hub
        self._link = Link(hub.link(), "lead", lambda _: None)
        self._link.start()

    async def close(self) -> None:
        """Leave the hub; a second time nothing happens."""
        link, self._link = self._link, None
        if link is not None:
            await asyncio.to_thread(link.close)

    async def admit(self, estimate: Estimate) -> str:
        """See `Meter`."""
        return await self._link.admit(estimate) if self._link is not None else ""

    def spent(self, request: str, usage: Usage, cost: float | None) -> None:
        """See `Meter`."""
        own = self._own.cost
        self._own = Spending(self._own.usage + usage, None if own is None or cost is None else own + cost)
        if self._link is not None:
            self._link.spent(request, usage, cost)

    def held(self, seconds: float | None) -> None:
        """See `Meter`."""
        if self._link is not None:
            self._link.held(seconds)

    def others(self) -> Spending:
        """Return what all but the lead have spent so far."""
        return less(self._hub.spending, self._own) if self._hub is not None else Spending()


def less(whole: Spending, part: Spending) -> Spending:
    """Return `whole` without `part`, never below nothing: word of a request may be on its way to the hub."""
    one, other = whole.usage, part.usage
    usage = Usage(
        max(one.input - other.input, 0), max(one.output - other.output, 0),
        max(one.cache_write - other.cache_write, 0), max(one.cache_read - other.cache_read, 0),
        max(one.searches - other.searches, 0), max(one.fetches - other.fetches, 0),
    )  # fmt: skip
    cost = None if whole.cost is None or part.cost is None else max(whole.cost - part.cost, 0.0)
    return Spending(usage, cost)
