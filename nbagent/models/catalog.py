"""The one place of facts about models: ids, short names, prices, sizes, abilities.

Pure data and small functions; it knows nothing of any client or server. Checked against platform.claude.com and
anthropic 2.14 in November 2026. What is not published is None here, never a guess. Read `cost` first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from nbagent.core.messages import Usage

DEFAULT_MODEL = "claude-sonnet-5-5"

ALIASES: dict[str, str] = {
    "sonnet": DEFAULT_MODEL,
    "opus": "claude-opus-5-5",
    "haiku": "claude-haiku-5-5",
    "fable": "claude-fable-5-2",
    "best": "claude-fable-5-2",
    "default": DEFAULT_MODEL,
}
"""Short names for -m, each the current model of its line; `best` is the most able one."""

OWN_IDS = {line: f"ANTHROPIC_DEFAULT_{line.upper()}_MODEL" for line in ("opus", "sonnet", "haiku", "fable")}
"""Variables in which the person says what a short name means, as in Claude Code."""

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

SEARCH_PRICE = 0.01
"""US dollars of one web search; a fetch costs nothing but its tokens."""

CACHE_WRITE = 1.25
CACHE_READ = 0.1
"""Prices of prompt-cache writes (5 minutes) and reads, as multiples of the input price."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; `cache_read` only where it is not the usual multiple of `input`."""

    input: float
    output: float
    cache_read: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one model: price (None: not published), context window and longest output in tokens.

    `long` is the price of a whole request whose prompt has more than `long_from` tokens.
    """

    price: Price | None = None
    context: int | None = None
    max_output: int | None = None
    long: Price | None = None
    long_from: int = 0


def _current(price: Price | None, *, long: Price | None = None, long_from: int = 0) -> Facts:
    return Facts(price, context=1_000_000, max_output=128_000, long=long, long_from=long_from)


_UNKNOWN = Facts()

MODELS: dict[str, Facts] = {
    "claude-sonnet-5-5": _current(Price(2, 10)),
    "claude-opus-5-5": _current(Price(4, 20, cache_read=0.2)),
    "claude-haiku-5-5": _current(Price(0.1, 0.5), long=Price(0.5, 2.5), long_from=100_000),
    "claude-fable-5-2": _current(None),
    "claude-fable-5-1": _current(Price(10, 50)),
    "claude-opus-5": _current(Price(5, 25)),
}

_GENERATION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_FIRST_ADAPTIVE = (4, 6)


def facts(model: str) -> Facts:
    """Return what is known of `model`; all None for a model that is not listed."""
    return MODELS.get(model, _UNKNOWN)


def cost(model: str, usage: Usage) -> float | None:
    """Return the price in US dollars of ONE reply with `usage`, or None where the model's price is not known.

    Add the costs of several replies up: where long prompts cost more, the price of a sum of usages would be wrong.
    """
    return cost_of(facts(model), usage)


def cost_of(known: Facts, usage: Usage) -> float | None:
    """Return the price of one reply of a model of which these facts are known, as `cost` does."""
    price = known.price
    if known.long is not None and usage.input + usage.cache_write + usage.cache_read > known.long_from:
        price = known.long
    if price is None:
        return None
    read = price.input * CACHE_READ if price.cache_read is None else price.cache_read
    dollars = (
        usage.input * price.input
        + usage.output * price.output
        + usage.cache_write * price.input * CACHE_WRITE
        + usage.cache_read * read
    )
    return dollars / 1_000_000 + usage.searches * SEARCH_PRICE


def resolve(name: str, environment: Mapping[str, str] = _NO_VARIABLES) -> str:
    """Return the model id that a short name stands for; any other name is returned as it is.

    `environment` may say otherwise (`OWN_IDS`). A window of a million tokens is the usual one: the [1m] of Claude Code
    says nothing.
    """
    name = name.strip().removesuffix("[1m]")
    short = name.lower()
    own = environment.get(OWN_IDS.get(short, ""), "").strip()
    return own.removesuffix("[1m]") or ALIASES.get(short, name)


def nearest(name: str, others: Iterable[str] = ()) -> str | None:
    """Return the short name or id (listed here, or one of `others`) that is spelled most like `name`, None if none is."""
    known = {known.lower(): known for known in (*others, *MODELS, *ALIASES)}
    found = difflib.get_close_matches(name.strip().lower(), known, n=1, cutoff=0.6)
    return known[found[0]] if found else None


def is_claude(model: str) -> bool:
    """Say whether the name is one of Anthropic's, also with a gateway's prefix (anthropic/claude-opus-5-5)."""
    return "claude-" in model


def thinks_adaptively(model: str) -> bool:
    """Say whether the model takes adaptive thinking: Claude 4.6 and later; False for models of others."""
    if not is_claude(model):
        return False
    found = _GENERATION.search(model)
    return found is None or (int(found[1]), int(found[2] or 0)) >= _FIRST_ADAPTIVE


LINES = ("haiku", "sonnet", "opus", "fable")
"""The lines of Claude models, the smallest first."""


def at_most(model: str, line: str) -> str:
    """Return the short name `line` where `model` is of a larger line of Claude models, else ""."""
    found = [place for place, name in enumerate(LINES) if is_claude(model) and f"-{name}" in model]
    return line if found and found[0] > LINES.index(line) else ""
