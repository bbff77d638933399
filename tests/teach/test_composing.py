"""Generators in generators: who is closed, in which order, and what `flat` hands on; the three scenarios."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from nbagent.core.events import AgentReported
from nbagent.teach.bench import bench
from nbagent.teach.composing import (
    closed_early,
    costs,
    delegate,
    delegated,
    depth,
    flat,
    forwarded,
    leaky,
    phases,
    under,
)
from nbagent.teach.scenarios import MEAN, Asked, Finished, Progress, Refused, column_of, etl, filled, resampled
from tests.source import ROOT

DATA = ROOT / "notebooks" / "data"


async def test_closing_the_outer_one_closes_the_inner_one_first() -> None:
    assert await closed_early(phases) == ("think begins", "think closed", "outer closed", "— aclose() has returned —")


async def test_without_aclosing_the_inner_one_is_closed_later_by_somebody_else() -> None:
    lines = await closed_early(leaky)
    assert lines[1:3] == ("outer closed", "— aclose() has returned —")
    assert "think closed" not in lines


async def test_both_ways_of_composing_yield_the_same() -> None:
    seen = [item async for item in flat(delegated(5, 3))]
    assert seen == [item async for item in forwarded(5, 3)] == [0, 1, 2]


async def _inner(log: list[str]) -> AsyncGenerator[str, str]:
    try:
        log.append(f"inner got {(yield 'question')}")
        raise LookupError("nothing there")
    finally:
        log.append("inner closed")


async def _outer(log: list[str]) -> AsyncGenerator[object, str]:
    try:
        yield "begin"
        try:
            yield delegate(_inner(log))
        except LookupError as error:
            yield f"caught {error}"
        yield "end"
    finally:
        log.append("outer closed")


async def test_flat_hands_down_what_is_sent_and_up_what_is_raised() -> None:
    log: list[str] = []
    async with aclosing(flat(_outer(log))) as events:
        assert [await anext(events), await anext(events)] == ["begin", "question"]
        assert await events.asend("42") == "caught nothing there"
        assert [event async for event in events] == ["end"]
    assert log == ["inner got 42", "inner closed", "outer closed"]


async def test_flat_closes_the_innermost_first() -> None:
    log: list[str] = []
    async with aclosing(flat(_outer(log))) as events:
        await anext(events)
        await anext(events)
    assert log == ["inner closed", "outer closed"]


async def test_what_nobody_catches_reaches_the_consumer() -> None:
    async def careless() -> AsyncGenerator[object, str]:
        yield delegate(_inner(log))

    log: list[str] = []
    with pytest.raises(LookupError, match="nothing there"):
        assert [event async for event in flat(careless())] == ["question"]
    assert log == ["inner got None", "inner closed"]


async def test_the_costs_are_measured_for_each_depth() -> None:
    found = await costs((1, 8), 20)
    assert [row[0] for row in found] == [1, 8]
    assert all(one > 0 and other > 0 for _, one, other in found)


async def test_events_of_a_subagent_say_through_how_many_runs_they_came() -> None:
    events = under("toolu_1", "helper", under("toolu_2", "its helper", bench(["Done."]).events("Go")))
    seen = [event async for event in events]
    assert {depth(event) for event in seen} == {2}
    assert isinstance(seen[0], AgentReported)
    assert depth(seen[0].event) == 1


async def test_the_pipeline_loads_good_rows_and_says_which_are_not(tmp_path: Path) -> None:
    target = tmp_path / "birds.csv"
    facts = [fact async for fact in etl(DATA / "field.csv", target)]
    refused = [fact for fact in facts if isinstance(fact, Refused)]
    rows = target.read_text("utf-8").splitlines()[1:]
    total = next(fact.done for fact in facts if isinstance(fact, Progress))
    assert refused[0] == Refused(4, "not weighed")
    assert len(rows) + len(refused) == total
    assert rows[0] == "2,Adelie,Torgersen,39.5,17.4,186,3800,female,2007"
    assert facts[-1] == Finished(f"{len(rows)} of {total} rows are in birds.csv.")


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_pipeline_that_is_closed_leaves_nothing_half_done(tmp_path: Path) -> None:
    async with aclosing(etl(DATA / "field.csv", tmp_path / "birds.csv")) as facts:
        async for fact in facts:
            if isinstance(fact, Refused):
                break
        assert _names(tmp_path) == ["birds.csv.part"]
    assert _names(tmp_path) == []


async def test_a_long_task_says_on_its_way_what_is_known() -> None:
    facts = [fact async for fact in resampled([1.0, 2.0, 3.0, 4.0], 40, every=10)]
    assert [fact.done for fact in facts if isinstance(fact, Progress)] == [10, 20, 30, 40]
    assert all(" to " in fact.note for fact in facts if isinstance(fact, Progress))
    assert isinstance(facts[-1], Finished)


@pytest.mark.parametrize(("answer", "said"), [(MEAN, "1 gaps are 2 now."), ("", "Nothing was changed.")])
async def test_a_workflow_waits_for_its_answer_and_does_nothing_without_one(answer: str, said: str) -> None:
    asked: list[str] = []

    async def ask(question: str, _: tuple[str, ...]) -> str:
        asked.append(question)
        return answer

    facts = [fact async for fact in filled("mass", ["1", "", "3"], ask)]
    assert asked == [fact.question for fact in facts if isinstance(fact, Asked)]
    assert facts[-1] == Finished(said)


def test_a_gap_of_a_column_is_empty() -> None:
    assert column_of(DATA / "penguins.csv", "body_mass_g").count("") == 2
