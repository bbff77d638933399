"""What a check says of an answer that is no answer: words to the learner, never a `KeyError` or a page of objects."""

from __future__ import annotations

from typing import Any

import pytest

from nbagent.teach.exercises import LONGEST, Outcome, check, exercises_of
from nbagent.teach.lessons import LESSONS


@pytest.mark.parametrize("lesson", sorted(LESSONS))
async def test_a_cell_that_was_not_run_is_named_as_such(lesson: str) -> None:
    for one in exercises_of(lesson):
        found = await check(one.id, {})
        assert not found.passed
        assert "yet. Run the cell above" in found.said and "KeyError" not in found.said, found.said


async def test_a_long_answer_is_cut() -> None:
    found = await check("02.path", {"state_path": lambda events: events})  # pyright: ignore[reportUnknownLambdaType]
    assert not found.passed and len(found.said) < LONGEST + 100


async def test_a_plain_function_where_an_async_one_is_wanted_is_named() -> None:
    def count_turns(_: Any) -> int:
        return 2

    found = await check("02.turns", {"count_turns": count_turns})
    assert "Does it begin with async def?" in found.said


def test_the_verdict_and_the_reason_are_two_things_on_the_page() -> None:
    outcome = Outcome("02.path", passed=False, said="a run of `f<a>` has two turns")
    shown = outcome._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "Not yet:</b> a run of <code>f&lt;a&gt;</code> has" in shown
