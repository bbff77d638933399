"""One budget and one pace for all workers: what is spent stays near the budget, and everybody's turn comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.limits import Limits
from nbagent.core.messages import Usage
from nbagent.headless.admission import MINUTE, Admission, Rates, Spending
from nbagent.models.metered import Estimate


def admission(limits: Limits | None = None, rates: Rates | None = None) -> Admission:
    return Admission(limits or Limits(), rates or Rates(), Spending())


def of(tokens: int, usd: float | None = None) -> Estimate:
    return Estimate(tokens, 0, usd)


@given(
    st.integers(100, 5_000),
    st.lists(st.tuples(st.integers(1, 400), st.floats(0.0, 1.0)), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_spending_is_over_the_budget_by_less_than_one_request_and_nobody_waits_for_ever(
    budget: int, requests: list[tuple[int, float]], chance: object
) -> None:
    """`requests`: the estimate of each, and what share of it is really taken."""
    admits = admission(Limits(tokens=budget))
    for number, (tokens, _) in enumerate(requests):
        admits.ask(str(number), of(tokens))
    under_way: list[str] = []
    order: list[int] = []
    while True:
        let_through = admits.due(0.0)
        order += map(int, let_through)
        under_way += let_through
        if not under_way:
            break
        ticket = under_way.pop(chance.randrange(len(under_way)))  # type: ignore[attr-defined]  # a random.Random
        tokens, share = requests[int(ticket)]
        admits.spent(ticket, Usage(output=int(tokens * share)), None)
    assert order == sorted(order)
    assert admits.spending.usage.total < budget + max(tokens for tokens, _ in requests)
    assert admits.refused() == [str(number) for number in range(len(order), len(requests))]
    assert bool(admits.used_up) is (admits.spending.usage.total >= budget)
    assert not admits.waiting


def test_money_counts_by_price_and_by_tokens_where_no_price_is_known() -> None:
    admits = admission(Limits(usd=1.0))
    for ticket, estimate in (("a", of(10, 0.6)), ("b", of(50_000)), ("c", of(10, 0.3))):
        admits.ask(ticket, estimate)
    assert admits.due(0.0) == ["a"]  # 0.60 and 0.50 are too much together
    admits.spent("a", Usage(output=10), 0.2)
    assert admits.due(0.0) == ["b", "c"]
    admits.spent("b", Usage(output=90_000), None)
    assert "$1 is used up" in admits.used_up
    assert admits.spending.cost is None


def test_the_pace_is_kept_in_any_minute_and_a_large_request_waits_for_an_empty_one() -> None:
    admits = admission(rates=Rates(requests_per_minute=2, tokens_per_minute=100))
    for ticket, tokens in (("a", 30), ("b", 30), ("c", 30), ("d", 900)):
        admits.ask(ticket, of(tokens))
    assert admits.due(0.0) == ["a", "b"]
    assert admits.pause(10.0) == MINUTE - 10.0
    assert admits.due(MINUTE - 0.1) == []
    assert admits.due(MINUTE) == ["c"]
    assert admits.pause(MINUTE) == MINUTE
    assert admits.due(2 * MINUTE) == ["d"]


def test_when_the_server_wants_less_all_wait_longer_each_time_until_a_reply_comes() -> None:
    admits = admission()
    waits: list[float | None] = []
    for now in (0.0, 10.0, 20.0):
        admits.hold(None, now)
        admits.hold(None, now)  # another worker of the same burst
        admits.ask("a", of(1))
        waits.append(admits.pause(now))
        assert admits.due(now) == []
    assert waits == [1.0, 2.0, 4.0]
    assert admits.due(24.0) == ["a"]
    admits.spent("a", Usage(output=1), None)
    admits.hold(None, 30.0)
    admits.ask("b", of(1))
    assert admits.pause(30.0) == 1.0
    admits.hold(7.0, 30.0)
    assert admits.pause(30.0) == 7.0


def test_a_reply_counts_once_and_that_of_a_worker_that_is_gone_by_its_prompt() -> None:
    admits = admission()
    for ticket in ("a", "b"):
        admits.ask(ticket, Estimate(100, 300, 4.0))
    assert admits.due(0.0) == ["a", "b"]
    for _ in range(2):
        admits.spent("a", Usage(input=90, output=10), 0.5)
    admits.lost("b")
    admits.lost("b")
    assert (admits.spending.usage.total, admits.spending.cost, admits.spending.requests) == (200, pytest.approx(1.5), 2)
    admits.ask("c", of(1))
    admits.leave("c")
    assert admits.due(0.0) == []
