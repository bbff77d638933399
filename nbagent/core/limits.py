"""How far a run may go: turns, tokens, money, seconds. Presets are the task types of the design's decision 4."""

from __future__ import annotations

from dataclasses import dataclass

from nbagent.core.messages import Usage

PRESETS = {"lookup": 5, "research": 25, "autonomous": 50, "session": 100}
"""Turns by type of task."""

DEFAULT_PRESET = "research"

UNPRICED_TOKENS_PER_USD = 100_000
"""Where a budget is in money and the model's price is unknown, this many tokens count as one dollar."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. `tokens` counts input and output together, `usd` is US dollars, `seconds` the whole run."""

    max_turns: int = PRESETS[DEFAULT_PRESET]
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    tries: int = 4
    longest_wait: float = 60.0

    def spent(self, usage: Usage, cost: float | None) -> str:
        """Return the sentence that says which budget is used up, or ""."""
        if self.tokens is not None and usage.total >= self.tokens:
            return f"The budget of {self.tokens:,} tokens is used up ({usage.total:,} used)."
        if self.usd is None:
            return ""
        if cost is not None:
            return f"The budget of ${self.usd:g} is used up (${cost:.2f} used)." if cost >= self.usd else ""
        cap = int(self.usd * UNPRICED_TOKENS_PER_USD)
        if usage.total < cap:
            return ""
        return f"This model's price is unknown, so the budget of ${self.usd:g} counts as {cap:,} tokens, and they are used up."

    def share_spent(self, usage: Usage, cost: float | None) -> float:
        """Return how much of the budget is used, 0 to 1; 0 where there is none."""
        shares = [usage.total / self.tokens if self.tokens else 0.0]
        if self.usd:
            shares.append(cost / self.usd if cost is not None else usage.total / (self.usd * UNPRICED_TOKENS_PER_USD))
        return min(1.0, max(shares))

    def describe(self) -> str:
        """Return the budget as a short text for people, "" where there is none."""
        parts = [
            f"{self.tokens:,} tokens" if self.tokens is not None else "",
            f"${self.usd:g}" if self.usd is not None else "",
            f"{self.seconds:g} s" if self.seconds is not None else "",
        ]
        return ", ".join(p for p in parts if p)
