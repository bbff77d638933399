"""How far a map is, in words and as a bar: from one value, on every screen."""

from __future__ import annotations

from dataclasses import replace

from nbagent.view.mapprogress import MapProgress, bundle, progress_html, progress_text
from nbagent.view.maptable import Totals

HALF = MapProgress(
    Totals(rows=200, done=90, failed=10, cost=1.5, tokens=5000), running=4, names=("a.csv", "<i>b</i>.csv"), elapsed=50.0, budget=3.0,
    problems=("c.csv: no <b>data</b>",), folder=".nbagent/maps/1",
)  # fmt: skip


def test_it_says_how_many_at_what_cost_and_how_long_it_will_take() -> None:
    assert HALF.sentence == (
        "100 of 200 inputs · 10 failed · 4 running · 1.50 USD of 3.00 USD · 120 a minute · about 50 s left"
    )


def test_what_was_finished_before_is_not_counted_as_pace() -> None:
    assert replace(HALF, kept=95).eta == 50.0 / 5 * 100
    assert replace(HALF, kept=100).eta is None


def test_without_a_price_or_a_budget_nothing_is_said_of_it() -> None:
    free = MapProgress(Totals(rows=3, done=1), elapsed=1.0)
    assert free.sentence == "1 of 3 inputs · 60 a minute · about 2.0 s left"
    assert "of 9,000 tokens" in replace(free, limit=9000).sentence


def test_the_picture_escapes_what_comes_from_others() -> None:
    html = progress_html(HALF)
    assert "&lt;i&gt;b&lt;/i&gt;.csv" in html
    assert "&lt;b&gt;data&lt;/b&gt;" in html
    assert 'aria-valuenow="100"' in html
    assert "width:45.00%" in html


def test_the_record_at_the_end_says_how_it_ended_and_where_all_is() -> None:
    ended = replace(HALF, ended="Stopped.", running=0, names=())
    assert ended.sentence.startswith("Stopped. 200 inputs: 90 done, 10 failed")
    assert "Now:" not in progress_html(ended)
    assert "Kept in .nbagent/maps/1" in progress_text(ended)
    assert "… 9 more before these" in progress_text(ended)
    assert set(bundle(ended)) == {"text/html", "text/plain"}
