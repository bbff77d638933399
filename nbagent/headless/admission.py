"""One budget and one pace for the requests of many workers: who may ask the model now, in the order in which they asked.

A request is let through while what was spent, what is under way (by its estimate) and itself fit the budget; where
nothing is under way, as long as the budget is not used up. So what is spent is over the budget by less than one request,
if the estimates hold. Pure but for its own state: the time is given. Must not know of connections. Read `Admission.due`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from nbagent.core.limits import UNPRICED_TOKENS_PER_USD, Limits
from nbagent.core.messages import Usage
from nbagent.models.metered import Estimate

MINUTE = 60.0
_FIRST_HOLD, _LONGEST_HOLD = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Rates:
    """How much may be asked a minute, of all workers together; None: as the server allows."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What was spent so far; `cost` is None where a price is not known."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    requests: int = 0


class Admission:
    """Lets requests through; `limits` are for all of them together (turns and seconds do not count here)."""

    def __init__(self, limits: Limits, rates: Rates, already: Spending) -> None:
        self._limits, self._rates = limits, rates
        self.spending = already
        self._usd = _dollars(already.usage.total, already.cost)
        self._line: dict[str, Estimate] = {}
        self._under_way: dict[str, Estimate] = {}
        self._counted: set[str] = set()
        self._sent: deque[tuple[float, int]] = deque()
        self._held_until = 0.0
        self._hold = _FIRST_HOLD

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who waits, in order."""
        return tuple(self._line)

    @property
    def used_up(self) -> str:
        """The sentence that says that the budget is used up, "" where it is not."""
        return self._limits.spent(self.spending.usage, self._usd)

    def ask(self, ticket: str, estimate: Estimate) -> None:
        """Stand in the line; a ticket that stands there or was let through keeps its place."""
        if ticket not in self._under_way:
            self._line.setdefault(ticket, estimate)

    def leave(self, ticket: str) -> None:
        """Leave the line: who asked is gone."""
        self._line.pop(ticket, None)

    def is_under_way(self, ticket: str) -> bool:
        """Whether a request was let through and has not ended."""
        return ticket in self._under_way

    def due(self, now: float) -> list[str]:
        """Return the tickets that may ask now, in order; they are under way from here on."""
        found: list[str] = []
        while self._line and not self.used_up and now >= self._held_until:
            ticket, estimate = next(iter(self._line.items()))
            if not self._fits(estimate) or self._pause(estimate, now) > 0:
                break
            self._under_way[ticket] = self._line.pop(ticket)
            self._sent.append((now, estimate.input + estimate.output))
            found.append(ticket)
        return found

    def refused(self) -> list[str]:
        """Return the tickets that will never be let through, and take them out of the line: the budget is used up."""
        gone = list(self._line) if self.used_up else []
        self._line = {} if gone else self._line
        return gone

    def pause(self, now: float) -> float | None:
        """Return the seconds after which `due` may find one more; None: not by the time alone."""
        if not self._line or self.used_up:
            return None
        estimate = next(iter(self._line.values()))
        if not self._fits(estimate):
            return None
        return max(self._held_until - now, self._pause(estimate, now), 0.0)

    def spent(self, ticket: str, usage: Usage, cost: float | None) -> None:
        """Take what a request took; a second word on the same one changes nothing."""
        if ticket in self._counted:
            return
        self._counted.add(ticket)
        self._under_way.pop(ticket, None)
        total = self.spending.cost
        total = None if total is None or (cost is None and usage.total) else total + (cost or 0.0)
        self.spending = Spending(self.spending.usage + usage, total, self.spending.requests + 1)
        self._usd += _dollars(usage.total, cost)
        if usage.output:
            self._hold = _FIRST_HOLD

    def lost(self, ticket: str) -> None:
        """Take it that a request that was under way ended with its worker: its prompt was read, and nobody knows the rest."""
        if (estimate := self._under_way.get(ticket)) is not None:
            share = estimate.input / ((estimate.input + estimate.output) or 1)
            self.spent(ticket, Usage(input=estimate.input), None if estimate.usd is None else estimate.usd * share)

    def hold(self, seconds: float | None, now: float) -> None:
        """Let nobody through for so long; without a time 1, 2, 4 … seconds, as long as no reply comes in between."""
        if seconds is None:
            if now < self._held_until:
                return  # another one of the same burst
            seconds, self._hold = self._hold, min(self._hold * 2, _LONGEST_HOLD)
        self._held_until = max(self._held_until, now + min(max(seconds, 0.0), _LONGEST_HOLD))

    def _fits(self, estimate: Estimate) -> bool:
        if not self._under_way:
            return True
        all_of_them = [*self._under_way.values(), estimate]
        tokens = sum(one.input + one.output for one in all_of_them)
        usd = sum(_dollars(one.input + one.output, one.usd) for one in all_of_them)
        limits = self._limits
        if limits.tokens is not None and self.spending.usage.total + tokens > limits.tokens:
            return False
        return limits.usd is None or self._usd + usd <= limits.usd

    def _pause(self, estimate: Estimate, now: float) -> float:
        """Seconds until the pace allows one more; one that is larger than a minute's share waits for an empty minute."""
        while self._sent and self._sent[0][0] <= now - MINUTE:
            self._sent.popleft()
        wait, rates = 0.0, self._rates
        if rates.requests_per_minute is not None and len(self._sent) >= rates.requests_per_minute:
            wait = self._sent[len(self._sent) - rates.requests_per_minute][0] + MINUTE - now
        if rates.tokens_per_minute is not None:
            room = rates.tokens_per_minute - estimate.input - estimate.output - sum(count for _, count in self._sent)
            for at, count in self._sent:
                if room >= 0:
                    break
                room += count
                wait = max(wait, at + MINUTE - now)
        return max(wait, 0.0)


def _dollars(tokens: int, cost: float | None) -> float:
    """What counts against a budget in money: where a price is not known, tokens as `Limits` takes them."""
    return cost if cost is not None else tokens / UNPRICED_TOKENS_PER_USD
