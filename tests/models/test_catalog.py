from __future__ import annotations

import pytest

from nbagent.core.messages import Usage
from nbagent.models import catalog


def test_the_default_is_the_current_sonnet_and_every_short_name_stands_for_a_listed_model():
    assert catalog.resolve("sonnet") == catalog.DEFAULT_MODEL == "claude-sonnet-5-5"
    assert set(catalog.ALIASES.values()) <= set(catalog.MODELS)


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        ("claude-sonnet-5-5", Usage(input=1_000_000), 2.0),
        ("claude-sonnet-5-5", Usage(output=1_000_000), 10.0),
        ("claude-sonnet-5-5", Usage(cache_write=1_000_000), 2.5),
        ("claude-sonnet-5-5", Usage(cache_read=1_000_000), 0.2),
        ("claude-opus-5-5", Usage(cache_read=1_000_000), 0.2),
        ("claude-haiku-5-5", Usage(input=100_000, output=1_000), 0.0105),
        ("claude-haiku-5-5", Usage(input=50_001, cache_read=50_000, output=1_000), 0.0300005),
        ("claude-sonnet-5-5", Usage(), 0.0),
    ],
)
def test_cost_is_the_published_price(model, usage, dollars):
    assert catalog.cost(model, usage) == pytest.approx(dollars)


@pytest.mark.parametrize("model", ["claude-fable-5-2", "qwen", "claude-sonnet-9"])
def test_cost_is_none_where_no_price_is_published(model):
    assert catalog.cost(model, Usage(input=10)) is None


def test_sizes_are_known_of_the_current_generation_only():
    assert (catalog.facts("claude-opus-5-5").context, catalog.facts("claude-opus-5-5").max_output) == (
        1_000_000,
        128_000,
    )
    assert catalog.facts("qwen").context is None


@pytest.mark.parametrize(
    ("model", "does"),
    [
        ("claude-sonnet-5-5", True),
        ("claude-opus-4-6", True),
        ("anthropic/claude-opus-4.8", True),
        ("claude-fable-5", True),
        ("claude-sonnet-4-5-20250929", False),
        ("claude-haiku-4-5", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-5-sonnet-20241022", False),
        ("qwen", False),
    ],
)
def test_adaptive_thinking_is_asked_of_models_that_have_it(model, does):
    assert catalog.thinks_adaptively(model) is does


@pytest.mark.parametrize(("typed", "near"), [("sonet", "sonnet"), ("Opsu", "opus"), ("zzzz", None)])
def test_the_nearest_spelling_is_offered(typed, near):
    assert catalog.nearest(typed) == near
