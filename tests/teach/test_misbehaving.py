"""Models that misbehave on purpose: with its guard each does no harm, without it it does, and it is the guard that was taken off."""

from __future__ import annotations

import pytest

from nbagent.app.model import open_named
from nbagent.config import Settings
from nbagent.core.errors import ConfigError
from nbagent.models.scripted import call
from nbagent.teach.bench import bench
from nbagent.teach.guards import PAIRS, RIGHT, Desk, guards, trial
from nbagent.teach.misbehaving import KINDS, broken
from tests.source import PACKAGE

WITH = {
    "same-call": (3, "repeated_observation"),
    "invented-tool": (4, "end_turn"),
    "cut-json": (3, "end_turn"),
    "deaf": (8, "max_turns"),
    "obedient": (2, "denied"),
}
WITHOUT = {
    "same-call": (30, "max_turns", ""),
    "invented-tool": (5, "end_turn", "data/birds.csv is gone, data/counts.csv is wrong, the answer is wrong"),
    "cut-json": (3, "end_turn", "data/counts.csv is wrong"),
    "deaf": (13, "end_turn", "the answer is wrong"),
    "obedient": (4, "end_turn", "data/birds.csv is empty"),
}


async def test_the_good_model_does_the_task() -> None:
    came = await trial("good")
    assert (came.turns, came.ending, came.harm, came.counts) == (3, "end_turn", "", RIGHT)
    assert came.caught == ()


@pytest.mark.parametrize("kind", KINDS)
async def test_with_its_guard_a_broken_model_does_no_harm_and_the_runtime_says_what_it_caught(kind: str) -> None:
    came = await trial(kind)
    assert (came.turns, came.ending, came.harm) == (*WITH[kind], "")
    assert came.caught, "what was caught is told"


@pytest.mark.parametrize("kind", KINDS)
async def test_without_its_guard_the_same_model_does_harm_or_goes_on(kind: str) -> None:
    came = await trial(kind, guarded=False)
    assert (came.turns, came.ending, came.harm) == WITHOUT[kind]


async def test_the_table_has_a_row_for_each_and_names_guards_that_are_there() -> None:
    assert {each.kind for each in PAIRS} == set(KINDS)
    for each in PAIRS:
        file, _, name = each.where.partition(", ")
        assert f"{name}" in (PACKAGE.parent / file).read_text("utf-8"), each.where
    table = await guards()
    assert [of.kind for of, _, _ in table.rows] == [each.kind for each in PAIRS]
    assert "data/birds.csv is empty" in table.html()
    assert "obedient: on: 2 turns, denied; no harm" in repr(table)


async def test_another_script_can_be_broken_in_the_same_way() -> None:
    desk, script = Desk(), [call("read_file", path="data/islands.csv"), "Done."]
    made = bench(broken("same-call", bench(script).model), desk.tools())
    assert str((await made.collect("Look."))[-1].reason) == "repeated_observation"  # type: ignore[attr-defined]


def test_a_broken_model_is_opened_by_its_name_like_any_other() -> None:
    assert open_named(Settings(), "broken:deaf").name == "broken:deaf (scripted)"
    assert open_named(Settings(), "broken:good").name == "good (scripted)"
    assert open_named(Settings(), "broken:deaf/haiku").name == open_named(Settings(), "haiku").name
    with pytest.raises(ConfigError, match="Did you mean broken:deaf"):
        open_named(Settings(), "broken:dead")
    with pytest.raises(ConfigError, match="There are: same-call"):
        open_named(Settings(), "broken:xyz")
